"""The columns of a release's tables: names, types, and the rows under them."""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING, Any

from croc_annotate.releases.export.payloads import exported_size

if TYPE_CHECKING:
    import pyarrow as pa

    from croc_annotate.releases.export.options import ExportOptions
    from croc_annotate.releases.records import AnnotationRecord, ImageRecord

# In the order of docs/export-format.md.
IMAGE_COLUMNS: dict[str, str] = {
    "id": "string", "category": "string", "pair_id": "string", "side": "string",
    "prompt": "string", "contrast": "string", "text": "string", "contrast_text": "string",
    "generator": "string", "generator_revision": "string", "generator_licence": "string",
    "seed": "int64", "width": "int32", "height": "int32", "sha256": "string",
    "verified_by": "string", "n_accept": "int32", "n_reject": "int32", "n_unsure": "int32",
    "posterior": "float64", "campaign": "string", "guideline_version": "string",
}  # fmt: skip
SFT_COLUMNS: dict[str, str] = {
    "id": "string", "question": "string", "answer": "string", "text": "string",
    "answer_from": "string", "category": "string", "pair_id": "string", "side": "string",
    "generator": "string", "generator_licence": "string", "sha256": "string",
}  # fmt: skip
ANNOTATION_COLUMNS: dict[str, str] = {
    "item": "string", "pair_id": "string", "category": "string", "side": "string",
    "generator": "string", "seed": "int64", "text_role": "string", "annotator": "string",
    "verdict": "string", "active_seconds": "float64", "judged_at": "timestamp[us, tz=UTC]",
    "mode": "string", "guideline_version": "string",
}  # fmt: skip

DESCRIPTIONS: dict[str, str] = {
    "id": "Name of the image, unique in the release",
    "category": "The visual property in which the pair's texts differ",
    "pair_id": "The contrast pair",
    "side": "What the image was made from: prompt, contrast or alt_contrast",
    "prompt": "The pair's first text",
    "contrast": "The pair's second text",
    "text": "The text that people verified the image for",
    "contrast_text": "The pair's text that the image should not show",
    "generator": "The text-to-image model",
    "generator_revision": "Its revision",
    "generator_licence": "Licence of its output",
    "seed": "Seed, or number of the image",
    "width": "Pixels",
    "height": "Pixels",
    "sha256": "SHA-256 of the original file",
    "verified_by": "majority, unanimous, posterior, adjudicated or published",
    "n_accept": "People who accepted the text",
    "n_reject": "People who rejected it",
    "n_unsure": "People who could not tell",
    "posterior": "Probability that the image shows the text, where the rule estimates it",
    "campaign": "The round of judging",
    "guideline_version": "The instructions that people had",
    "question": "What the metric is asked",
    "answer": "Yes or No",
    "answer_from": "judged by people, or assumed from how the pair was made",
    "item": "The image that was judged",
    "text_role": "own: against the text it was verified for; other: against the pair's other text",
    "annotator": "A pseudonym",
    "verdict": "accept, reject or unsure",
    "active_seconds": "Visible, non-idle seconds until the answer",
    "judged_at": "When the answer was stored, UTC",
    "mode": "How items were shown",
}


def image_row(record: ImageRecord, options: ExportOptions) -> dict[str, Any]:
    """One image under IMAGE_COLUMNS; width and height are those of the exported file."""
    width, height = exported_size(record, options)
    return {
        "id": record.id, "category": record.pair.category, "pair_id": record.pair.slug,
        "side": record.side, "prompt": record.pair.prompt, "contrast": record.pair.contrast,
        "text": record.text, "contrast_text": record.contrast_text,
        "generator": record.generator.slug, "generator_revision": record.generator.revision,
        "generator_licence": record.generator.licence, "seed": record.seed, "width": width,
        "height": height, "sha256": record.sha256, "verified_by": record.verified_by,
        "n_accept": record.n_accept, "n_reject": record.n_reject, "n_unsure": record.n_unsure,
        "posterior": record.posterior, "campaign": record.campaign,
        "guideline_version": record.guideline_version,
    }  # fmt: skip


def annotation_row(record: AnnotationRecord) -> dict[str, Any]:
    """One judgement under ANNOTATION_COLUMNS."""
    return {name: getattr(record, name) for name in ANNOTATION_COLUMNS}


@cache
def plain_schema(kind: str, *, first: str = "") -> pa.Schema:
    """The Arrow schema of ``image``, ``sft`` or ``annotation`` rows, after an optional string."""
    import pyarrow as pa

    columns = {"image": IMAGE_COLUMNS, "sft": SFT_COLUMNS, "annotation": ANNOTATION_COLUMNS}[kind]
    fields = [pa.field(first, pa.string())] if first else []
    return pa.schema([*fields, *(pa.field(name, _arrow(of)) for name, of in columns.items())])


@cache
def embedded_schema(kind: str) -> pa.Schema:
    """The same with the image's bytes in front, and the features that ``datasets`` looks for."""
    import pyarrow as pa

    image = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    plain = plain_schema(kind)
    features = {"image": {"_type": "Image"}} | {
        field.name: {"dtype": str(field.type), "_type": "Value"} for field in plain
    }
    described = json.dumps({"info": {"features": _as_datasets(features)}})
    return pa.schema([pa.field("image", image), *plain], metadata={"huggingface": described})


def _as_datasets(features: dict[str, dict[str, str]]) -> dict[str, dict[str, str]]:
    """Arrow's ``double`` is ``float64`` there."""
    names = {"double": "float64", "float": "float32"}
    return {
        name: {**feature, "dtype": names.get(feature["dtype"], feature["dtype"])}
        if "dtype" in feature
        else feature
        for name, feature in features.items()
    }


def _arrow(name: str) -> pa.DataType:
    import pyarrow as pa

    if name.startswith("timestamp"):
        return pa.timestamp("us", tz="UTC")
    kinds: dict[str, pa.DataType] = {
        "string": pa.string(), "int64": pa.int64(), "int32": pa.int32(), "float64": pa.float64(),
    }  # fmt: skip
    return kinds[name]
