"""Writing many rows at once, without an object for each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import connections, router
from django.db.models import CharField, Func

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from django.db.models import Model

_CHUNK = 10_000


class UtcText(Func):
    """A date and time as ``2026-03-01T12:00:00.000000Z``, formatted by the database."""

    output_field = CharField()

    def as_postgresql(self, compiler: Any, connection: Any, **extra: Any) -> Any:
        """``US`` are microseconds."""
        pattern = 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'
        template = f"to_char(%(expressions)s AT TIME ZONE 'UTC', '{pattern}')"
        return self.as_sql(compiler, connection, template=template, **extra)

    def as_sqlite(self, compiler: Any, connection: Any, **extra: Any) -> Any:
        """SQLite keeps text in UTC, with six places of a second or none."""
        column, _ = compiler.compile(self.get_source_expressions()[0])
        places = f"CASE WHEN instr({column}, '.') THEN substr({column}, 21, 6) ELSE '000000' END"
        template = f"(replace(substr({column}, 1, 19), ' ', 'T') || '.' || {places} || 'Z')"
        return template, ()


def insert_rows(
    model: type[Model], columns: Sequence[str], rows: Iterable[Sequence[object]]
) -> None:
    """Insert ``rows``, whose cells stand in the order of ``columns`` (database names).

    COPY on PostgreSQL, one prepared statement elsewhere; the database's own checks and triggers
    hold, those of Django's fields do not run.
    """
    connection = connections[router.db_for_write(model)]
    quote = connection.ops.quote_name
    table, names = quote(model._meta.db_table), ", ".join(map(quote, columns))
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            with cursor.copy(f"COPY {table} ({names}) FROM STDIN") as copy:
                for row in rows:
                    copy.write_row(row)
        else:
            marks = ", ".join(["%s"] * len(columns))
            # Names of our own models, quoted; the cells are parameters.
            statement = f"INSERT INTO {table} ({names}) VALUES ({marks})"  # noqa: S608  # see above
            cursor.executemany(statement, rows)  # type: ignore[arg-type]
