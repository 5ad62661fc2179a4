"""Responses counted by status class, in this process.

With several web processes each scrape sees one of them; rates of errors are still right, for
each process answers a like share of the requests. The counts that must be exact (answers,
images) are read from the database instead.
"""

from __future__ import annotations

from collections import Counter

_responses: Counter[str] = Counter()


def count_response(*, status: int) -> None:
    """Count one answered request."""
    _responses[f"{status // 100}xx"] += 1


def responses_by_class() -> dict[str, int]:
    """Answered requests of this process by status class."""
    return dict(_responses)
