"""``manifest.json``: what the export is of, how it was made, and the hash of every file."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import croc_annotate

if TYPE_CHECKING:
    from croc_annotate.releases.export.workdir import Entry, WorkFolder
    from croc_annotate.releases.formats.base import Job

NAME = "manifest.json"
VERSION = 1


def write_manifest(job: Job, out: WorkFolder) -> None:
    """Written last but for nothing: it lists all other files, in the order of writing."""
    if out.finished(NAME) is not None:
        return
    head = json.dumps(head_of(job), indent=1, sort_keys=True, ensure_ascii=False, allow_nan=False)
    with out.create(NAME) as sink:
        # The list may be long, so it is not built in memory: it takes the place of the last "}".
        sink.write(head.rstrip()[:-1].rstrip().encode() + b',\n "files": [')
        comma = b"\n"
        for entry in out.entries():
            sink.write(comma + b"  " + json.dumps(_file(entry), ensure_ascii=False).encode())
            comma = b",\n"
        sink.write(b"\n ]\n}\n")


def head_of(job: Job) -> dict[str, Any]:
    """Everything but the list of files."""
    facts = job.facts
    return {
        "manifest_version": VERSION,
        "release": {
            "name": facts.name, "version": facts.version, "created": facts.created,
            "sha256": facts.sha256, "origin": facts.origin, "simulated": facts.simulated,
            "notes": facts.notes,
        },
        "rule": facts.rule,
        "parameters": facts.parameters,
        "software": {"name": "croc-annotate", "version": croc_annotate.__version__},
        "options": job.options.as_dict(),
        "counts": facts.counts,
        "counts_by_category": facts.by_category,
        "candidates": sum(facts.counts.values()),
        "pairs": len(job.pairs),
        "generators": {
            slug: {
                "label": item.label, "model_id": item.model_id, "revision": item.revision,
                "licence": item.licence, "file_name_field": item.field,
                "drawn_by_a_program": item.is_drawn,
            }
            for slug, item in facts.generators.items()
        },
    }  # fmt: skip


def _file(entry: Entry) -> dict[str, Any]:
    found: dict[str, Any] = {"path": entry.path, "size": entry.size, "sha256": entry.sha256}
    if entry.source_sha256:
        found["original_sha256"] = entry.source_sha256
    return found
