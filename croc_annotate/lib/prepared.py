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

from django.db import DEFAULT_DB_ALIAS, connections
from django.db.models import Model
from psycopg.sql import Literal

from croc_annotate.lib.rowreader import RowReader

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from django.db.backends.base.base import BaseDatabaseWrapper
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


def database() -> BaseDatabaseWrapper:
    """This thread's connection itself: the usual proxy looks it up at each touch."""
    return connections[DEFAULT_DB_ALIAS]


class Prepared(Generic[M]):
    """One compiled queryset."""

    def __init__(self, rows: QuerySet[M], count: int) -> None:
        db = database()
        compiler: Any = rows.query.get_compiler(connection=db)
        sql, params = compiler.as_sql()
        places = {
            _adapted(mark, db): place
            for place in range(count)
            for mark in (whole(place), text(place), key(place))
        }
        # For each parameter which value it is; None: it is fixed.
        at = [places[value] if _known(value, places) else None for value in params]
        self._fixed: list[Any] = list(params)
        self._at: Sequence[int | None] = at
        self.sql = sql
        if prepares(db):
            numbers = {place: number for number, place in enumerate(_different(at), 1)}
            which = [None if place is None else numbers[place] for place in at]
            self.sql = _with_literals(sql, params, which)
            # From here on each value is one parameter, and there are no others.
            self._at = list(numbers)
        self._reader: RowReader[M] = RowReader(compiler)

    def __call__(self, *values: Any) -> list[M]:
        """The rows for these values, in the order of their marks."""
        db = database()
        cursor = statement_cursor(db)
        cursor.execute(self.sql, self.bound(values, db))
        return self.instances(cursor.fetchall(), db)

    def bound(self, values: Sequence[Any], db: BaseDatabaseWrapper) -> list[Any]:
        """The parameters of the statement."""
        if prepares(db):
            return [values[place] for place in self._at if place is not None]
        return [
            fixed if place is None else _adapted(values[place], db)
            for place, fixed in zip(self._at, self._fixed, strict=True)
        ]

    def instances(self, rows: Sequence[Sequence[Any]], db: BaseDatabaseWrapper) -> list[M]:
        """Model instances of fetched rows."""
        return [self._reader.read(row, db) for row in rows]


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
    db = database()
    if not prepares(db):
        return first.answer(), then.answer()
    cursor = statement_cursor(db)
    statements: Any = (first.query.sql, then.query.sql)
    values = [first.query.bound(first.values, db), then.query.bound(then.values, db)]
    cursor.execute(statements, values)
    rows, more = cursor.fetch_each(2)
    return first.query.instances(rows, db), then.query.instances(more, db)


def statement_cursor(db: BaseDatabaseWrapper) -> CursorWrapper:
    """The cursor for statements of always the same text; its rows are read before its next use."""
    if prepares(db):
        cursor: CursorWrapper = db.preparing_cursor()  # type: ignore[attr-defined]
        return cursor
    return db.cursor()


def numbered(sql: str) -> str:
    """``sql`` with ``$1``, ``$2`` … for its ``%s``, as a prepared statement wants them."""
    first, *parts = sql.split("%s")
    rest = (f"${number}{part}" for number, part in enumerate(parts, start=1))
    return "".join([first, *rest]).replace("%%", "%")


def _with_literals(sql: str, params: Sequence[Any], numbers: Sequence[int | None]) -> str:
    """``sql`` with ``$n`` for its ``%s`` where a value comes, and what is fixed written out.

    To a plan for all values a parameter is unknown: an index of the rows in one state is of no
    use to it unless the statement names that state.
    """
    first, *parts = (part.replace("%%", "%") for part in sql.split("%s"))
    marks = [
        _literal(value) if number is None else f"${number}"
        for value, number in zip(params, numbers, strict=True)
    ]
    return "".join([first, *(mark + part for mark, part in zip(marks, parts, strict=True))])


def _literal(value: Any) -> str:
    if not isinstance(value, str | bool | int):
        raise TypeError(f"no literal for {type(value).__name__}")
    return str(Literal(value).as_string())


def _different(places: Sequence[int | None]) -> list[int]:
    """Each place once, in the order of the first."""
    return list(dict.fromkeys(place for place in places if place is not None))


def prepares(db: BaseDatabaseWrapper) -> bool:
    """True if this database keeps prepared statements for us."""
    return hasattr(db, "preparing_cursor")


def _adapted(value: Any, db: BaseDatabaseWrapper) -> Any:
    """As the database's driver wants it."""
    if db.vendor == "postgresql":
        return value
    if isinstance(value, uuid.UUID):
        return value.hex
    if isinstance(value, datetime):
        return db.ops.adapt_datetimefield_value(value.astimezone(UTC))
    return value


def _known(value: Any, places: dict[Any, int]) -> bool:
    return isinstance(value, int | str | uuid.UUID) and value in places


_compiled: dict[Hashable, Prepared[Any]] = {}


def prepared(shape: Hashable, count: int, build: Callable[[], QuerySet[M]]) -> Prepared[M]:
    """The compiled form of ``build()`` with ``count`` values, kept by ``shape``.

    ``shape`` must name everything that changes the SQL. Two threads that compile it at once
    make the same thing twice, which does no harm.
    """
    name = (database().vendor, shape)
    found = _compiled.get(name)
    if found is None:
        found = _compiled[name] = Prepared(build(), count)
    return found
