"""WebDataset: tar shards in which an image and its row stand side by side."""

from __future__ import annotations

from itertools import chain, islice
from typing import TYPE_CHECKING

from django.utils.translation import gettext_noop

from croc_annotate.lib.hashing import canonical_json, sha256_text
from croc_annotate.releases.columns import image_row
from croc_annotate.releases.export.tables import SHARD_BYTES
from croc_annotate.releases.export.tarfiles import end_of_tar, tar_entry, tar_header, tar_padding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from croc_annotate.releases.export.payloads import Payload
    from croc_annotate.releases.export.workdir import HashedFile, WorkFolder
    from croc_annotate.releases.formats.base import Job


class WebDatasetFormat:
    """``<key>.<ending>`` and ``<key>.json``; the key ends at the first dot, so it holds none."""

    name = "webdataset"
    summary = gettext_noop("tar shards of KEY.png and KEY.json for streaming")

    def write(self, job: Job, out: WorkFolder) -> None:
        """Split by split."""
        for split in job.splits:
            self._write_split(job, out, split)

    def _write_split(self, job: Job, out: WorkFolder, split: str) -> None:
        records = job.images_of(split)
        number = 0
        while (entry := out.finished(self._path(split, number))) is not None:
            for _ in islice(records, entry.rows):
                job.tick()
            number += 1
        first = next(records, None)
        if first is None and number:
            return
        payloads = job.loader.payloads(chain([first], records) if first is not None else ())
        pending = next(payloads, None)
        while True:
            with out.create(self._path(split, number)) as sink:
                pending = _write_shard(sink, job, pending, payloads)
            number += 1
            if pending is None:
                return

    def _path(self, split: str, number: int) -> str:
        return f"{self.name}/{split}-{number:05d}.tar"


def _write_shard(
    sink: HashedFile, job: Job, pending: Payload | None, payloads: Iterator[Payload]
) -> Payload | None:
    while pending is not None and (not sink.rows or sink.size + len(pending.data) <= SHARD_BYTES):
        key = key_of(pending.record.id)
        row = canonical_json(image_row(pending.record, job.options)).encode()
        # The short endings are what readers look for.
        name = f"{key}{pending.suffix}"
        sink.write(tar_header(name, len(pending.data)))
        sink.write(pending.data)
        sink.write(tar_padding(len(pending.data)))
        sink.write(tar_entry(f"{key}.json", row))
        sink.rows += 1
        job.tick()
        pending = next(payloads, None)
    sink.write(end_of_tar())
    return pending


def key_of(image_id: str) -> str:
    """A key without dots, unique as the id is."""
    if "." not in image_id:
        return image_id
    return f"{image_id.replace('.', '-')}-{sha256_text(image_id)[:8]}"
