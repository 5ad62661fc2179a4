"""What people answered, under pseudonyms, and how well they agreed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from croc_annotate.releases.columns import annotation_row, plain_schema
from croc_annotate.releases.export.tables import write_table

if TYPE_CHECKING:
    from croc_annotate.releases.export.workdir import WorkFolder
    from croc_annotate.releases.formats.base import Job


def write_annotations(job: Job, out: WorkFolder) -> None:
    """``annotations.parquet`` and ``agreement.json``."""
    rows = (annotation_row(record) for record in job.annotations())
    write_table(out, "annotations.parquet", plain_schema("annotation"), rows)
    out.put("agreement.json", pretty(job.facts.agreement))


def write_splits(job: Job, out: WorkFolder, component: dict[str, int]) -> None:
    """``splits.tsv``: which pair went where, and with which others it had to stay."""
    lines = ["pair_id\tcategory\tcomponent\tsplit\n"]
    lines += [
        f"{pair.slug}\t{pair.category}\t{component[pair.slug]}\t{job.split_of(pair.slug)}\n"
        for pair in job.pairs
    ]
    out.put("splits.tsv", "".join(lines).encode())


def pretty(value: object) -> bytes:
    """JSON that people can read and that is the same for equal values."""
    text = json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False, allow_nan=False)
    return text.encode() + b"\n"
