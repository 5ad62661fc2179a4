"""``croissant.json``: the data set in the vocabulary of MLCommons, with its responsible-AI part."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from croc_annotate.lib.hashing import canonical_json
from croc_annotate.releases.beside.citation import bibtex, title_of
from croc_annotate.releases.columns import (
    ANNOTATION_COLUMNS,
    DESCRIPTIONS,
    IMAGE_COLUMNS,
    SFT_COLUMNS,
)
from croc_annotate.releases.published import COLUMNS, METADATA_NAME

if TYPE_CHECKING:
    from collections.abc import Iterable

    from croc_annotate.releases.export.workdir import Entry
    from croc_annotate.releases.formats.base import Job

NAME = "croissant.json"
_PARQUET = "application/x-parquet"
_MIME = {
    ".parquet": _PARQUET, ".json": "application/json", ".jsonl": "application/jsonlines",
    ".tsv": "text/tab-separated-values", ".tar": "application/x-tar", ".gz": "application/gzip",
}  # fmt: skip
_TYPES = {
    "string": "sc:Text", "int64": "sc:Integer", "int32": "sc:Integer", "float64": "sc:Float",
    "timestamp[us, tz=UTC]": "sc:Date",
}  # fmt: skip
_CONTEXT: dict[str, Any] = {
    "@language": "en", "@vocab": "https://schema.org/", "citeAs": "cr:citeAs", "column": "cr:column",
    "conformsTo": "dct:conformsTo", "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"}, "dct": "http://purl.org/dc/terms/",
    "examples": {"@id": "cr:examples", "@type": "@json"}, "extract": "cr:extract",
    "field": "cr:field", "fileProperty": "cr:fileProperty", "fileObject": "cr:fileObject",
    "fileSet": "cr:fileSet", "format": "cr:format", "includes": "cr:includes",
    "isLiveDataset": "cr:isLiveDataset", "jsonPath": "cr:jsonPath", "key": "cr:key",
    "md5": "cr:md5", "parentField": "cr:parentField", "path": "cr:path",
    "recordSet": "cr:recordSet", "references": "cr:references", "regex": "cr:regex",
    "repeated": "cr:repeated", "replace": "cr:replace", "sc": "https://schema.org/",
    "separator": "cr:separator", "source": "cr:source", "subField": "cr:subField",
    "transform": "cr:transform",
}  # fmt: skip


def croissant(job: Job, entries: Iterable[Entry]) -> dict[str, Any]:
    """The whole document; ``entries`` are the files written so far."""
    facts = job.facts
    files = [_file_object(entry) for entry in entries if _is_listed(entry.path)]
    return {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": [
            "http://mlcommons.org/croissant/1.0",
            "http://mlcommons.org/croissant/RAI/1.0",
        ],
        "name": facts.name,
        "description": f"{title_of(facts)}. Counts: {facts.counts.get('verified', 0)} verified images,"
        f" {len(job.pairs)} pairs.",
        "url": f"urn:sha256:{facts.sha256}",
        "version": facts.version,
        "datePublished": facts.created[:10],
        "license": sorted({item.licence or "unknown" for item in facts.generators.values()})
        or ["unknown"],
        "citeAs": bibtex(facts),
        "creator": {"@type": "sc:Organization", "name": f"The makers of {facts.name}"},
        "keywords": ["text-to-image", "contrast pairs", "human verification"],
        "isLiveDataset": False,
        **_responsible(job),
        "distribution": [*files, *_file_sets(job)],
        "recordSet": _record_sets(job),
    }


def _responsible(job: Job) -> dict[str, Any]:
    facts = job.facts
    found = facts.agreement.get("all") or {}
    who = "A program" if facts.simulated else "People"
    return {
        "rai:dataCollection": "Texts were written as pairs that differ in one visual property; images"
        " were made from them by text-to-image models.",
        "rai:dataCollectionType": ["Synthetic images", "Human annotation"],
        "rai:dataAnnotationProtocol": f"{who} judged whether an image shows all that its text says:"
        f" accept, reject or cannot tell. Rule: {facts.rule}, parameters: {canonical_json(facts.parameters)}.",
        "rai:dataAnnotationPlatform": ["croc-annotate"],
        "rai:annotationsPerItem": str(facts.parameters.get("min_judgements", "unknown")),
        "rai:dataAnnotationAnalysis": [
            f"Krippendorff's alpha {found.get('krippendorff_alpha')}, Gwet's AC1"
            f" {found.get('gwet_ac1')}, raw agreement {found.get('raw_agreement')}"
            if found
            else "No judgements in this release."
        ],
        "rai:dataLimitations": [
            "Verdicts can be wrong; only alignment was judged; the images are of the listed generators."
        ],
        "rai:dataUseCases": ["Evaluating text-image alignment metrics"],
        "rai:personalSensitiveInformation": [
            "Annotators appear under keyed pseudonyms; there are no remarks and no platform ids."
        ],
        "rai:dataReleaseMaintenancePlan": "A release is never changed; corrections get a new version.",
    }


def _is_listed(path: str) -> bool:
    """Single images are described by their folder, all other files by name and hash."""
    in_folder = path.startswith(("crochum/", "imagefolder/"))
    return not in_folder or path.endswith((METADATA_NAME, "metadata.parquet", "metadata.jsonl"))


def _file_object(entry: Entry) -> dict[str, Any]:
    suffix = f".{entry.path.rpartition('.')[2]}"
    return {
        "@type": "cr:FileObject", "@id": entry.path, "name": entry.path,
        "contentUrl": entry.path, "contentSize": f"{entry.size} B", "sha256": entry.sha256,
        "encodingFormat": _MIME.get(suffix, "text/plain"),
    }  # fmt: skip


def _file_sets(job: Job) -> list[dict[str, Any]]:
    sets = [
        _file_set(f"{name}-files", _PARQUET, f"{name}/data/*.parquet")
        for name in ("parquet", "sft")
        if name in job.options.formats
    ]
    for name, pattern in (("crochum", "crochum/*/*/*"), ("imagefolder", "imagefolder/data/*/*/*")):
        if name in job.options.formats:
            sets.append(_file_set(f"{name}-images", "image/*", pattern))
    return sets


def _file_set(name: str, encoding: str, pattern: str) -> dict[str, Any]:
    return {
        "@type": "cr:FileSet", "@id": name, "name": name, "encodingFormat": encoding,
        "includes": pattern,
    }  # fmt: skip


def _record_sets(job: Job) -> list[dict[str, Any]]:
    sets = [
        _record_set(
            "annotations", ANNOTATION_COLUMNS, {"fileObject": {"@id": "annotations.parquet"}}
        )
    ]
    if "parquet" in job.options.formats:
        sets.append(_record_set("images", IMAGE_COLUMNS, {"fileSet": {"@id": "parquet-files"}}))
    if "sft" in job.options.formats:
        sets.append(_record_set("questions", SFT_COLUMNS, {"fileSet": {"@id": "sft-files"}}))
    if "crochum" in job.options.formats:
        source = {"fileObject": {"@id": f"crochum/{METADATA_NAME}"}}
        sets.append(_record_set("pairs", dict.fromkeys(COLUMNS, "string"), source))
    return sets


def _record_set(name: str, columns: dict[str, str], source: dict[str, Any]) -> dict[str, Any]:
    fields = []
    if name in ("images", "questions"):
        column = {"column": "image"}
        transform = {"transform": {"jsonPath": "bytes"}}
        fields.append(
            {
                "@type": "cr:Field", "@id": f"{name}/image", "name": "image",
                "dataType": "sc:ImageObject", "description": "The image",
                "source": {**source, "extract": column, **transform},
            }
        )  # fmt: skip
    fields += [
        {
            "@type": "cr:Field", "@id": f"{name}/{column}", "name": column,
            "description": DESCRIPTIONS.get(column, column), "dataType": _TYPES[kind],
            "source": {**source, "extract": {"column": column}},
        }
        for column, kind in columns.items()
    ]  # fmt: skip
    return {"@type": "cr:RecordSet", "@id": name, "name": name, "field": fields}
