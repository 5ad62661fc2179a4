"""Querysets that are compiled to SQL once.

Building and compiling a queryset takes longer than PostgreSQL takes to answer it. The few
queries of a judging request always have the same shape, so each is compiled at its first use,
with marks in the place of its values, and later only given new values. What comes back are
the same model instances as from the queryset itself. On PostgreSQL the server keeps the plan
too (`croc_annotate.lib.postgres`).
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from django.db import connection
from django.db.models import Model
from django.db.models.query import get_related_populators

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from django.db.backends.utils import CursorWrapper
    from django.db.models import QuerySet

M = TypeVar("M", bound=Model)
N = TypeVar("N", bound=Model)
_MARK = 8_000_000_000_000_000


def whole(place: int) -> int:
    """The mark for the whole number that is the ``place``-th value."""
    return _MARK + place


def text(place: int) -> str:
    """The mark for a text."""
    return f"\ue000{place}\ue000"


def key(place: int) -> uuid.UUID:
    """The mark for a UUID."""
    return uuid.UUID(int=_MARK + place)


def padded(values: Sequence[Any]) -> list[Any]:
    """``values`` with the last one repeated to a power of two: few lengths, so few shapes."""
    size = 1
    while size < len(values):
        size *= 2
    return [*values, *[values[-1]] * (size - len(values))]


class Prepared(Generic[M]):
    """One compiled queryset."""

    def __init__(self, rows: QuerySet[M], count: int) -> None:
        compiler: Any = rows.query.get_compiler(connection=connection)
        sql, params = compiler.as_sql()
        places = {
            _adapted(mark): place
            for place in range(count)
            for mark in (whole(place), text(place), key(place))
        }
        self._params = list(params)
        # Where in the parameters which value goes; one value may go to several places.
        self._slots = [
            (i, places[value]) for i, value in enumerate(params) if _known(value, places)
        ]
        self.sql = numbered(sql) if prepares() else sql
        info = compiler.klass_info
        fields = info["select_fields"]
        self._model = info["model"]
        self._first, self._last = fields[0], fields[-1] + 1
        self._names = [s[0].target.attname for s in compiler.select[self._first : self._last]]
        self._related = get_related_populators(  # type: ignore[call-arg]  # stubs of Django 6
            info, compiler.select, rows.db
        )
        self._annotations = list((compiler.annotation_col_map or {}).items())
        columns = [column[0] for column in compiler.select[: compiler.col_count]]
        self._converters = list(compiler.get_converters(columns).items())

    def __call__(self, *values: Any) -> list[M]:
        """The rows for these values, in the order of their marks."""
        cursor = statement_cursor()
        cursor.execute(self.sql, self.bound(values))
        return self.instances(cursor.fetchall())

    def bound(self, values: Sequence[Any]) -> list[Any]:
        """All parameters of the statement, the values in their places."""
        params = self._params.copy()
        for i, place in self._slots:
            params[i] = _adapted(values[place])
        return params

    def instances(self, rows: Sequence[Sequence[Any]]) -> list[M]:
        """Model instances of fetched rows."""
        return [self._instance(row) for row in rows]

    def _instance(self, raw: Sequence[Any]) -> M:
        row = list(raw)
        for i, (converters, column) in self._converters:
            for convert in converters:
                row[i] = convert(row[i], column, connection)
        made: M = self._model.from_db(connection.alias, self._names, row[self._first : self._last])
        for populator in self._related:
            populator.populate(row, made)
        for name, i in self._annotations:
            setattr(made, name, row[i])
        return made


@dataclass(slots=True)
class Question(Generic[M]):
    """A compiled queryset with its values, not asked yet."""

    query: Prepared[M]
    values: Sequence[Any]

    def answer(self) -> list[M]:
        """The rows."""
        return self.query(*self.values)


def answers_of(first: Question[M], then: Question[N]) -> tuple[list[M], list[N]]:
    """The rows of two questions that need nothing of each other: one round trip where it can be."""
    if not prepares():
        return first.answer(), then.answer()
    cursor = statement_cursor()
    statements: Any = (first.query.sql, then.query.sql)
    cursor.execute(statements, [first.query.bound(first.values), then.query.bound(then.values)])
    rows, more = cursor.fetch_each(2)
    return first.query.instances(rows), then.query.instances(more)


def statement_cursor() -> CursorWrapper:
    """The cursor for statements of always the same text; its rows are read before its next use."""
    if prepares():
        cursor: CursorWrapper = connection.preparing_cursor()  # type: ignore[attr-defined]
        return cursor
    return connection.cursor()


def numbered(sql: str) -> str:
    """``sql`` with ``$1``, ``$2`` … for its ``%s``, as a prepared statement wants them."""
    first, *parts = sql.split("%s")
    rest = (f"${number}{part}" for number, part in enumerate(parts, start=1))
    return "".join([first, *rest]).replace("%%", "%")


def prepares() -> bool:
    """True if this database keeps prepared statements for us."""
    return hasattr(connection, "preparing_cursor")


def _adapted(value: Any) -> Any:
    """As the database's driver wants it."""
    if connection.vendor == "postgresql":
        return value
    if isinstance(value, uuid.UUID):
        return value.hex
    if isinstance(value, datetime):
        return connection.ops.adapt_datetimefield_value(value.astimezone(UTC))
    return value


def _known(value: Any, places: dict[Any, int]) -> bool:
    return isinstance(value, int | str | uuid.UUID) and value in places


_compiled: dict[Hashable, Prepared[Any]] = {}


def prepared(shape: Hashable, count: int, build: Callable[[], QuerySet[M]]) -> Prepared[M]:
    """The compiled form of ``build()`` with ``count`` values, kept by ``shape``.

    ``shape`` must name everything that changes the SQL. Two threads that compile it at once
    make the same thing twice, which does no harm.
    """
    name = (connection.vendor, shape)
    found = _compiled.get(name)
    if found is None:
        found = _compiled[name] = Prepared(build(), count)
    return found
