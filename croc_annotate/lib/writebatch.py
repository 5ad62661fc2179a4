"""Several writes in one round trip.

A judging request changes four tables. On PostgreSQL the statements, prepared on the server, go
over the wire together, which saves most of the request's waiting; on SQLite, which is in the
same process, they run one after the other. The order of the statements is kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from croc_annotate.lib.prepared import database, numbered, prepares, statement_cursor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.db.backends.base.base import BaseDatabaseWrapper
    from django.db.models import Field, Model


@dataclass(frozen=True, slots=True)
class Plus:
    """A number to be added to what the column holds."""

    number: int


@dataclass(slots=True)
class _Update:
    model: type[Model]
    pks: Sequence[Any]
    values: dict[str, Any]


class WriteBatch:
    """Collects updates and inserts of whole rows; ``run`` sends them. Use inside a transaction."""

    def __init__(self) -> None:
        self._steps: list[_Update | list[Model]] = []

    def update(self, model: type[Model], pks: Sequence[Any], **values: Any) -> None:
        """Set columns of the rows with these keys, later; `Plus` adds to them."""
        if pks:
            self._steps.append(_Update(model, pks, values))

    def update_one(self, row: Model, **values: Any) -> None:
        """As `update` for one row; several calls become one statement at the place of the first."""
        for step in self._steps:
            if isinstance(step, _Update) and step.model is type(row) and step.pks == [row.pk]:
                step.values.update(values)
                return
        self.update(type(row), [row.pk], **values)

    def insert(self, rows: Sequence[Model]) -> None:
        """Add rows, later, without reading back generated keys."""
        if rows:
            self._steps.append(list(rows))

    def run(self) -> None:
        """Send what was collected."""
        steps, self._steps = self._steps, []
        if not steps:
            return
        db = database()
        statements = [
            _update(step, db) if isinstance(step, _Update) else _insert(step, db) for step in steps
        ]
        cursor = statement_cursor(db)
        if prepares(db):
            texts: Any = tuple(sql for sql, _ in statements)
            cursor.execute(texts, [values for _, values in statements])
            return
        for sql, values in statements:
            cursor.execute(sql, values)


def _update(step: _Update, db: BaseDatabaseWrapper) -> tuple[str, list[Any]]:
    params: list[Any] = []
    for name, value in step.values.items():
        added = isinstance(value, Plus)
        field = _field(step.model, name)
        params.append(value.number if added else field.get_db_prep_save(value, db))
    keys = [step.model._meta.pk.get_db_prep_value(pk, db) for pk in step.pks]
    names = tuple((name, isinstance(value, Plus)) for name, value in step.values.items())
    # One key is asked for as such: of a list the server does not know the length, and would
    # plan the statement anew each time.
    listed = prepares(db) and len(keys) > 1
    sql = _update_sql(step.model, names, 0 if listed else len(keys), db.vendor)
    return sql, [*params, keys] if listed else params + keys


def _insert(rows: Sequence[Model], db: BaseDatabaseWrapper) -> tuple[str, list[Any]]:
    model = type(rows[0])
    fields = _fields(model)
    params = [
        field.get_db_prep_save(field.pre_save(row, add=True), db)
        for row in rows
        for field in fields
    ]
    return _insert_sql(model, len(rows), db.vendor), params


# --- texts, made once for each shape ---------------------------------------------------------


@lru_cache(maxsize=64)
def _fields(model: type[Model]) -> tuple[Field[Any, Any], ...]:
    """All columns but a key that the database makes."""
    return tuple(f for f in model._meta.concrete_fields if f is not model._meta.auto_field)


@lru_cache(maxsize=512)
def _field(model: type[Model], name: str) -> Field[Any, Any]:
    return model._meta.get_field(name)  # type: ignore[return-value]  # no relation back is written


@lru_cache(maxsize=512)
def _update_sql(
    model: type[Model], names: tuple[tuple[str, bool], ...], keys: int, _vendor: str
) -> str:
    """For rows by ``keys`` keys; 0: by one list of keys."""
    parts = []
    for name, added in names:
        column = _quoted(_field(model, name).column)
        parts.append(f"{column} = {column} + %s" if added else f"{column} = %s")
    which = f"IN ({', '.join(['%s'] * keys)})" if keys else "= ANY(%s)"
    table, key = _quoted(model._meta.db_table), _quoted(model._meta.pk.column)
    sql = f"UPDATE {table} SET {', '.join(parts)} WHERE {key} {which}"  # noqa: S608  # names of ours, values bound
    return _as_prepared(sql)


@lru_cache(maxsize=512)
def _insert_sql(model: type[Model], rows: int, _vendor: str) -> str:
    fields = _fields(model)
    columns = ", ".join(_quoted(field.column) for field in fields)
    marks = f"({', '.join(['%s'] * len(fields))})"
    table = _quoted(model._meta.db_table)
    sql = f"INSERT INTO {table} ({columns}) VALUES {', '.join([marks] * rows)}"  # noqa: S608  # names of ours, values bound
    return _as_prepared(sql)


def _as_prepared(sql: str) -> str:
    return numbered(sql) if prepares(database()) else sql


def _quoted(name: str | None) -> str:
    return database().ops.quote_name(str(name))
