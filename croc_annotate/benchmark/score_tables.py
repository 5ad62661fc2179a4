"""Score tables as the research code writes them: read fast, refuse precisely (no Django).

One TSV (or .tsv.gz) per category and side; docs/protocol.md shows the columns. A file that the
parser refuses is read again line by line, only to name the line.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from croc_annotate.benchmark.layout import Layout, Scores, Side, in_category_order
from croc_annotate.benchmark.table_errors import ScoreTableError
from croc_annotate.benchmark.table_files import (
    FILE_NAME,
    SIDES,
    SUFFIXES,
    SideName,
    TableFile,
    match_name,
    read_file,
)
from croc_annotate.releases.published import from_published

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from croc_annotate.benchmark.layout import Floats, Ints

GENERATOR_FIELD = r"(?:^|/)[^/]*?___[^/]*?___(?P<generator>[^/]+?)___[^/]*$"


@dataclass(frozen=True)
class SideTable:
    """One side's rows of all categories, one row an image."""

    paths: pa.ChunkedArray
    pair: Ints
    """Index into `ScoreTables.pair_ids`."""
    columns: dict[str, tuple[Floats, Floats]]
    """Metric → (score of the own text, score of the other text), NaN where missing."""


@dataclass(frozen=True)
class ScoreTables:
    """All tables of a folder. A metric absent from a file has NaN there and is listed."""

    pair_ids: tuple[str, ...]
    texts: tuple[tuple[str, str], ...]
    category_of: tuple[str, ...]
    metrics: tuple[str, ...]
    absent: dict[str, tuple[str, ...]]
    """Metric → categories in whose files it has no columns."""
    sides: dict[SideName, SideTable]

    def scores(self, metric: str) -> Scores:
        """The four columns of one metric."""
        own_p, other_p = self.sides["prompt"].columns[metric]
        own_q, other_q = self.sides["contrast"].columns[metric]
        return Scores(own_p, other_p, own_q, other_q)

    def layout(self, *, generators: bool = True) -> Layout:
        """What the tables compare; `generators` are read from the file names if wanted."""
        names: tuple[str, ...] = ("",)
        codes = {side: np.zeros(len(self.sides[side].pair), dtype=np.int64) for side in SIDES}
        if generators:
            names, codes = _generator_codes([self.sides[side].paths for side in SIDES])
        categories = tuple(in_category_order(self.category_of))
        code_of = {name: code for code, name in enumerate(categories)}
        return Layout(
            pair_ids=self.pair_ids,
            texts=self.texts,
            categories=categories,
            category=np.array([code_of[c] for c in self.category_of], dtype=np.int64),
            generators=names,
            prompt=Side(self.sides["prompt"].pair, codes["prompt"]),
            contrast=Side(self.sides["contrast"].pair, codes["contrast"]),
        )


def read(folder: Path) -> ScoreTables:
    """Read every score table of a folder; raises ScoreTableError naming file and line."""
    found = (
        sorted(p for p in folder.iterdir() if FILE_NAME.fullmatch(p.name))
        if (folder.is_dir())
        else []
    )
    if not found:
        raise ScoreTableError(
            f"{folder}: no score tables here. Expected files named "
            "CATEGORY_prompt_img_scores.tsv and CATEGORY_contrast_img_scores.tsv (or .tsv.gz)."
        )
    _refuse_twins(found)
    # Decompression and parsing release the lock: each core reads a file, or a part of one.
    cores = os.cpu_count() or 1
    with ThreadPoolExecutor(max_workers=min(cores, 8)) as pool:
        files = list(pool.map(lambda p: read_file(p, threads=len(found) < cores), found))
    return _join(files)


def _refuse_twins(found: Sequence[Path]) -> None:
    seen: dict[tuple[str, str], str] = {}
    for path in found:
        match = match_name(path)
        key = (from_published(match["category"]), match["side"])
        if key in seen:
            raise ScoreTableError(
                f"{path}: the same category and side as {seen[key]}; keep one of them."
            )
        seen[key] = path.name


