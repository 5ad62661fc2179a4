"""Yes/No rows for fine-tuning a metric, split so that no text is on both sides."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext_noop

from croc_annotate.releases.columns import embedded_schema
from croc_annotate.releases.export.tables import write_image_shards
from croc_annotate.releases.formats.parquet import embedded

if TYPE_CHECKING:
    from collections.abc import Iterator

    from croc_annotate.releases.export.payloads import Payload
    from croc_annotate.releases.export.workdir import WorkFolder
    from croc_annotate.releases.formats.base import Job
    from croc_annotate.releases.records import ImageRecord

# The question that CROCScore was trained and is asked with.
QUESTION = "Does this image show the following content:'{text}'? Answer with Yes or No."


class SftFormat:
    """Each scored image twice: with the text that it shows, and with the one that it does not."""

    name = "sft"
    summary = gettext_noop("Yes/No questions about the images, for fine-tuning a metric (Parquet)")

    def write(self, job: Job, out: WorkFolder) -> None:
        """Split by split."""
        judged = job.facts.exclusive

        def rows_of(payload: Payload) -> list[dict[str, Any]]:
            record = payload.record
            cell = embedded(payload)
            return [
                _row(cell, record, record.text, "Yes", "judged"),
                _row(cell, record, record.contrast_text, "No", "judged" if judged else "assumed"),
            ]

        for split in job.splits:
            write_image_shards(
                job,
                out,
                scored(job.images_of(split)),
                schema=embedded_schema("sft"),
                path_of=lambda n, split=split: f"{self.name}/data/{split}-{n:05d}.parquet",  # type: ignore[misc]
                rows_of=rows_of,
            )


def scored(records: Iterator[ImageRecord]) -> Iterator[ImageRecord]:
    """The images of P and Q."""
    return (record for record in records if record.role)


def _row(
    cell: dict[str, Any], record: ImageRecord, text: str, answer: str, answer_from: str
) -> dict[str, Any]:
    return {
        "image": cell, "id": f"{record.id}___{answer.lower()}",
        "question": QUESTION.replace("{text}", text), "answer": answer, "text": text,
        "answer_from": answer_from, "category": record.pair.category,
        "pair_id": record.pair.slug, "side": record.side, "generator": record.generator.slug,
        "generator_licence": record.generator.licence, "sha256": record.sha256,
    }  # fmt: skip
