"""The OpenAPI description beyond what the views say: errors, conditional requests, examples.

Every answer that a client can get is listed with its status, so that a generated client knows
it and a fuzzer may hold the site to it (tests/api/test_fuzz.py). The examples were recorded from
real answers (`python -m pytest tests/api/record_examples.py`) and are checked against the schemas.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from django.core.exceptions import ImproperlyConfigured

EXAMPLES = Path(__file__).with_name("api_examples.json")
PROBLEM = {
    "type": "object",
    "description": "An error (RFC 9457). Programs act upon `code`; people read `detail`.",
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string", "description": "The status in words."},
        "status": {"type": "integer"},
        "code": {"type": "string", "description": "What went wrong, as a stable word."},
        "detail": {"type": "string", "description": "What went wrong, as a sentence."},
        "errors": {"description": "Which fields are wrong, and why."},
    },
    "required": ["type", "title", "status", "code", "detail"],
}
ERRORS = {
    "400": ("invalid", "Some fields are not valid."),
    "401": ("signed_out", "Authentication credentials were not provided."),
    "403": ("permission_denied", "You do not have permission to perform this action."),
    "404": ("not_found", "Not found."),
    "406": ("not_acceptable", "Could not satisfy the request Accept header."),
    "409": ("conflict", "The item is decided already."),
    "415": ("unsupported_media_type", "Send application/json."),
    "429": ("too_many_requests", "More than 600 requests in a minute; ask again in 20 s."),
    "503": ("busy", "The server is busy. Nothing was stored; please send it again."),
}
TITLES = {
    "400": "Bad Request", "401": "Unauthorized", "403": "Forbidden", "404": "Not Found",
    "406": "Not Acceptable", "409": "Conflict", "415": "Unsupported Media Type", "429": "Too Many Requests", "503": "Service Unavailable",
}  # fmt: skip


@cache
def examples() -> dict[str, dict[str, Any]]:
    """Operation → its example: ``parameters``, ``request`` and ``response``, as far as there are."""
    found: dict[str, dict[str, Any]] = json.loads(EXAMPLES.read_text(encoding="utf-8"))
    return found


def describe(result: dict[str, Any], **_more: Any) -> dict[str, Any]:
    """A postprocessing hook of drf-spectacular: complete each operation in place.

    Raises `ImproperlyConfigured` when a serializer takes the name of the errors' schema.
    """
    schemas = result["components"]["schemas"]
    if schemas.setdefault("Problem", PROBLEM) is not PROBLEM:
        raise ImproperlyConfigured("Rename ProblemSerializer: errors are called Problem.")
    for path, methods in result["paths"].items():
        for method, operation in methods.items():
            _add_errors(operation, path, method)
            if method == "get":
                _add_conditional(operation)
            _add_examples(operation)
    return result


def statuses(operation: dict[str, Any], path: str, method: str) -> set[str]:
    """The errors that an operation may answer with."""
    found = {"401", "403", "406", "429"}
    parameters = operation.get("parameters", [])
    if "{" in path or any(p["name"] in {"page", "format"} for p in parameters):
        found.add("404")
    if path.endswith("/leaderboard/"):
        found |= {"404"}
    if "requestBody" in operation:
        found |= {"400", "415"}
    elif any(p["in"] == "query" for p in parameters):
        found.add("400")
    if "{slug}" in path:
        found.add("503")
    if operation["operationId"].startswith("judging_") and method == "post":
        found.add("409")
    return found


def _add_errors(operation: dict[str, Any], path: str, method: str) -> None:
    for status in sorted(statuses(operation, path, method)):
        code, detail = ERRORS[status]
        example = {
            "type": "about:blank", "title": TITLES[status], "status": int(status),
            "code": code, "detail": detail,
        }  # fmt: skip
        content = {"schema": {"$ref": "#/components/schemas/Problem"}, "example": example}
        found: dict[str, Any] = {
            "description": TITLES[status],
            "content": {"application/problem+json": content},
        }
        if status in {"429", "503"}:
            found["headers"] = {
                "Retry-After": {"schema": {"type": "integer"}, "description": "Seconds to wait."}
            }
        operation["responses"].setdefault(status, found)


def _add_conditional(operation: dict[str, Any]) -> None:
    """GET answers carry an ``ETag``; a client that sends it back may be told: nothing new."""
    operation["responses"]["200"].setdefault("headers", {})["ETag"] = {
        "schema": {"type": "string"},
        "description": "Send it back as `If-None-Match` to get 304 while nothing has changed.",
    }
    operation["responses"]["304"] = {"description": "Nothing has changed."}


def _add_examples(operation: dict[str, Any]) -> None:
    found = examples().get(operation["operationId"], {})
    for parameter in operation.get("parameters", []):
        if parameter["name"] in found.get("parameters", {}):
            parameter["example"] = found["parameters"][parameter["name"]]
    if "request" in found and "requestBody" in operation:
        for content in operation["requestBody"]["content"].values():
            content["example"] = found["request"]
    if "response" in found:
        for content in operation["responses"]["200"]["content"].values():
            content["example"] = found["response"]
