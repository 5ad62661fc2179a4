"""Responses counted by status class, over all web processes.

gunicorn sets PROMETHEUS_MULTIPROC_DIR (deploy/gunicorn.conf.py): each process then counts in a
file of its own, and a scrape of any of them adds the files up. A server of one process counts in
its memory.
"""

from __future__ import annotations

import os

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.multiprocess import MultiProcessCollector

_own = CollectorRegistry()
_responses = Counter(
    "croc_http_responses", "Responses by class of status", ["status"], registry=_own
)
_seconds = Histogram(
    "croc_http_seconds",
    "Seconds from a request to its response",
    registry=_own,
    buckets=(0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10),
)


def count_response(*, status: int, seconds: float) -> None:
    """Count one answered request."""
    _responses.labels(f"{status // 100}xx").inc()
    _seconds.observe(seconds)


def counted() -> CollectorRegistry:
    """The counts of all processes of this server."""
    if not os.environ.get("PROMETHEUS_MULTIPROC_DIR"):
        return _own
    registry = CollectorRegistry()
    MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    return registry
