"""Parquet files written in bounded memory, the same bytes for the same rows."""

from __future__ import annotations

from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from croc_annotate.releases.export.arrays import table_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import pyarrow as pa

    from croc_annotate.releases.export.payloads import Payload
    from croc_annotate.releases.export.workdir import HashedFile, WorkFolder
    from croc_annotate.releases.formats.base import Job
    from croc_annotate.releases.records import ImageRecord

ROWS = 4_000
GROUP_ROWS = 100
# Readers take a row group into memory whole; the limit is 32 MB, our own peak is what we save.
GROUP_BYTES = 8 * 1024 * 1024
SHARD_BYTES = 480 * 1024 * 1024
# The writer remembers each row group of a file until its end: 24 columns, some 50 kB. Of small
# images, half a gigabyte has thousands of groups.
SHARD_ROWS = 20_000


def write_table(
    out: WorkFolder, path: str, schema: pa.Schema, rows: Iterable[dict[str, Any]]
) -> None:
    """Rows without images as one Parquet file."""
    import pyarrow.parquet as pq

    if out.finished(path) is not None:
        return
    stream = iter(rows)
    with (
        out.create(path) as sink,
        pq.ParquetWriter(sink, schema, compression="zstd") as writer,
    ):
        while batch := list(islice(stream, ROWS)):
            _write(writer, table_of(batch, schema))
            sink.rows += len(batch)


def write_image_shards(
    job: Job,
    out: WorkFolder,
    records: Iterable[ImageRecord],
    *,
    schema: pa.Schema,
    path_of: Callable[[int], str],
    rows_of: Callable[[Payload], list[dict[str, Any]]],
) -> None:
    """Rows with their images' bytes as shards of bounded size.

    Where a shard ends depends on the images only, so a continued export cuts at the same places.
    """
    stream = iter(records)
    number = 0
    while (entry := out.finished(path_of(number))) is not None:
        for _ in islice(stream, entry.rows):
            job.tick()
        number += 1
    first = next(stream, None)
    if first is None and number:
        return
    payloads = job.loader.payloads(chain([first], stream) if first is not None else ())
    pending: Payload | None = next(payloads, None)
    while True:
        with out.create(path_of(number)) as sink:
            pending = _write_shard(sink, schema, job, pending, payloads, rows_of)
        number += 1
        if pending is None:
            return


def _write_shard(
    sink: HashedFile,
    schema: pa.Schema,
    job: Job,
    pending: Payload | None,
    payloads: Iterator[Payload],
    rows_of: Callable[[Payload], list[dict[str, Any]]],
) -> Payload | None:
    """Fill one shard; return the first image of the next one, or None at the end."""
    size = written = 0
    images_repeat = "question" in schema.names
    # The dictionary of repeated images is a copy of the group, and its page another.
    limit = GROUP_BYTES // 4 if images_repeat else GROUP_BYTES
    with _writer(sink, schema, images_repeat=images_repeat) as writer:
        group: list[dict[str, Any]] = []
        held = 0
        while pending is not None and not _full(written, size + len(pending.data)):
            rows = rows_of(pending)
            if group and (len(group) + len(rows) > GROUP_ROWS or held + len(pending.data) > limit):
                _flush(writer, schema, group)
                group, held = [], 0
            group += rows
            written += len(rows)
            held += len(pending.data)
            size += len(pending.data)
            sink.rows += 1
            job.tick()
            pending = next(payloads, None)
        if group:
            _flush(writer, schema, group)
    return pending


def _full(rows: int, size: int) -> bool:
    """Whether a shard of so many rows cannot take the image that makes it so large."""
    return rows > 0 and (rows >= SHARD_ROWS or size > SHARD_BYTES)


def _writer(sink: HashedFile, schema: pa.Schema, *, images_repeat: bool) -> Any:
    import pyarrow.parquet as pq

    leaves = [name for name in schema.names if name != "image"]
    return pq.ParquetWriter(
        sink,
        schema,
        # Images are compressed already; their minimum and maximum would be two more copies.
        compression={**dict.fromkeys(leaves, "zstd"), "image.bytes": "none", "image.path": "zstd"},
        write_statistics=leaves,
        # Two questions about one image store it once; the limit is above the group's size.
        use_dictionary=[*leaves, "image.path", *(["image.bytes"] if images_repeat else [])],
        dictionary_pagesize_limit=GROUP_BYTES,
    )


def _flush(writer: Any, schema: pa.Schema, group: list[dict[str, Any]]) -> None:
    _write(writer, table_of(group, schema))


def _write(writer: Any, table: pa.Table) -> None:
    """One row group. Arrow's allocator would keep what it took for it: about 10 MB."""
    import pyarrow as pa

    writer.write_table(table, row_group_size=table.num_rows)
    pa.default_memory_pool().release_unused()
