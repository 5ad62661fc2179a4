"""One score table, parsed by Apache Arrow: its pairs numbered, its scores as columns (no Django)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

import numpy as np
import pyarrow as pa
from pyarrow import csv as arrow_csv

from croc_annotate.benchmark.table_errors import ScoreTableError, explain
from croc_annotate.releases.published import from_published

if TYPE_CHECKING:
    from pathlib import Path

    from croc_annotate.benchmark.layout import Floats, Ints

SideName = Literal["prompt", "contrast"]
SIDES: Final[tuple[SideName, SideName]] = ("prompt", "contrast")
FILE_NAME = re.compile(r"(?P<category>.+)_(?P<side>prompt|contrast)_img_scores\.tsv(\.gz)?")
# Column suffixes: first the score of the text that the side stands for, then of the other.
SUFFIXES: Final = {
    "prompt": ("___orig_text___orig_img", "___contrast_text___orig_img"),
    "contrast": ("___contrast_text___contrast_img", "___orig_text___contrast_img"),
}
NO_SCORE: Final = ("", "nan", "NaN", "NAN", "None", "none", "null", "NULL", "NA", "N/A", "<NA>")
# So much is parsed at a time: it stays in the processor's cache.
_BLOCK_BYTES: Final = 1 << 18


@dataclass(frozen=True)
class TableFile:
    """A parsed table. Rows are images; pairs are numbered in the order of their appearance."""

    path: Path
    category: str
    side: SideName
    table: pa.Table
    pair_ids: list[str]
    texts: list[tuple[str, str]]
    """(prompt, contrast) of each pair."""
    pair: Ints
    """Index into `pair_ids`, one a row."""

    @property
    def metrics(self) -> list[str]:
        """The metrics that it has columns of."""
        own, _ = SUFFIXES[self.side]
        return [c.removesuffix(own) for c in self.table.column_names if c.endswith(own)]

    def column(self, name: str) -> list[Floats]:
        """A column in parts, NaN where there is no score; all NaN if the file does not have it."""
        if name not in self.table.column_names:
            return [np.full(self.table.num_rows, np.nan)]
        return [c.to_numpy(zero_copy_only=False) for c in self.table[name].chunks]


def read_file(path: Path, *, threads: bool) -> TableFile:
    """Read one table, several threads at it if wanted; raises ScoreTableError naming the line."""
    match = match_name(path)
    side: SideName = "prompt" if match["side"] == "prompt" else "contrast"
    try:
        with pa.input_stream(str(path), compression="detect") as stream:
            table = _parse(stream.read(), path, side, threads=threads)
    except (pa.ArrowInvalid, pa.ArrowKeyError, OSError) as error:
        raise ScoreTableError(explain(path, side, str(error))) from error
    return _numbered(path, from_published(match["category"]), side, table)


def match_name(path: Path) -> re.Match[str]:
    """Category and side, from the file's name."""
    match = FILE_NAME.fullmatch(path.name)
    if match is None:  # pragma: no cover - callers filter by the pattern
        raise ScoreTableError(f"{path}: not a score table's name.")
    return match


def _parse(data: bytes, path: Path, side: SideName, *, threads: bool) -> pa.Table:
    head = data[: data.find(b"\n") if b"\n" in data else len(data)]
    names = [n.strip().strip('"') for n in head.decode("utf-8-sig", "replace").split("\t")]
    scores = [n for n in names if n.endswith(SUFFIXES[side])]
    _check_columns(names, scores, path, side)
    text = dict.fromkeys(("id", "prompt", "contrast"), pa.dictionary(pa.int32(), pa.string()))
    types = {**text, f"{side}_paths": pa.string(), **dict.fromkeys(scores, pa.float64())}
    # Without a single quotation mark nothing can be quoted: a third faster.
    quoted = b'"' in data
    return arrow_csv.read_csv(
        pa.BufferReader(data),
        read_options=arrow_csv.ReadOptions(use_threads=threads, block_size=_BLOCK_BYTES),
        parse_options=arrow_csv.ParseOptions(
            delimiter="\t", quote_char='"' if quoted else False, newlines_in_values=quoted
        ),
        convert_options=arrow_csv.ConvertOptions(
            column_types=types, include_columns=list(types), null_values=list(NO_SCORE)
        ),
    )


def _check_columns(names: list[str], scores: list[str], path: Path, side: SideName) -> None:
    wanted = ("id", "prompt", "contrast", f"{side}_paths")
    lacking = [name for name in wanted if name not in names]
    if lacking:
        raise ScoreTableError(f"{path}, line 1: no column {', '.join(lacking)}.")
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise ScoreTableError(f"{path}, line 1: column {sorted(twice)[0]} stands twice.")
    own, other = SUFFIXES[side]
    for name in scores:
        metric = name.removesuffix(own).removesuffix(other)
        for suffix in (own, other):
            if metric + suffix not in names:
                raise ScoreTableError(
                    f"{path}, line 1: metric {metric} lacks its column {metric}{suffix}."
                )


def _numbered(path: Path, category: str, side: SideName, table: pa.Table) -> TableFile:
    """Number the pairs; each id must have the same texts in all of its rows."""
    names, pair = _codes(table, "id")
    pair_ids = [from_published(name) for name in names]
    for pair_id in pair_ids:
        if not pair_id.startswith(category + "_"):
            raise ScoreTableError(f"{path}: id {pair_id!r} does not belong to {category}.")
    first_row = np.zeros(len(names), dtype=np.int64)
    first_row[pair[::-1]] = np.arange(len(pair))[::-1]
    columns = []
    for column in ("prompt", "contrast"):
        words, codes = _codes(table, column)
        of_pair = codes[first_row]
        differs = np.flatnonzero(codes != of_pair[pair])
        if len(differs):
            raise ScoreTableError(
                f"{path}, row {differs[0] + 1} of the data: pair {pair_ids[pair[differs[0]]]} "
                "has another text here than in an earlier row."
            )
        columns.append([words[code] for code in of_pair.tolist()])
    texts = list(zip(*columns, strict=True))
    kept = table.drop_columns(["id", "prompt", "contrast"])
    return TableFile(path, category, side, kept, pair_ids, texts, pair)


def _codes(table: pa.Table, column: str) -> tuple[list[str], Ints]:
    """The distinct values of a text column, and each row's index into them (int32)."""
    chunks = table[column].unify_dictionaries().chunks
    if not chunks:
        return [], np.empty(0, dtype=np.int32)
    codes = np.concatenate([c.indices.to_numpy(zero_copy_only=False) for c in chunks])
    # Unified chunks share one dictionary, the last one holds all of it.
    return chunks[-1].dictionary.to_pylist(), codes
