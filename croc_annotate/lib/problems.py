"""Errors of the API as problem details (RFC 9457), each with a ``code`` for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rest_framework import exceptions
from rest_framework.views import exception_handler

if TYPE_CHECKING:
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


def problem_response(error: Exception, context: dict[str, Any]) -> Response | None:
    """Turn an exception of a view into a problem document; None for what is not one (a 500)."""
    response = exception_handler(error, context)
    if response is None:
        return None
    data = response.data
    detail = data.get("detail", "") if isinstance(data, dict) else ""
    problem: dict[str, Any] = {
        "type": "about:blank",
        "title": response.status_text,
        "status": response.status_code,
        "code": _code(error),
        "detail": str(detail) or "Some fields are not valid.",
    }
    if isinstance(error, exceptions.ValidationError):
        problem["errors"] = data
    response.data = problem
    response.content_type = CONTENT_TYPE
    return response
