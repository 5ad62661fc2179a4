"""Score tables as the research code writes them: read fast, refuse precisely (no Django).

One TSV (or .tsv.gz) per category and side; docs/protocol.md shows the columns. Apache Arrow
parses them; a file that it refuses is read again line by line, only to name the line.
"""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv as arrow_csv

from croc_annotate.benchmark.layout import Layout, Scores, Side, in_category_order
from croc_annotate.benchmark.table_errors import ScoreTableError, explain
from croc_annotate.releases.published import from_published

if TYPE_CHECKING:
    from collections.abc import Sequence
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


@dataclass(frozen=True)
class _File:
    path: Path
    category: str
    side: SideName
    table: pa.Table

    @property
    def metrics(self) -> list[str]:
        own, _ = SUFFIXES[self.side]
        return [c.removesuffix(own) for c in self.table.column_names if c.endswith(own)]


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
    # Decompression and parsing release the lock, so two files are read at a time.
    with ThreadPoolExecutor(max_workers=4) as pool:
        files = list(pool.map(_read_file, found))
    return _join(files)


def _refuse_twins(found: Sequence[Path]) -> None:
    seen: dict[tuple[str, str], str] = {}
    for path in found:
        match = _match(path)
        key = (from_published(match["category"]), match["side"])
        if key in seen:
            raise ScoreTableError(
                f"{path}: the same category and side as {seen[key]}; keep one of them."
            )
        seen[key] = path.name


def _match(path: Path) -> re.Match[str]:
    match = FILE_NAME.fullmatch(path.name)
    if match is None:  # pragma: no cover - callers filter by the pattern
        raise ScoreTableError(f"{path}: not a score table's name.")
    return match


def _read_file(path: Path) -> _File:
    match = _match(path)
    side: SideName = "prompt" if match["side"] == "prompt" else "contrast"
    try:
        with pa.input_stream(str(path), compression="detect") as stream:
            table = _parse(stream.read(), path, side)
    except (pa.ArrowInvalid, pa.ArrowKeyError, OSError) as error:
        raise ScoreTableError(explain(path, side, str(error))) from error
    return _File(path, from_published(match["category"]), side, table)


def _parse(data: bytes, path: Path, side: SideName) -> pa.Table:
    head = data[: data.find(b"\n") if b"\n" in data else len(data)]
    names = [n.strip().strip('"') for n in head.decode("utf-8-sig", "replace").split("\t")]
    scores = [n for n in names if n.endswith(SUFFIXES[side])]
    _check_columns(names, scores, path, side)
    text = dict.fromkeys(("id", "prompt", "contrast"), pa.dictionary(pa.int32(), pa.string()))
    types = {**text, f"{side}_paths": pa.string(), **dict.fromkeys(scores, pa.float64())}
    return arrow_csv.read_csv(
        pa.BufferReader(data),
        parse_options=arrow_csv.ParseOptions(delimiter="\t", newlines_in_values=True),
        convert_options=arrow_csv.ConvertOptions(
            column_types=types, include_columns=list(types), null_values=list(NO_SCORE)
        ),
    ).combine_chunks()


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


def _join(files: list[_File]) -> ScoreTables:
    """Number the pairs over all files and lay the rows of each side one after another."""
    index: dict[str, int] = {}
    texts: list[tuple[str, str]] = []
    categories: list[str] = []
    pair_columns = [_number_pairs(file, index, texts, categories) for file in files]
    metrics = tuple(dict.fromkeys(m for file in files for m in file.metrics))
    if not metrics:
        raise ScoreTableError(f"{files[0].path.parent}: the tables hold no metric's columns.")
    sides = {
        side: _join_side(
            [(f, p) for f, p in zip(files, pair_columns, strict=True) if f.side == side],
            side,
            metrics,
        )
        for side in SIDES
    }
    order = _pair_order(list(index), categories)
    return ScoreTables(
        pair_ids=tuple(np.array(list(index), dtype=object)[order]),
        texts=tuple(texts[i] for i in order),
        category_of=tuple(categories[i] for i in order),
        metrics=metrics,
        absent=_absent(files, metrics),
        sides={
            side: SideTable(t.paths, np.argsort(order)[t.pair] if len(order) else t.pair, t.columns)
            for side, t in sides.items()
        },
    )


