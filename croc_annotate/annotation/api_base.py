"""What the endpoints of the judging API share: sign-in, errors as a code and a sentence, patience."""

from __future__ import annotations

import json
import logging
import random
import time
from typing import TYPE_CHECKING, Any, TypeVar

from django.db import IntegrityError, OperationalError
from django.http import HttpResponse, JsonResponse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from drf_spectacular.authentication import SessionScheme
from rest_framework import exceptions
from rest_framework.authentication import CSRFCheck, SessionAuthentication
from rest_framework.response import Response
from rest_framework.views import APIView

from croc_annotate.accounts.tokens import JudgingTokenAuthentication
from croc_annotate.accounts.visitors import UnsureVisitorError, visitor
from croc_annotate.annotation.judging import AnswerRefusedError
from croc_annotate.annotation.models import Campaign
from croc_annotate.annotation.people import NotInvitedError
from croc_annotate.lib.problems import CONTENT_TYPE, problem

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.http import HttpRequest
    from django.http.response import HttpResponseBase
    from rest_framework.request import Request

    from croc_annotate.accounts.models import User
    from croc_annotate.accounts.visitors import Visitor

logger = logging.getLogger(__name__)
T = TypeVar("T")
TRIES = 5


class CsrfError(exceptions.PermissionDenied):
    """The token of the page is not the session's any more."""

    default_code = "csrf"


class BusyError(exceptions.APIException):
    """The database could not take the request even after some tries."""

    status_code = 503
    default_detail = gettext_lazy("The server is busy. Nothing was stored; please send it again.")
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

    authentication_classes = [JudgingTokenAuthentication, SessionWithCode]

    def handle_exception(self, exc: Exception) -> Response:
        """A problem document: a code that a page can act upon, a sentence that a person can read."""
        if isinstance(exc, AnswerRefusedError):
            found = problem(status=409, code="conflict", detail=str(exc))
            return Response(found, status=409, content_type=CONTENT_TYPE)
        response = super().handle_exception(_as_api_error(exc))
        status = response.status_code
        response.data = problem(status=status, code=_code(exc), detail=_sentence(exc))
        if response.status_code == BusyError.status_code:
            response["Retry-After"] = "2"
        return response


class SwiftView(JudgingView):
    """An endpoint that a page calls for each answer.

    A signed-in page with a good token is served by ``act`` at once: without the framework's
    negotiation, and without reading the person's row on its own. Everything else, and every
    error, takes the framework's way, which decides and says why.
    """

    _failure: Exception | None = None

    def act(self, user: User | Visitor, slug: str, data: Any) -> dict[str, Any]:
        """Do what is asked; the reply's body."""
        raise NotImplementedError

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """The short way where it can be taken, else the usual one."""
        found = _page(request)
        if found is None:
            return super().dispatch(request, *args, **kwargs)
        who, data = found
        try:
            return JsonResponse(self.act(who, kwargs["slug"], data))
        except UnsureVisitorError:
            return super().dispatch(request, *args, **kwargs)
        except Exception as error:  # noqa: BLE001  # raised again by `initial`
            self._failure = error
            return super().dispatch(request, *args, **kwargs)

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Sign-in and token as always; then the error of the short way, if there was one."""
        super().initial(request, *args, **kwargs)
        if self._failure is not None:
            raise self._failure


def _page(request: HttpRequest) -> tuple[Visitor, Any] | None:
    """Whose page sent this, and what; None if anything about it is unusual."""
    usual = request.method == "POST" and request.content_type == "application/json"
    if not usual or "HTTP_AUTHORIZATION" in request.META:
        return None
    who = visitor(request)
    # The middleware has read the cookie; the views of the API leave the comparison to us.
    if who is None or CSRFCheck(_nothing).process_view(request, _nothing, (), {}):
        return None
    try:
        return who, json.loads(request.body)
    except ValueError:
        return None


def _nothing(_request: HttpRequest) -> HttpResponse:
    return HttpResponse()


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
        return _("There is no such campaign.")
    if isinstance(exc, NotInvitedError):
        return _("This campaign is by invitation.")
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
