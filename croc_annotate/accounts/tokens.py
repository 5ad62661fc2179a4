"""API tokens: shown once, kept as a hash, limited by scope and time."""

from __future__ import annotations

import secrets
from datetime import timedelta
from typing import TYPE_CHECKING

from django.db.models import Q
from django.utils import timezone
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed, PermissionDenied
from rest_framework.permissions import SAFE_METHODS

from croc_annotate.accounts.models import ApiToken, User
from croc_annotate.accounts.services import record_audit
from croc_annotate.lib.hashing import sha256_text

if TYPE_CHECKING:
    from datetime import datetime

    from django.http import HttpRequest
    from drf_spectacular.openapi import AutoSchema
    from rest_framework.request import Request

# Judging is a scope of its own: a script that reads and writes must not become a rater by accident.
READ, WRITE, JUDGE = "read", "write", "judge"
SCOPES = (READ, WRITE, JUDGE)
# Writing the time of use at each request would make every read a write.
USED_EVERY = timedelta(minutes=1)
_FOUND = "_croc_api_token"


def create_token(
    *, user: User, name: str, scopes: list[str], expires_at: datetime | None = None
) -> str:
    """Make a token and return its text, which nobody can read again.

    Raises ``ValueError`` on a scope that is not in ``SCOPES``.
    """
    unknown = set(scopes) - set(SCOPES)
    if unknown or not scopes:
        raise ValueError(f"Scopes are {', '.join(SCOPES)}; got {', '.join(scopes) or 'none'}.")
    text = f"croc_{secrets.token_urlsafe(32)}"
    token = ApiToken.objects.create(
        user=user,
        name=name,
        prefix=text[:10],
        sha256=sha256_text(text),
        scopes=sorted(scopes),
        expires_at=expires_at,
    )
    record_audit(actor=user, action="token.create", subject_type="token", subject_id=token.pk)
    return text


def revoke_token(*, token: ApiToken, actor: User) -> None:
    """End a token; a second call changes nothing."""
    changed = ApiToken.objects.filter(pk=token.pk, revoked_at=None).update(
        revoked_at=timezone.now()
    )
    if changed:
        record_audit(actor=actor, action="token.revoke", subject_type="token", subject_id=token.pk)


def token_of(request: HttpRequest) -> ApiToken | None:
    """The valid token that a request bears, with its person; None without one.

    Asked by the rate limits and by the log-in, looked up once a request.
    """
    if not hasattr(request, _FOUND):
        setattr(request, _FOUND, _look_up(_bearer(request)))
    found: ApiToken | None = getattr(request, _FOUND)
    return found


def _bearer(request: HttpRequest) -> list[str] | None:
    """The words after ``Bearer``; None where the header is another or missing."""
    parts = str(request.META.get("HTTP_AUTHORIZATION", "")).split()
    return parts[1:] if parts and parts[0].lower() == "bearer" else None


def _look_up(words: list[str] | None) -> ApiToken | None:
    if not words or len(words) != 1:
        return None
    return (
        ApiToken.objects.select_related("user")
        .filter(sha256=sha256_text(words[0]), revoked_at=None)
        .filter(Q(expires_at=None) | Q(expires_at__gt=timezone.now()), user__is_active=True)
        .first()
    )


class TokenAuthentication(BaseAuthentication):
    """``Authorization: Bearer croc_…``."""

    def authenticate(self, request: Request) -> tuple[User, ApiToken] | None:
        """Return who holds the token; None where there is no bearer token."""
        words = _bearer(request._request)
        if words is None:
            return None
        if len(words) != 1:
            raise AuthenticationFailed("Send one token: Authorization: Bearer croc_…")
        token = token_of(request._request)
        if token is None:
            raise AuthenticationFailed("This token is not known, or no longer valid.")
        self.check_scope(request, token)
        now = timezone.now()
        if token.last_used_at is None or now - token.last_used_at > USED_EVERY:
            ApiToken.objects.filter(pk=token.pk).update(last_used_at=now)
        return token.user, token

    def check_scope(self, request: Request, token: ApiToken) -> None:
        """Refuse (403) what the token was not made for."""
        wanted = READ if request.method in SAFE_METHODS else WRITE
        if wanted not in token.scopes:
            may = "only read" if READ in token.scopes else f"not {wanted}"
            raise PermissionDenied(f"This token may {may}.")

    def authenticate_header(self, request: Request) -> str:
        """What a 401 asks for."""
        return "Bearer"


class JudgingTokenAuthentication(TokenAuthentication):
    """A token with the scope ``judge``: its person judges with a client of their own."""

    def check_scope(self, request: Request, token: ApiToken) -> None:
        """Refuse (403) any token that was not made for judging."""
        if JUDGE not in token.scopes:
            raise PermissionDenied("This token may not judge.")


class TokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """How tokens appear in the OpenAPI description."""

    target_class = TokenAuthentication
    name = "token"

    def get_security_definition(self, auto_schema: AutoSchema) -> dict[str, str]:
        """A bearer token."""
        return {"type": "http", "scheme": "bearer"}


class JudgingTokenScheme(TokenScheme):  # type: ignore[no-untyped-call]
    """Tokens for judging in the OpenAPI description, under a name of their own."""

    target_class = JudgingTokenAuthentication
    name = "judgingToken"
