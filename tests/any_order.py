"""Rows of a query that names no order, in any order: for TEST_ORDER=any.

PostgreSQL gives them as they lie on the disk, mostly as they were stored, until its cleaning in
the background makes room between them.
"""

from __future__ import annotations

import random
from typing import Any

from django.db.models.sql.compiler import SQLCompiler


def _is_ordered(query: Any) -> bool:
    if query.extra_order_by or query.order_by:
        return True
    meta = query.get_meta()
    return bool(query.default_ordering and meta and meta.ordering and not query.group_by)


def shuffle_rows() -> None:
    """From now on, where a query is not cut off: which rows a slice has is its own matter."""
    plain, chance = SQLCompiler.results_iter, random.Random()

    def results_iter(self: SQLCompiler, *given: Any, **named: Any) -> Any:
        rows = plain(self, *given, **named)
        if _is_ordered(self.query) or self.query.is_sliced:
            return rows
        rows = list(rows)
        chance.shuffle(rows)
        return iter(rows)

    SQLCompiler.results_iter = results_iter
