"""Several writes in one round trip.

A judging request changes four tables. On PostgreSQL the statements go over the wire together
(the client binds the values), which saves most of the request's waiting; on SQLite, which is
in the same process, they run one after the other. The order of the statements is kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from django.db import connection

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.db.models import Field, Model


@dataclass(frozen=True, slots=True)
class Plus:
    """A number to be added to what the column holds."""

    number: int


@lru_cache(maxsize=64)
def _fields(model: type[Model]) -> tuple[Field[Any, Any], ...]:
    """All columns but a key that the database makes."""
    return tuple(f for f in model._meta.concrete_fields if f is not model._meta.auto_field)


class WriteBatch:
    """Collects updates and inserts of whole rows; ``run`` sends them. Use inside a transaction."""

    def __init__(self) -> None:
        self._statements: list[tuple[str, list[Any]]] = []

    def update(self, model: type[Model], pks: Sequence[Any], **values: Any) -> None:
        """Set columns of the rows with these keys, later; `Plus` adds to them."""
        if not pks:
            return
        meta = model._meta
        parts, params = [], []
        for name, value in values.items():
            field = meta.get_field(name)
            column = _quoted(field.column)  # type: ignore[union-attr]  # no relation back is written
            if isinstance(value, Plus):
                parts.append(f"{column} = {column} + %s")
                params.append(value.number)
            else:
                parts.append(f"{column} = %s")
                params.append(field.get_db_prep_save(value, connection))  # type: ignore[union-attr]
        key = meta.pk
        params += [key.get_db_prep_value(pk, connection) for pk in pks]
        marks = ", ".join(["%s"] * len(pks))
        sql = f"UPDATE {_quoted(meta.db_table)} SET {', '.join(parts)} WHERE {_quoted(key.column)} IN ({marks})"  # noqa: S608  # names of ours, values bound
        self._statements.append((sql, params))

    def insert(self, rows: Sequence[Model]) -> None:
        """Add rows, later, without reading back generated keys."""
        if not rows:
            return
        fields = _fields(type(rows[0]))
        columns = ", ".join(_quoted(field.column) for field in fields)
        marks = f"({', '.join(['%s'] * len(fields))})"
        params = [
            field.get_db_prep_save(field.pre_save(row, add=True), connection)
            for row in rows
            for field in fields
        ]
        table = _quoted(rows[0]._meta.db_table)
        sql = f"INSERT INTO {table} ({columns}) VALUES {', '.join([marks] * len(rows))}"  # noqa: S608  # names of ours, values bound
        self._statements.append((sql, params))

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


def _quoted(name: str | None) -> str:
    return connection.ops.quote_name(str(name))
