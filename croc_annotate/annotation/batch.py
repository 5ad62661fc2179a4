"""Several writes in one round trip.

A judging request changes four tables. On PostgreSQL the statements go over the wire together
(the client binds the values), which saves most of the request's waiting; on SQLite, which is
in the same process, they run one after the other. The order of the statements is kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from django.db import connection
from django.db.models.sql import InsertQuery, UpdateQuery

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.db.models import Model, QuerySet


class WriteBatch:
    """Collects updates and inserts; ``run`` sends them. Use inside a transaction."""

    def __init__(self) -> None:
        self._statements: list[tuple[str, tuple[Any, ...]]] = []

    def update(self, rows: QuerySet[Any], **values: Any) -> None:
        """``rows.update(**values)``, later. No joins, no slices."""
        query = cast("UpdateQuery", rows.query.chain(UpdateQuery))
        query.clear_ordering(force=True)
        query.add_update_values(values)
        self._add(*query.get_compiler(connection=connection).as_sql())

    def insert(self, rows: Sequence[Model]) -> None:
        """``bulk_create(rows)``, later, without reading back generated keys."""
        if not rows:
            return
        meta = type(rows[0])._meta
        automatic = [field for field in meta.concrete_fields if field is not meta.auto_field]
        query = InsertQuery(type(rows[0]))
        query.insert_values(automatic, list(rows))
        for sql, params in query.get_compiler(connection=connection).as_sql():
            self._add(sql, params)

    def _add(self, sql: str, params: Sequence[Any]) -> None:
        if sql:
            self._statements.append((sql, tuple(params)))

    def run(self) -> None:
        """Send what was collected."""
        statements, self._statements = self._statements, []
        if not statements:
            return
        with connection.cursor() as cursor:
            if connection.vendor == "postgresql":
                params = [value for _, values in statements for value in values]
                cursor.execute("; ".join(sql for sql, _ in statements), params)
                return
            for sql, values in statements:
                cursor.execute(sql, values)
