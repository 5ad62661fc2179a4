"""Say which line of a score table is wrong, and why (read line by line, only after a failure)."""

from __future__ import annotations

import csv
import gzip
import zlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class ScoreTableError(ValueError):
    """A score table cannot be read; the message names file, line and reason."""


def explain(path: Path, side: str, parser_message: str) -> str:
    """One sentence with the first wrong line; the parser's own words if none is found."""
    try:
        for line, fault in _faults(path, side):
            return f"{path}, line {line}: {fault}"
    except (OSError, EOFError, zlib.error, UnicodeDecodeError, csv.Error) as error:
        return f"{path}: cannot be read: {error}"
    return f"{path}: cannot be read: {parser_message}"


def _faults(path: Path, side: str) -> Iterator[tuple[int, str]]:
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8-sig", newline="") as stream:
        reader = csv.reader(stream, delimiter="\t")
        head = next(reader, [])
        scores = [i for i, name in enumerate(head) if name.endswith(_ending(side))]
        for row in reader:
            if not row:
                continue
            if len(row) != len(head):
                yield reader.line_num, f"{len(row)} fields where the head has {len(head)}."
            else:
                yield from _not_numbers(reader.line_num, head, row, scores)


def _ending(side: str) -> str:
    return "___orig_img" if side == "prompt" else "___contrast_img"


def _not_numbers(
    line: int, head: list[str], row: list[str], scores: list[int]
) -> Iterator[tuple[int, str]]:
    for index in scores:
        try:
            float(row[index] or "nan")
        except ValueError:
            if row[index] not in {"None", "none", "null", "NULL", "NA", "N/A", "<NA>"}:
                yield line, f"column {head[index]} holds {row[index]!r}, which is no number."
