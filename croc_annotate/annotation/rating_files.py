"""Files of ratings made elsewhere: read whole, every fault named with its line (no database)."""

from __future__ import annotations

import csv
import io
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from croc_annotate.annotation.models.choices import Verdict

if TYPE_CHECKING:
    from pathlib import Path

COLUMNS = ("file", "rater", "rating")
MOST_FAULTS = 20


class RatingFileError(ValueError):
    """The file cannot be used; the message names every faulty line."""


@dataclass(frozen=True, slots=True)
class RatingRow:
    """One rating: who gave how much to which file."""

    line: int
    file: str
    rater: str
    rating: float


def verdict_of(rating: float, *, accept_from: float, reject_to: float) -> str:
    """Accept from ``accept_from`` on, reject up to ``reject_to``, unsure between."""
    if rating >= accept_from:
        return Verdict.ACCEPT.value
    return Verdict.REJECT.value if rating <= reject_to else Verdict.UNSURE.value


def read_ratings(path: Path) -> list[RatingRow]:
    """The rows of a TSV or CSV file with the columns file, rater and rating, in any order.

    The same rating twice is one; two different ratings of one file by one rater are a fault.
    """
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise RatingFileError(f"{path.name} is not UTF-8 (byte {error.start}).") from error
    head = text.split("\n", 1)[0]
    reader = csv.DictReader(
        io.StringIO(text, newline=""), delimiter="\t" if "\t" in head else ",", strict=True
    )
    try:
        missing = [name for name in COLUMNS if name not in (reader.fieldnames or [])]
        if missing:
            raise RatingFileError(f"{path.name} lacks the column {', '.join(missing)}.")
        raw = [(reader.line_num, row) for row in reader]
    except csv.Error as error:
        raise RatingFileError(f"line {reader.line_num}: {error}") from error
    return _checked(raw)


def _checked(raw: list[tuple[int, dict[str, str]]]) -> list[RatingRow]:
    rows: dict[tuple[str, str], RatingRow] = {}
    faults: list[str] = []
    for line, fields in raw:
        row = _row(line, fields)
        if isinstance(row, str):
            faults.append(f"line {line}: {row}")
            continue
        first = rows.setdefault((row.file, row.rater), row)
        if first.rating != row.rating:
            faults.append(
                f"line {line}: {row.rater} rated {row.file} otherwise in line {first.line}"
            )
    if faults:
        more = f"\n… and {len(faults) - MOST_FAULTS} more" if len(faults) > MOST_FAULTS else ""
        raise RatingFileError("\n".join(faults[:MOST_FAULTS]) + more)
    return list(rows.values())


def _row(line: int, fields: dict[str, str]) -> RatingRow | str:
    file, rater = (fields["file"] or "").strip(), (fields["rater"] or "").strip()
    if not file or not rater:
        return "file and rater must not be empty"
    try:
        rating = float(fields["rating"])
    except (TypeError, ValueError):
        return f"the rating {fields['rating']!r} is not a number"
    if not math.isfinite(rating):
        return f"the rating {fields['rating']!r} is not a number"
    return RatingRow(line, file, rater, rating)