def _pair_order(ids: list[str], categories: list[str]) -> Ints:
    """Pairs by category, then by id, so that results do not depend on the order of rows."""
    rank = {name: i for i, name in enumerate(in_category_order(categories))}
    keys = [(rank[c], _natural(i)) for c, i in zip(categories, ids, strict=True)]
    return np.array(sorted(range(len(ids)), key=keys.__getitem__), dtype=np.int64)


def _natural(pair_id: str) -> tuple[int, str]:
    """counting_2 before counting_10."""
    number = pair_id.rpartition("_")[2]
    return (int(number) if number.isascii() and number.isdigit() else -1, pair_id)


def _number_pairs(
    file: _File, index: dict[str, int], texts: list[tuple[str, str]], categories: list[str]
) -> Ints:
    """Each row's pair number; new ids are appended, known ones must have the same texts."""
    ids = file.table["id"].combine_chunks()
    codes = ids.indices.to_numpy(zero_copy_only=False)
    names = [from_published(name) for name in ids.dictionary.to_pylist()]
    first_row = np.zeros(len(names), dtype=np.int64)
    first_row[codes[::-1]] = np.arange(len(codes))[::-1]
    prompts, contrasts = (file.table[c].combine_chunks() for c in ("prompt", "contrast"))
    for column in (prompts, contrasts):
        text_codes = column.indices.to_numpy(zero_copy_only=False)
        differs = np.flatnonzero(text_codes != text_codes[first_row[codes]])
        if len(differs):
            raise ScoreTableError(
                f"{file.path}, row {differs[0] + 1} of the data: pair {names[codes[differs[0]]]} "
                "has another text here than in an earlier row."
            )
    numbers = np.empty(len(names), dtype=np.int64)
    for code, name in enumerate(names):
        own = (prompts[int(first_row[code])].as_py(), contrasts[int(first_row[code])].as_py())
        numbers[code] = _pair_number(file, name, own, index, texts, categories)
    result: Ints = numbers[codes]
    return result


def _pair_number(
    file: _File,
    name: str,
    own: tuple[str, str],
    index: dict[str, int],
    texts: list[tuple[str, str]],
    categories: list[str],
) -> int:
    if not name.startswith(file.category + "_"):
        raise ScoreTableError(f"{file.path}: id {name!r} does not belong to {file.category}.")
    number = index.setdefault(name, len(index))
    if number == len(texts):
        texts.append(own)
        categories.append(file.category)
    elif texts[number] != own:
        raise ScoreTableError(
            f"{file.path}: pair {name} has other texts than in the table of the other side."
        )
    return number


def _join_side(
    files: list[tuple[_File, Ints]], side: SideName, metrics: Sequence[str]
) -> SideTable:
    empty = np.empty(0, dtype=np.int64)
    paths = pa.chunked_array(
        [chunk for f, _ in files for chunk in f.table[f"{side}_paths"].chunks], type=pa.string()
    )
    own, other = SUFFIXES[side]
    return SideTable(
        paths=paths,
        pair=np.concatenate([p for _, p in files]) if files else empty,
        columns={m: (_column(files, m + own), _column(files, m + other)) for m in metrics},
    )


def _column(files: list[tuple[_File, Ints]], name: str) -> Floats:
    parts = []
    for file, _ in files:
        if name in file.table.column_names:
            # to_numpy of a column with nulls gives NaN for them.
            parts.append(file.table[name].to_numpy().astype(np.float64, copy=False))
        else:
            parts.append(np.full(file.table.num_rows, np.nan))
    return np.concatenate(parts) if parts else np.empty(0)


def _absent(files: list[_File], metrics: Sequence[str]) -> dict[str, tuple[str, ...]]:
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
