"""One log line and one count a request.

The line holds the route's pattern, not the address: addresses carry platform ids and keys.
"""

from __future__ import annotations

import logging
import re
import secrets
import time
from typing import TYPE_CHECKING

from croc_annotate.operations import traffic
from croc_annotate.operations.logs import request_id

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.http import HttpRequest, HttpResponse

logger = logging.getLogger("croc_annotate.requests")
SAFE_ID = re.compile(r"[A-Za-z0-9-]{8,64}")
QUIET = {"healthz", "readyz", "metrics"}


class RequestLogMiddleware:
    """Names each request (or keeps the proxy's name for it), times it, counts it by status."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Answer the request, then log and count it."""
        given = request.headers.get("X-Request-ID", "")
        token = request_id.set(given if SAFE_ID.fullmatch(given) else secrets.token_hex(8))
        start = time.perf_counter()
        try:
            response = self.get_response(request)
            response["X-Request-ID"] = request_id.get()
            self._note(request, response, time.perf_counter() - start)
        finally:
            request_id.reset(token)
        return response

    def _note(self, request: HttpRequest, response: HttpResponse, seconds: float) -> None:
        match = request.resolver_match
        route = match.route if match else "(none)"
        if route in QUIET:
            return
        traffic.count_response(status=response.status_code, seconds=seconds)
        level = logging.ERROR if response.status_code >= 500 else logging.INFO
        logger.log(
            level,
            "%s %s %s",
            request.method,
            route,
            response.status_code,
            extra={
                "method": request.method,
                "route": route,
                "status": response.status_code,
                "ms": round(seconds * 1000, 1),
            },
        )
