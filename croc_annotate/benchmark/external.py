"""Results from papers and other boards: kept with all that qualifies them, never ranked."""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Final

from django.db import transaction

from croc_annotate.benchmark.models import ExternalResult

if TYPE_CHECKING:
    from pathlib import Path

REQUIRED: Final = ("board", "metric", "configuration", "measure", "value", "unit", "source")
_TRUE, _FALSE = {"1", "yes", "true"}, {"", "0", "no", "false"}


class ExternalResultError(ValueError):
    """A row is wrong; the message names the line. Nothing was stored."""


@dataclass(frozen=True)
class Stored:
    """What an import did."""

    created: int
    updated: int
    unchanged: int


@transaction.atomic
def import_external_results(path: Path) -> Stored:
    """Read a CSV of results; the same file again changes nothing. Raises ExternalResultError."""
    created = updated = unchanged = 0
    for key, values in _rows(path):
        row = ExternalResult.objects.filter(**key).first()
        if row is None:
            ExternalResult.objects.create(**key, **values)
            created += 1
        elif any(getattr(row, name) != value for name, value in values.items()):
            ExternalResult.objects.filter(pk=row.pk).update(**values)
            updated += 1
        else:
            unchanged += 1
    return Stored(created, updated, unchanged)


def _rows(path: Path) -> list[tuple[dict[str, str], dict[str, object]]]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            reader = csv.DictReader(stream)
            lacking = [name for name in REQUIRED if name not in (reader.fieldnames or [])]
            if lacking:
                raise ExternalResultError(f"{path}, line 1: no column {', '.join(lacking)}.")
            return [_row(path, reader.line_num, row) for row in reader]
    except OSError as error:
        raise ExternalResultError(f"{path}: cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise ExternalResultError(f"{path}: is not UTF-8 (byte {error.start}).") from error
    except csv.Error as error:
        raise ExternalResultError(f"{path}: is no table: {error}.") from error


def _row(path: Path, line: int, row: dict[str, str]) -> tuple[dict[str, str], dict[str, object]]:
    where = f"{path}, line {line}"
    empty = [name for name in REQUIRED if not (row.get(name) or "").strip()]
    if empty:
        raise ExternalResultError(f"{where}: {empty[0]} is empty.")
    key = {name: row[name].strip() for name in ("board", "metric", "configuration", "measure")}
    return key, {
        "value": _number(where, row["value"]),
        "unit": row["unit"].strip(),
        "source": row["source"].strip(),
        "source_date": _date(where, row.get("source_date") or ""),
        "higher_is_better": _flag(where, "higher_is_better", row.get("higher_is_better") or "yes"),
        "reproduced": _flag(where, "reproduced", row.get("reproduced") or ""),
    }


def _number(where: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError as error:
        raise ExternalResultError(f"{where}: value {text[:80]!r} is no number.") from error
    if not math.isfinite(value):
        raise ExternalResultError(f"{where}: value {text[:80]!r} is not finite.")
    return value


def _date(where: str, text: str) -> date | None:
    if not text.strip():
        return None
    try:
        return date.fromisoformat(text.strip())
    except ValueError as error:
        raise ExternalResultError(f"{where}: source_date {text!r}: write 2024-05-31.") from error


def _flag(where: str, name: str, text: str) -> bool:
    word = text.strip().lower()
    if word not in _TRUE | _FALSE:
        raise ExternalResultError(f"{where}: {name} {text!r}: write yes or no.")
    return word in _TRUE
