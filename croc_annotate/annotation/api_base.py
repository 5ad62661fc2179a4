"""What the endpoints of the judging API share: sign-in, errors as a code and a sentence, patience."""

from __future__ import annotations

import logging
import random
import time
from typing import TYPE_CHECKING, TypeVar

from django.db import IntegrityError, OperationalError
from drf_spectacular.authentication import SessionScheme
from rest_framework import exceptions
from rest_framework.authentication import SessionAuthentication
from rest_framework.response import Response
from rest_framework.views import APIView

from croc_annotate.annotation.judging import AnswerRefusedError
from croc_annotate.annotation.models import Campaign
from croc_annotate.annotation.people import NotInvitedError

if TYPE_CHECKING:
    from collections.abc import Callable

    from rest_framework.request import Request

logger = logging.getLogger(__name__)
T = TypeVar("T")
TRIES = 5


class CsrfError(exceptions.PermissionDenied):
    """The token of the page is not the session's any more."""

    default_code = "csrf"


class BusyError(exceptions.APIException):
    """The database could not take the request even after some tries."""

    status_code = 503
    default_detail = "The server is busy. Nothing was stored; please send it again."
    default_code = "busy"


class SessionWithCode(SessionAuthentication):
    """Session log-in whose refusals say what to do: sign in (401), or fetch a new token (403)."""

    def authenticate_header(self, request: Request) -> str:
        """Makes a missing log-in a 401."""
        return "Session"

    def enforce_csrf(self, request: Request) -> None:
        """As the parent's, with a code of its own."""
        try:
            super().enforce_csrf(request)
        except exceptions.PermissionDenied as error:
            raise CsrfError(str(error.detail)) from error


class SessionWithCodeScheme(SessionScheme):  # type: ignore[no-untyped-call]
    """The session in the OpenAPI description, under a name of its own."""

    target_class = "croc_annotate.annotation.api_base.SessionWithCode"
    name = "judgingSession"


class JudgingView(APIView):
    """An endpoint of one campaign for one annotator."""

    authentication_classes = [SessionWithCode]

    def handle_exception(self, exc: Exception) -> Response:
        """A code that a page can act upon, and a sentence that a person can read."""
        if isinstance(exc, AnswerRefusedError):
            return Response({"code": "conflict", "message": str(exc)}, status=409)
        response = super().handle_exception(_as_api_error(exc))
        response.data = {"code": _code(exc), "message": _sentence(exc)}
        if response.status_code == BusyError.status_code:
            response["Retry-After"] = "2"
        return response


def _as_api_error(exc: Exception) -> Exception:
    if isinstance(exc, Campaign.DoesNotExist):
        return exceptions.NotFound()
    if isinstance(exc, NotInvitedError):
        return exceptions.PermissionDenied()
    return exc


def _code(exc: Exception) -> str:
    if isinstance(exc, exceptions.NotAuthenticated | exceptions.AuthenticationFailed):
        return "signed_out"
    if isinstance(exc, Campaign.DoesNotExist):
        return "not_found"
    if isinstance(exc, NotInvitedError):
        return "not_invited"
    codes = exc.get_codes() if isinstance(exc, exceptions.APIException) else "error"
    return codes if isinstance(codes, str) else "invalid"


def _sentence(exc: Exception) -> str:
    if isinstance(exc, Campaign.DoesNotExist):
        return "There is no such campaign."
    if isinstance(exc, NotInvitedError):
        return "This campaign is by invitation."
    detail = getattr(exc, "detail", "")
    if isinstance(detail, dict):
        return " ".join(f"{name}: {' '.join(map(str, texts))}" for name, texts in detail.items())
    return str(detail)


def patiently(act: Callable[[], T]) -> T:
    """Run a transaction again when the database says busy, deadlock or a lost race.

    Raises `BusyError` after some tries. Nothing is lost silently: the page keeps the answers.
    """
    for attempt in range(1, TRIES + 1):
        try:
            return act()
        except (OperationalError, IntegrityError) as error:
            logger.warning("try %d of %d: %s", attempt, TRIES, type(error).__name__)
            last = error
            # Unequal waits: two that met once should not meet again.
            time.sleep(random.uniform(0.01, 0.05) * attempt)  # noqa: S311  # not a secret
    raise BusyError from last
