"""Scores as one long Parquet file: metric, pair_id, side, image_sha256, text_role, score."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyarrow import parquet

from croc_annotate.benchmark.table_errors import ScoreTableError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from croc_annotate.benchmark.selectors import ReleaseImages

SCHEMA: Final = pa.schema([
    ("metric", pa.string()),
    ("pair_id", pa.string()),
    ("side", pa.string()),
    ("image_sha256", pa.string()),
    ("text_role", pa.string()),
    ("score", pa.float64()),
])  # fmt: skip


def read(path: Path, images: ReleaseImages) -> dict[str, dict[tuple[str, str], float]]:
    """Metric → (image hash, text hash) → score; raises ScoreTableError naming the row."""
    try:
        table = parquet.read_table(path)
    except (pa.ArrowInvalid, OSError) as error:
        raise ScoreTableError(f"{path}: cannot be read: {error}") from error
    lacking = [name for name in SCHEMA.names if name not in table.column_names]
    if lacking:
        raise ScoreTableError(f"{path}: no column {', '.join(lacking)}.")
    layout = images.layout
    hashes = dict(zip(layout.pair_ids, images.text_hashes, strict=True))
    known = {(m.pair_slug, m.sha256) for m in images.members}
    scores: dict[str, dict[tuple[str, str], float]] = {}
    for number, row in enumerate(_rows(table), start=1):
        key = _key(path, number, row, hashes, known)
        if row["score"] is None or row["score"] != row["score"]:
            continue
        own = scores.setdefault(str(row["metric"]), {})
        if own.setdefault(key, row["score"]) != row["score"]:
            raise ScoreTableError(
                f"{path}, row {number}: another score of the same image and text."
            )
    return scores


def _rows(table: pa.Table) -> Iterator[dict[str, Any]]:
    for batch in table.select(SCHEMA.names).to_batches(max_chunksize=10_000):
        yield from batch.to_pylist()


def _key(
    path: Path,
    number: int,
    row: dict[str, Any],
    hashes: dict[str, tuple[str, str]],
    known: set[tuple[str, str]],
) -> tuple[str, str]:
    pair_id, image, role = row["pair_id"], row["image_sha256"], row["text_role"]
    if role not in {"prompt", "contrast"}:
        raise ScoreTableError(f"{path}, row {number}: text_role {role!r}, not prompt or contrast.")
    if (pair_id, image) not in known:
        raise ScoreTableError(
            f"{path}, row {number}: the release scores no image {str(image)[:12]} of {pair_id}."
        )
    return image, hashes[pair_id][0 if role == "prompt" else 1]
