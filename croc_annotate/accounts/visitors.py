"""Who a session says is asking, before the person's row is read.

A judging request reads the person's row together with their place in the campaign. Until then
the session's word is enough to know which rows to ask for; `Visitor.is_still` then checks what
Django's own log-in check does. Only a plain yes counts: whatever else is left to that check.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.utils.crypto import constant_time_compare

if TYPE_CHECKING:
    from django.contrib.sessions.backends.base import SessionBase
    from django.http import HttpRequest

    from croc_annotate.accounts.models import User


class UnsureVisitorError(Exception):
    """The session alone does not settle who this is; ask Django."""


@dataclass(frozen=True, slots=True)
class Visitor:
    """The person that a session names."""

    pk: int
    session: SessionBase

    def is_still(self, user: User) -> bool:
        """True if ``user`` is the session's person, may sign in, and has the same password still."""
        return (
            user.pk == self.pk
            and user.is_active
            and self.session.get(BACKEND_SESSION_KEY) in settings.AUTHENTICATION_BACKENDS
            and constant_time_compare(
                self.session.get(HASH_SESSION_KEY, ""), user.get_session_auth_hash()
            )
        )


def visitor(request: HttpRequest) -> Visitor | None:
    """The person that the request's session names; None without one."""
    name = request.session.get(SESSION_KEY)
    return Visitor(int(name), request.session) if name and name.isdecimal() else None
