"""Read CROCsyn's score tables and evaluate them (no Django).

Files `part*_scores.tsv` (or one concatenated TSV) with `prompt_id, prompt, contrast_prompt`
and four score columns a metric. `img_gen_model`, `text_gen_model` and `mode` are columns, or
come from the folder's name (`flux_ds`: generator, then text model) and from the id, whose parts
are separated by the three characters |||.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
from pyarrow import csv as arrow_csv

from croc_annotate.benchmark.crocsyn import (
    UnitScores,
    chance,
    images_per_unit,
    scaled,
    unit_outcomes,
)
from croc_annotate.benchmark.layout import DIRECTIONS
from croc_annotate.benchmark.table_errors import ScoreTableError
from croc_annotate.benchmark.table_files import NO_SCORE

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from croc_annotate.benchmark.layout import Floats

SUFFIXES: Final = (
    "___orig_text___orig_img",
    "___contrast_text___orig_img",
    "___contrast_text___contrast_img",
    "___orig_text___contrast_img",
)
_IMAGE_MARK: Final = "_____"
_PART_MARK: Final = "|||"
_FILE: Final = re.compile(r"(part\d+|concatenated)_scores\.tsv(\.gz)?")


@dataclass(frozen=True)
class Row:
    """Where one row of a table belongs."""

    mode: str
    text_model: str
    unit: tuple[str, str, str]
    """(id without the image, prompt, image generator)."""
    number: str


@dataclass(frozen=True)
class SynTables:
    """All rows with their scores, metric by metric."""

    rows: list[Row]
    metrics: dict[str, tuple[Floats, ...]]


def read(folder: Path) -> SynTables:
    """Read a folder (or one file) of score tables; raises ScoreTableError."""
    files = (
        [folder]
        if folder.is_file()
        else sorted(path for path in folder.rglob("*") if _FILE.fullmatch(path.name))
    )
    if not files:
        raise ScoreTableError(f"{folder}: no part*_scores.tsv here.")
    rows: list[Row] = []
    columns: dict[str, list[tuple[Floats, ...]]] = {}
    sizes: list[int] = []
    for path in files:
        table = _read_table(path)
        rows += _rows(table, path)
        for metric in _metrics(table, path):
            columns.setdefault(metric, [tuple(np.full(n, np.nan) for _ in SUFFIXES) for n in sizes])
        sizes.append(table.num_rows)
        for metric, parts in columns.items():
            parts.append(_scores(table, metric))
    joined = {
        metric: tuple(np.concatenate([part[k] for part in parts]) for k in range(len(SUFFIXES)))
        for metric, parts in columns.items()
    }
    return SynTables(rows, joined)


def evaluate(tables: SynTables) -> dict[str, Any]:
    """Accuracy and scaled accuracy of each metric, mode and direction, and their averages."""
    modes = list(dict.fromkeys(row.mode for row in tables.rows))
    groups: dict[tuple[str, str], list[int]] = defaultdict(list)
    for index, row in enumerate(tables.rows):
        groups[row.mode, row.text_model].append(index)
    text_models = list(dict.fromkeys(row.text_model for row in tables.rows))
    per_unit = images_per_unit(_unit_codes(tables.rows)[0])
    result: dict[str, Any] = {}
    for metric, columns in tables.metrics.items():
        cells = {
            mode: _mode_cell(
                [
                    _group_cell(tables.rows, columns, groups[mode, t])
                    for t in text_models
                    if groups.get((mode, t))
                ],
                per_unit,
            )
            for mode in modes
        }
        result[metric] = {"categories": cells, "average": _average(cells)}
    return {
        "mode": "crocsyn",
        "images_per_prompt": per_unit,
        "text_models": text_models,
        "chance": {d: chance(d, per_unit, per_unit) for d in DIRECTIONS},
        "chance_holds_for": "independent scores",
        "metrics": result,
    }


def _group_cell(
    rows: Sequence[Row], columns: tuple[Floats, ...], index: list[int]
) -> dict[str, tuple[float | None, int]]:
    """Flat mean over the units of one mode and text model, and their number."""
    units, numbers = _unit_codes([rows[i] for i in index])
    scores = UnitScores(units, numbers, *(column[index] for column in columns))
    cell: dict[str, tuple[float | None, int]] = {}
    for direction in DIRECTIONS:
        outcome = unit_outcomes(scores, direction, int(units.max()) + 1)
        known = outcome[~np.isnan(outcome)]
        cell[direction] = (float(known.mean()) if len(known) else None, len(known))
    return cell


def _mode_cell(
    cells: list[dict[str, tuple[float | None, int]]], per_unit: int
) -> dict[str, float | int | None]:
    """Mean over the text models, then scaled."""
    result: dict[str, float | int | None] = {}
    for direction in DIRECTIONS:
        values = [cell[direction][0] for cell in cells]
        known = [v for v in values if v is not None]
        mean = sum(known) / len(known) if known and len(known) == len(values) else None
        result[direction] = mean
        result[f"n_{direction}"] = sum(cell[direction][1] for cell in cells)
        level = chance(direction, per_unit, per_unit)
        result[f"scaled_{direction}"] = None if mean is None else scaled(mean, level)
    return result


def _average(cells: dict[str, dict[str, float | int | None]]) -> dict[str, float | int | None]:
    average: dict[str, float | int | None] = {}
    for direction in DIRECTIONS:
        for key in (direction, f"scaled_{direction}"):
            values = [cell[key] for cell in cells.values()]
            known = [v for v in values if v is not None]
            average[key] = sum(known) / len(known) if len(known) == len(values) else None
        average[f"n_{direction}"] = sum(int(c[f"n_{direction}"] or 0) for c in cells.values())
    return average


def _unit_codes(rows: Sequence[Row]) -> tuple[np.ndarray, np.ndarray]:
    """Each row's unit number, and its image number (in natural order of the names)."""
    index: dict[tuple[str, str, str, str, str], int] = {}
    units = np.array(
        [index.setdefault((r.mode, r.text_model, *r.unit), len(index)) for r in rows],
        dtype=np.int64,
    )
    names = sorted({r.number for r in rows}, key=_natural)
    rank = {name: place for place, name in enumerate(names)}
    return units, np.array([rank[r.number] for r in rows], dtype=np.int64)


