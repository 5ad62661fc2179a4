"""Hugging Face ImageFolder: images as files, their rows in one metadata file a split."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext_noop

from croc_annotate.lib.hashing import canonical_json
from croc_annotate.releases.columns import image_row, plain_schema
from croc_annotate.releases.export.payloads import exported_suffix
from croc_annotate.releases.export.tables import write_table
from croc_annotate.releases.formats.files import write_images

if TYPE_CHECKING:
    from collections.abc import Iterator

    from croc_annotate.releases.export.workdir import WorkFolder
    from croc_annotate.releases.formats.base import Job
    from croc_annotate.releases.records import ImageRecord


class ImageFolderFormat:
    """Every image has its row and every row its image: the loader drops strays in silence."""

    name = "imagefolder"
    summary = gettext_noop(
        'images and a metadata file a split: load_dataset("imagefolder", data_dir=…)'
    )

    def write(self, job: Job, out: WorkFolder) -> None:
        """Split by split: the metadata file, then the images."""
        for split in job.splits:
            folder = f"{self.name}/data/{split}"
            self._write_metadata(job, out, split, f"{folder}/metadata.{job.options.metadata}")
            write_images(
                job,
                out,
                job.images_of(split),
                lambda record, folder=folder: f"{folder}/{_file_name(record, job)}",  # type: ignore[misc]
            )

    def _write_metadata(self, job: Job, out: WorkFolder, split: str, path: str) -> None:
        if job.options.metadata == "parquet":
            write_table(out, path, plain_schema("image", first="file_name"), _rows(job, split))
        elif out.finished(path) is None:
            with out.create(path) as sink:
                for row in _rows(job, split):
                    sink.write(canonical_json(row).encode() + b"\n")
                    sink.rows += 1


def _rows(job: Job, split: str) -> Iterator[dict[str, Any]]:
    for record in job.images_of(split):
        yield {"file_name": _file_name(record, job), **image_row(record, job.options)}


def _file_name(record: ImageRecord, job: Job) -> str:
    return f"{record.pair.category}/{record.id}{exported_suffix(record, job.options)}"
