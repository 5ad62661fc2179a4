"""Parquet with the images inside, as ``datasets`` and its viewer read it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext_noop

from croc_annotate.releases.columns import embedded_schema, image_row
from croc_annotate.releases.export.tables import write_image_shards

if TYPE_CHECKING:
    from croc_annotate.releases.export.payloads import Payload
    from croc_annotate.releases.export.workdir import WorkFolder
    from croc_annotate.releases.formats.base import Job


class ParquetFormat:
    """Row groups of at most 100 images and 32 MB, shards of at most 500 MB."""

    name = "parquet"
    summary = gettext_noop(
        "images and columns in Parquet shards: load_dataset(OUT) or load_dataset('parquet')"
    )

    def write(self, job: Job, out: WorkFolder) -> None:
        """Split by split."""

        def rows_of(payload: Payload) -> list[dict[str, Any]]:
            return [{"image": embedded(payload), **image_row(payload.record, job.options)}]

        for split in job.splits:
            write_image_shards(
                job,
                out,
                job.images_of(split),
                schema=embedded_schema("image"),
                path_of=lambda n, split=split: f"{self.name}/data/{split}-{n:05d}.parquet",  # type: ignore[misc]
                rows_of=rows_of,
            )


def embedded(payload: Payload) -> dict[str, Any]:
    """The image cell. The path is a bare file name: no folder of this machine leaves it."""
    return {"bytes": payload.data, "path": f"{payload.record.id}{payload.suffix}"}
