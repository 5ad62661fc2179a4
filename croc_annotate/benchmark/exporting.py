"""Write score tables (one a category and side) or one long Parquet file, from stored scores."""

from __future__ import annotations

import csv
import gzip
import io
import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from pyarrow import parquet

from croc_annotate.benchmark.boards import board_names, cached_images, run_scores
from croc_annotate.benchmark.parquet_scores import SCHEMA
from croc_annotate.benchmark.selectors import shown_runs
from croc_annotate.benchmark.table_files import SIDES, SUFFIXES
from croc_annotate.lib.atomic import atomic_file, write_atomically
from croc_annotate.releases.published import image_path, image_stem, to_published
from croc_annotate.releases.selectors import generator_records

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from croc_annotate.benchmark.layout import Scores
    from croc_annotate.benchmark.selectors import ReleaseImages
    from croc_annotate.benchmark.table_files import SideName
    from croc_annotate.releases.models import Release
    from croc_annotate.releases.records import ScoredMember

# Names of the published tables for our metrics.
PUBLISHED_NAMES = {
    "clipscore": "CLIPScore_Large",
    "alignscore": "SSAlign",
    "blip2-itm": "Blip2ITM",
    "pickscore": "PickScore",
    "bvqa-hf": "BVQA",
    "vqascore": "VQAScore",
    "vqascore-openai": "VQAScore_4o",
    "crocscore": "CROCScore",
}


@dataclass(frozen=True)
class ExportSource:
    """What is written: a release's images and the scores of its runs by published name."""

    images: ReleaseImages
    scores: dict[str, Scores]
    fields: dict[str, str]
    """Generator slug → its name in file names."""

    def rows(self, side: SideName, category: str) -> Iterator[tuple[int, ScoredMember]]:
        """(row of the side, image) of one category, in the release's order."""
        members = self.images.prompt if side == "prompt" else self.images.contrast
        for row, member in enumerate(members):
            if member.category == category:
                yield row, member

    def columns(self, side: SideName, metric: str) -> tuple[list[float], list[float]]:
        """(own, other) scores of one metric, one an image of the side."""
        s = self.scores[metric]
        pair = (
            (s.prompt_own, s.prompt_other) if side == "prompt"
            else (s.contrast_own, s.contrast_other)
        )  # fmt: skip
        return pair[0].tolist(), pair[1].tolist()


def export_source(release: Release, *, metrics: Sequence[str] = ()) -> ExportSource:
    """Load what an export writes; `metrics` names runs of the board (default: all)."""
    images = cached_images(release)
    runs = shown_runs(release)
    names = board_names(runs)
    chosen = [run for run in runs if not metrics or names[run.pk] in metrics]
    return ExportSource(
        images,
        {PUBLISHED_NAMES.get(names[r.pk], names[r.pk]): run_scores(r, images) for r in chosen},
        {slug: record.field for slug, record in generator_records(release).items()},
    )


def write_tables(source: ExportSource, out: Path, *, compress: bool = False) -> list[Path]:
    """Write CATEGORY_{prompt,contrast}_img_scores.tsv(.gz) into `out`; returns the files."""
    out.mkdir(parents=True, exist_ok=True)
    written = []
    for category in source.images.layout.categories:
        for side in SIDES:
            name = f"{to_published(category)}_{side}_img_scores.tsv{'.gz' if compress else ''}"
            data = _table(source, category, side).encode()
            # mtime 0: equal scores give equal bytes.
            write_atomically(
                out / name, gzip.compress(data, mtime=0) if compress else data, force=True
            )
            written.append(out / name)
    return written


def write_parquet(source: ExportSource, path: Path) -> int:
    """Write one row a metric, image and text; returns the number of rows."""
    rows = 0
    with atomic_file(path, force=True) as stream, parquet.ParquetWriter(stream, SCHEMA) as writer:
        for metric in source.scores:
            for side in SIDES:
                batch = _long_rows(source, metric, side)
                rows += batch.num_rows
                writer.write_table(batch)
    return rows


def _table(source: ExportSource, category: str, side: SideName) -> str:
    out = io.StringIO()
    writer = csv.writer(out, delimiter="\t", lineterminator="\n")
    head = ["id", "prompt", "contrast", f"{side}_paths"]
    head += [metric + suffix for metric in source.scores for suffix in SUFFIXES[side]]
    writer.writerow(head)
    columns = [column for m in source.scores for column in source.columns(side, m)]
    for row, member in source.rows(side, category):
        cells = [to_published(member.pair_slug), member.prompt, member.contrast]
        cells.append(_path(source, member))
        writer.writerow(cells + ["" if math.isnan(c[row]) else repr(c[row]) for c in columns])
    return out.getvalue()


def _path(source: ExportSource, member: ScoredMember) -> str:
    stem = image_stem(
        pair_id=member.pair_slug,
        side=member.side,
        generator=source.fields.get(member.generator, member.generator),
        number=member.seed,
    )
    suffix = Path(member.storage_name).suffix.lower()
    return image_path(category=member.category, stem=stem, side=member.side, suffix=suffix)


def _long_rows(source: ExportSource, metric: str, side: SideName) -> pa.Table:
    members = source.images.prompt if side == "prompt" else source.images.contrast
    own, other = source.columns(side, metric)
    roles = ("prompt", "contrast") if side == "prompt" else ("contrast", "prompt")
    rows = [
        {
            "metric": metric,
            "pair_id": member.pair_slug,
            "side": member.side,
            "image_sha256": member.sha256,
            "text_role": role,
            "score": None if math.isnan(value) else value,
        }
        for member, a, b in zip(members, own, other, strict=True)
        for role, value in zip(roles, (a, b), strict=True)
    ]
    return pa.Table.from_pylist(rows, schema=SCHEMA)
