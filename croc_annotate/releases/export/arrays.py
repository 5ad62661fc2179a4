"""Arrow tables from rows, built from buffers.

``Table.from_pylist`` imports pandas wherever that happens to be installed: 60 MB and a second
that an export does not need.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa


def table_of(rows: Sequence[dict[str, Any]], schema: pa.Schema) -> pa.Table:
    """Rows as a table; a missing value is None."""
    import pyarrow as pa

    columns = [column_of([row[field.name] for row in rows], field.type) for field in schema]
    return pa.Table.from_arrays(columns, schema=schema)


def column_of(values: Sequence[Any], kind: pa.DataType) -> pa.Array | pa.ChunkedArray:
    """One column. Images stay where they were read: a chunk each, for a common one is a copy."""
    import pyarrow as pa

    if pa.types.is_struct(kind):
        return pa.chunked_array([_image(value, kind) for value in values], kind)
    return array_of(values, kind)


def _image(value: dict[str, Any], kind: pa.StructType) -> pa.Array:
    """One image cell on top of the very bytes that were read; both parts are there always."""
    import pyarrow as pa

    parts = [
        pa.Array.from_buffers(field.type, 1, [None, *_variable([value[field.name]])])
        for field in kind
    ]
    return pa.StructArray.from_arrays(parts, fields=list(kind))


def array_of(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """One column of strings, bytes, numbers or timestamps (microseconds)."""
    import pyarrow as pa

    valid = np.fromiter((value is not None for value in values), bool, len(values))
    missing = int(len(values) - valid.sum())
    bits = pa.py_buffer(np.packbits(valid, bitorder="little")) if missing else None
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        buffers = [bits, *_variable(values)]
    else:
        plain = [0 if value is None else value for value in values]
        buffers = [bits, pa.py_buffer(np.asarray(plain, dtype=_numpy_type(kind)))]
    return pa.Array.from_buffers(kind, len(values), buffers, null_count=missing)


def _variable(values: Sequence[str | bytes | None]) -> list[pa.Buffer]:
    import pyarrow as pa

    parts = [value.encode() if isinstance(value, str) else (value or b"") for value in values]
    ends = np.zeros(len(parts) + 1, np.int32)
    np.cumsum([len(part) for part in parts], out=ends[1:])
    # Of a single part this is the part itself, not a copy.
    return [pa.py_buffer(ends), pa.py_buffer(b"".join(parts))]


def _numpy_type(kind: pa.DataType) -> str:
    import pyarrow as pa

    return "int64" if pa.types.is_timestamp(kind) else str(kind.to_pandas_dtype().__name__)
