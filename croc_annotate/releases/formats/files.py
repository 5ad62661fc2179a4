"""Images as files of their own: written by several threads, noted in order."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from croc_annotate.releases.export.workdir import Entry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from croc_annotate.releases.export.payloads import Payload
    from croc_annotate.releases.export.workdir import WorkFolder
    from croc_annotate.releases.formats.base import Job
    from croc_annotate.releases.records import ImageRecord


def write_images(
    job: Job,
    out: WorkFolder,
    records: Iterable[ImageRecord],
    path_of: Callable[[ImageRecord], str],
) -> None:
    """Write each image to ``path_of`` it; those that are there already are kept."""

    def store(payload: Payload) -> Entry:
        path = path_of(payload.record)
        out.place(path).write_bytes(payload.data)
        source = payload.record.sha256 if payload.sha256 != payload.record.sha256 else ""
        return Entry(path, len(payload.data), payload.sha256, 1, source)

    rest = _unfinished(job, out, iter(records), path_of)
    for entry in job.loader.each(rest, store):
        out.add(entry)
        job.tick()


def _unfinished(
    job: Job,
    out: WorkFolder,
    records: Iterator[ImageRecord],
    path_of: Callable[[ImageRecord], str],
) -> Iterator[ImageRecord]:
    for record in records:
        if out.finished(path_of(record)) is None:
            return chain([record], records)
        job.tick()
    return iter(())
