"""Times are shown in the person's own zone."""

from __future__ import annotations

import zoneinfo
from typing import TYPE_CHECKING

from django.utils import timezone

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.http import HttpRequest, HttpResponse


def own_timezone(
    get_response: Callable[[HttpRequest], HttpResponse],
) -> Callable[[HttpRequest], HttpResponse]:
    """Activate the signed-in person's time zone while a page is made; the API speaks UTC."""

    def middleware(request: HttpRequest) -> HttpResponse:
        name = "" if request.path.startswith("/api/") else getattr(request.user, "timezone", "")
        if not name:
            return get_response(request)
        try:
            zone = zoneinfo.ZoneInfo(name)
        except (zoneinfo.ZoneInfoNotFoundError, ValueError):
            return get_response(request)  # A zone that this system no longer knows.
        with timezone.override(zone):
            return get_response(request)

    return middleware
