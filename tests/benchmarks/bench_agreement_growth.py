"""The agreement pages with 2.4 M judgements of 800,000 candidates on PostgreSQL: minutes, not seconds.

Fills a database of ten times the size of ``bench_agreement``; statistics are beside ten times the
limit there, pages beside the same limit, for a page must not grow with the campaign.
"""

from __future__ import annotations

from tests.benchmarks.bench_agreement import database_rows
from tests.benchmarks.frame import Row


def run(quick: bool) -> list[Row]:
    """What is read, computed and shown at ten times the size."""
    return database_rows(seeds=5 if quick else 500, growth=1 if quick else 10)
