"""The layout of the published benchmark, which the published scripts read."""

from __future__ import annotations

import gzip
from itertools import groupby
from typing import TYPE_CHECKING, BinaryIO, cast

from django.utils.translation import gettext_noop

from croc_annotate.releases.export.payloads import exported_suffix
from croc_annotate.releases.export.tarfiles import end_of_tar, tar_file, tar_header
from croc_annotate.releases.formats.files import write_images
from croc_annotate.releases.published import (
    METADATA_NAME,
    SIDES,
    PublishedRow,
    table_head,
    table_line,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from croc_annotate.releases.export.workdir import WorkFolder
    from croc_annotate.releases.formats.base import Job
    from croc_annotate.releases.records import ImageRecord

_TOP = "croc_hum"


class CrochumFormat:
    """One table and a folder for each category."""

    name = "crochum"
    summary = gettext_noop(
        "the published CROChum folder: croc_hum_metadata.tsv and category/side/image"
    )

    def write(self, job: Job, out: WorkFolder) -> None:
        """Table first, so that a reader of the archive meets it first."""
        table = f"{self.name}/{METADATA_NAME}"
        if out.finished(table) is None:
            with out.create(table) as sink:
                sink.write(table_head().encode())
                for row in published_rows(job):
                    sink.write(table_line(row).encode())
                    sink.rows += 1

        def path_of(record: ImageRecord) -> str:
            return f"{self.name}/{record.published_path(exported_suffix(record, job.options))}"

        write_images(job, out, job.images(), path_of)
        if job.options.tar:
            self._write_tar(out)

    def _write_tar(self, out: WorkFolder) -> None:
        path, prefix = f"{self.name}.tar.gz", f"{self.name}/"
        if out.finished(path) is not None:
            return
        # Level 1: images do not shrink. No name and no time in the head: equal bytes.
        with (
            out.create(path) as sink,
            gzip.GzipFile("", "wb", 1, cast("BinaryIO", sink), mtime=0) as packed,
        ):
            for entry in out.entries():
                if entry.path.startswith(prefix):
                    packed.write(tar_header(f"{_TOP}/{entry.path[len(prefix) :]}", entry.size))
                    tar_file(out.root / entry.path, packed.write)
                    sink.rows += entry.rows
            packed.write(end_of_tar())


def published_rows(job: Job) -> Iterator[PublishedRow]:
    """Every pair with the paths of its images; a pair without images keeps its line."""
    groups = groupby(job.images(), key=lambda record: record.pair.slug)
    waiting = next(groups, None)
    for pair in job.pairs:
        paths: dict[str, tuple[str, ...]] = {}
        if waiting is not None and waiting[0] == pair.slug:
            found: dict[str, list[str]] = {side: [] for side in SIDES}
            for record in waiting[1]:
                suffix = exported_suffix(record, job.options)
                found[record.side].append(record.published_path(suffix))
            paths = {side: tuple(names) for side, names in found.items()}
            waiting = next(groups, None)
        yield PublishedRow(pair.slug, pair.prompt, pair.contrast, paths)
    if waiting is not None:
        raise RuntimeError(f"images of {waiting[0]} stand outside the order of the pairs")
