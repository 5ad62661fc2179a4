"""Read many rows into number columns, without a Python object for each cell.

Millions of judgements as tuples would take gigabytes.  PostgreSQL's binary COPY gives
fixed-width rows that numpy reads in place; other databases are read in chunks.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
from django.db import connections
from django.db.models import BigIntegerField, Func
from django.db.models.functions import Cast
from numpy.typing import NDArray

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.db.models import QuerySet
    from django.db.models.expressions import Combinable

Ints = NDArray[np.int64]

_HEADER = 19  # signature, flags, length of the header extension
_CHUNK = 20_000
_NULL = "a column to be read as numbers holds a null"


class EpochSeconds(Func):
    """A date and time as whole seconds since 1970, on either database."""

    output_field = BigIntegerField()

    def as_postgresql(self, compiler: Any, connection: Any, **extra: Any) -> Any:
        """EXTRACT gives a numeric: FLOOR makes it whole."""
        template = "FLOOR(EXTRACT(EPOCH FROM %(expressions)s))"
        return self.as_sql(compiler, connection, template=template, **extra)

    def as_sqlite(self, compiler: Any, connection: Any, **extra: Any) -> Any:
        """SQLite keeps text in UTC."""
        template = "CAST(strftime('%%%%s', %(expressions)s) AS INTEGER)"
        return self.as_sql(compiler, connection, template=template, **extra)


def read_columns(
    rows: QuerySet[Any, Any], columns: Mapping[str, str | Combinable]
) -> dict[str, Ints]:
    """Return one int64 array per named column (a field or an expression).

    Raises ValueError if one of them holds a null.
    """
    casts = {f"_{name}": Cast(what, BigIntegerField()) for name, what in columns.items()}
    selected = rows.annotate(**casts).values_list(*casts)
    connection = connections[rows.db]
    if connection.vendor == "postgresql":
        table = _by_binary_copy(selected, len(casts))
    else:
        table = _by_chunks(selected, len(casts))
    return {name: np.ascontiguousarray(table[:, j]) for j, name in enumerate(columns)}


def _by_binary_copy(selected: QuerySet[Any, Any], width: int) -> Ints:
    sql, parameters = selected.query.sql_with_params()
    data = bytearray()
    with connections[selected.db].cursor() as cursor:
        statement = cursor.mogrify(sql, parameters)
        with cursor.copy(f"COPY ({statement}) TO STDOUT (FORMAT BINARY)") as copy:
            for block in copy:
                data += block
    row = np.dtype([("n", ">i2"), ("cells", [("size", ">i4"), ("value", ">i8")], (width,))])
    count, rest = divmod(len(data) - _HEADER - 2, row.itemsize)
    cells = np.frombuffer(data, dtype=row, count=count, offset=_HEADER)["cells"]
    if rest or (cells["size"] != 8).any():  # a null is shorter than a number
        raise ValueError(_NULL)
    table: Ints = cells["value"].astype(np.int64)
    return table.reshape(count, width)


def _by_chunks(selected: QuerySet[Any, Any], width: int) -> Ints:
    flat = chain.from_iterable(selected.iterator(chunk_size=_CHUNK))
    try:
        return np.fromiter(flat, dtype=np.int64).reshape(-1, width)
    except TypeError:
        raise ValueError(_NULL) from None