def _join(files: list[TableFile]) -> ScoreTables:
    """Number the pairs over all files and lay the rows of each side one after another."""
    texts, category_of = _all_pairs(files)
    metrics = tuple(dict.fromkeys(m for file in files for m in file.metrics))
    if not metrics:
        raise ScoreTableError(f"{files[0].path.parent}: the tables hold no metric's columns.")
    pair_ids = _in_order(category_of)
    number = {pair_id: i for i, pair_id in enumerate(pair_ids)}
    return ScoreTables(
        pair_ids=pair_ids,
        texts=tuple(texts[i] for i in pair_ids),
        category_of=tuple(category_of[i] for i in pair_ids),
        metrics=metrics,
        absent=_absent(files, metrics),
        sides={s: _join_side([f for f in files if f.side == s], s, metrics, number) for s in SIDES},
    )


def _all_pairs(files: Sequence[TableFile]) -> tuple[dict[str, tuple[str, str]], dict[str, str]]:
    """Each pair's texts, the same in every file that has it, and its category."""
    texts: dict[str, tuple[str, str]] = {}
    category_of: dict[str, str] = {}
    for file in files:
        for pair_id, own in zip(file.pair_ids, file.texts, strict=True):
            if texts.setdefault(pair_id, own) != own:
                raise ScoreTableError(
                    f"{file.path}: pair {pair_id} has other texts than in the table of the "
                    "other side."
                )
        category_of.update(dict.fromkeys(file.pair_ids, file.category))
    return texts, category_of


def _in_order(category_of: dict[str, str]) -> tuple[str, ...]:
    """Pairs by category, then by id, so that results do not depend on the order of rows."""
    rank = {name: i for i, name in enumerate(in_category_order(list(category_of.values())))}
    return tuple(sorted(category_of, key=lambda i: (rank[category_of[i]], _number_in(i), i)))


def _number_in(pair_id: str) -> int:
    """What an id ends in: counting_2 comes before counting_10."""
    number = pair_id.rpartition("_")[2]
    return int(number) if number.isascii() and number.isdigit() else -1


def _join_side(
    files: Sequence[TableFile], side: SideName, metrics: Sequence[str], number: dict[str, int]
) -> SideTable:
    paths = [chunk for f in files for chunk in f.table[f"{side}_paths"].chunks]
    pair = [np.array([number[i] for i in f.pair_ids], dtype=np.int64)[f.pair] for f in files]
    own, other = SUFFIXES[side]
    return SideTable(
        paths=pa.chunked_array(paths, type=pa.string()),
        pair=np.concatenate(pair) if pair else np.empty(0, dtype=np.int64),
        columns={m: (_column(files, m + own), _column(files, m + other)) for m in metrics},
    )


def _column(files: Sequence[TableFile], name: str) -> Floats:
    parts = [part for file in files for part in file.column(name)]
    return np.concatenate(parts) if parts else np.empty(0)


def _absent(files: list[TableFile], metrics: Sequence[str]) -> dict[str, tuple[str, ...]]:
    return {
        m: tuple(in_category_order([f.category for f in files if m not in f.metrics]))
        for m in metrics
        if any(m not in f.metrics for f in files)
    }


def _generator_codes(
    columns: Sequence[pa.ChunkedArray],
) -> tuple[tuple[str, ...], dict[SideName, Ints]]:
    """The third `___` field of each path as a number into sorted names ("" if there is none)."""
    fields = [
        pc.fill_null(pc.struct_field(pc.extract_regex(c, GENERATOR_FIELD), "generator"), "")
        for c in columns
    ]
    both = pa.chunked_array([ch for f in fields for ch in f.chunks], type=pa.string())
    encoded = both.dictionary_encode().combine_chunks()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.chunk(0) if encoded.num_chunks else encoded
    names = encoded.dictionary.to_pylist() if len(both) else [""]
    order = sorted(range(len(names)), key=names.__getitem__)
    rank = np.argsort(order)
    codes = rank[encoded.indices.to_numpy(zero_copy_only=False)] if len(both) else np.empty(0, int)
    split = len(fields[0])
    return tuple(names[i] for i in order), {"prompt": codes[:split], "contrast": codes[split:]}
