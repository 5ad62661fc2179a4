"""Conditional requests to the API: what has not changed is not sent again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.middleware.http import ConditionalGetMiddleware
from django.utils.cache import patch_cache_control, patch_vary_headers

if TYPE_CHECKING:
    from django.http import HttpRequest
    from django.http.response import HttpResponseBase


class ApiConditionalMiddleware(ConditionalGetMiddleware):
    """Give answers of the API an ``ETag``, and answer ``If-None-Match`` with 304.

    The tag is a hash of what this person would get, so a change of rights is a change of tag.
    Pages stay out: each holds a fresh CSRF token. So do images that nginx sends: Django sees
    an empty body there.
    """

    def process_response(
        self, request: HttpRequest, response: HttpResponseBase
    ) -> HttpResponseBase:
        """Mark the answer as one person's own, and leave it out where the client has it."""
        if not request.path.startswith("/api/"):
            return response
        if not response.has_header("Cache-Control"):
            patch_cache_control(response, private=True, no_cache=True)
        patch_vary_headers(response, ["Authorization", "Cookie"])
        return super().process_response(request, response)
