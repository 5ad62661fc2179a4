"""Where a request comes from, also behind proxies."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING

from django.conf import settings

if TYPE_CHECKING:
    from django.http import HttpRequest

UNKNOWN = "0.0.0.0"  # noqa: S104  # a name for "nobody knows", nothing listens on it


def client_address(request: HttpRequest) -> str:
    """The address of the client as the outermost of our ``PROXY_COUNT`` proxies saw it.

    Each proxy appends what it saw to ``X-Forwarded-For``, so only the last ``PROXY_COUNT``
    entries can be trusted; whatever stands before them was written by the client itself.
    """
    direct = str(request.META.get("REMOTE_ADDR") or UNKNOWN)
    count: int = settings.PROXY_COUNT
    if not count:
        return direct
    seen = [part.strip() for part in request.headers.get("X-Forwarded-For", "").split(",")]
    # Fewer entries than proxies: the request took a short cut, its header proves nothing.
    return _plain(seen[-count]) or direct if len(seen) >= count else direct


def client_network(request: HttpRequest) -> str:
    """What one household or machine holds: the address in IPv4, its /64 in IPv6."""
    address = client_address(request)
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return UNKNOWN
    if isinstance(found, ipaddress.IPv4Address):
        return str(found)
    if found.ipv4_mapped:
        return str(found.ipv4_mapped)
    return str(ipaddress.ip_network((found, 64), strict=False).network_address)


def _plain(text: str) -> str:
    """An address as it is written, without a port; "" for anything else."""
    bare = text.partition("]")[0].lstrip("[") if text.startswith("[") else text
    if bare.count(":") == 1:
        bare = bare.partition(":")[0]
    try:
        return str(ipaddress.ip_address(bare))
    except ValueError:
        return ""