def _natural(name: str) -> tuple[tuple[int, int, str], ...]:
    """image2 before image10."""
    parts = re.findall(r"\d+|\D+", name)
    return tuple((0, int(p), "") if p.isdecimal() else (1, 0, p) for p in parts)


def _read_table(path: Path) -> pa.Table:
    try:
        with pa.input_stream(str(path), compression="detect") as stream:
            data = stream.read()
        head = data.split(b"\n", 1)[0].decode("utf-8-sig").rstrip("\r").split("\t")
        types: dict[str, pa.DataType] = {}
        for name in (part.strip('"') for part in head):
            types[name] = pa.float64() if name.endswith(SUFFIXES) else pa.string()
        if "prompt_id" not in types:
            raise ScoreTableError(f"{path}, line 1: no column prompt_id.")
        return arrow_csv.read_csv(
            pa.BufferReader(data),
            parse_options=arrow_csv.ParseOptions(delimiter="\t", newlines_in_values=True),
            convert_options=arrow_csv.ConvertOptions(
                column_types=types, null_values=list(NO_SCORE)
            ),
        )
    except (pa.ArrowInvalid, OSError, UnicodeDecodeError) as error:
        raise ScoreTableError(f"{path}: cannot be read: {error}") from error


def _rows(table: pa.Table, path: Path) -> list[Row]:
    image_model, _, text_model = path.parent.name.partition("_")
    columns = {
        name: table[name].to_pylist() if name in table.column_names else [None] * table.num_rows
        for name in ("prompt_id", "prompt", "img_gen_model", "text_gen_model", "mode")
    }
    rows = []
    for full, prompt, image, text, mode in zip(*columns.values(), strict=True):
        unit_id, _, number = full.partition(_IMAGE_MARK)
        rows.append(
            Row(
                mode=mode or full.split(_PART_MARK)[0],
                text_model=text or text_model,
                unit=(unit_id, prompt or "", image or image_model),
                number=number,
            )
        )
    return rows


def _metrics(table: pa.Table, path: Path) -> list[str]:
    names = table.column_names
    found = [name.removesuffix(SUFFIXES[0]) for name in names if name.endswith(SUFFIXES[0])]
    for metric in found:
        lacking = [metric + s for s in SUFFIXES if metric + s not in names]
        if lacking:
            raise ScoreTableError(f"{path}, line 1: metric {metric} lacks {lacking[0]}.")
    return found


def _scores(table: pa.Table, metric: str) -> tuple[Floats, ...]:
    def column(name: str) -> Floats:
        if name not in table.column_names:
            return np.full(table.num_rows, np.nan)
        values: Floats = table[name].to_numpy().astype(np.float64, copy=False)
        return values

    return tuple(column(metric + suffix) for suffix in SUFFIXES)
