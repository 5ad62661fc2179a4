"""Errors of the API as problem details (RFC 9457), each with a ``code`` for programs."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from django.http import JsonResponse
from django.views import defaults
from rest_framework import exceptions
from rest_framework.renderers import JSONRenderer
from rest_framework.views import exception_handler

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.http import HttpRequest, HttpResponseBase
    from rest_framework.response import Response

CONTENT_TYPE = "application/problem+json"


def _code(error: Exception) -> str:
    if isinstance(error, exceptions.NotAuthenticated):
        return "signed_out"
    if isinstance(error, exceptions.PermissionDenied) and "CSRF" in str(error.detail):
        return "csrf"
    if isinstance(error, exceptions.ValidationError):
        return "invalid"
    if isinstance(error, exceptions.APIException):
        codes = error.get_codes()
        return codes if isinstance(codes, str) else "error"
    return {"Http404": "not_found", "PermissionDenied": "permission_denied"}.get(
        type(error).__name__, "error"
    )


def problem(*, status: int, code: str, detail: str) -> dict[str, Any]:
    """A problem document."""
    return {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "code": code,
        "detail": detail,
    }


def problem_response(error: Exception, context: dict[str, Any]) -> Response | None:
    """Turn an exception of a view into a problem document; None for what is not one (a 500)."""
    response = exception_handler(error, context)
    if response is None:
        return None
    data = response.data
    detail = data.get("detail", "") if isinstance(data, dict) else ""
    response.data = problem(
        status=response.status_code,
        code=_code(error),
        detail=str(detail) or "Some fields are not valid.",
    )
    if isinstance(error, exceptions.ValidationError):
        response.data["errors"] = data
    response.content_type = CONTENT_TYPE
    # Also where the answer itself would have been YAML or a file.
    # Both words: where the refused thing is the type itself, nothing has been negotiated yet.
    if (request := context.get("request")) is not None:
        request.accepted_renderer = JSONRenderer()
        request.accepted_media_type = JSONRenderer.media_type
    return response


def page_not_found(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    """The site's 404: a problem document below ``/api/``, a page elsewhere."""
    detail = "There is no such address; /api/v1/schema/ lists all."
    return _or_page(
        request, 404, "not_found", detail, lambda: defaults.page_not_found(request, exception)
    )


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    """The site's 400, for requests that Django itself refuses."""
    detail = "The request is not well formed."
    return _or_page(
        request, 400, "invalid", detail, lambda: defaults.bad_request(request, exception)
    )


def server_error(request: HttpRequest) -> HttpResponseBase:
    """The site's 500. The log has the rest, under the request id."""
    detail = "Something went wrong here; nothing is known about the request's effect."
    return _or_page(request, 500, "error", detail, lambda: defaults.server_error(request))


def _or_page(
    request: HttpRequest, status: int, code: str, detail: str, page: Callable[[], HttpResponseBase]
) -> HttpResponseBase:
    if not request.path.startswith("/api/"):
        return page()
    body = problem(status=status, code=code, detail=detail)
    return JsonResponse(body, status=status, content_type=CONTENT_TYPE)
