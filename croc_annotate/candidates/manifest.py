"""Manifests of images from elsewhere, and the published file naming; pure of Django.

A manifest is TSV, CSV or JSON Lines with `file, pair_id, side, generator, seed`; what a row
does not say is read from the file's name, `counting_7___prompt___FLUX_1_dev___image12.png`.
"""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from croc_annotate.lib.jsontext import NotJsonError, parse_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

SIDES = ("prompt", "contrast", "alt_contrast")
SUFFIXES = {".png", ".jpg", ".jpeg", ".webp", ".bmp"}
_NAME = re.compile(r"(?P<pair>.+?)___(?P<side>[a-z_]+?)___(?P<generator>.+)___image(?P<seed>\d+)")
_GENERATOR = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,79}")
_MAX_SEED = 2**63 - 1


class ManifestError(ValueError):
    """What is wrong in a manifest: one line per fault, each with its place."""

    def __init__(self, faults: Iterable[str]) -> None:
        self.faults = list(faults)
        super().__init__("\n".join(self.faults))


@dataclass(frozen=True)
class ManifestRow:
    """One image from elsewhere, as its manifest places it."""

    place: str
    file: str
    pair_id: str
    side: str
    generator: str
    seed: int
    sha256: str = ""


def read_manifest(path: Path) -> list[ManifestRow]:
    """All rows of a manifest; raises ManifestError naming every faulty line."""
    rows: list[ManifestRow] = []
    faults: list[str] = []
    for line, fields in _records(path):
        place = f"{path.name}, line {line}"
        try:
            rows.append(_row(place, fields))
        except ValueError as error:
            faults.append(f"{place}: {error}")
    _refuse_twice(rows, faults)
    if not rows and not faults:
        faults.append(f"{path.name}: no rows")
    if faults:
        raise ManifestError(faults)
    return rows


def name_rows(folder: Path) -> list[ManifestRow]:
    """Rows from the names of all image files below a folder; raises ManifestError."""
    rows: list[ManifestRow] = []
    faults: list[str] = []
    for path in sorted(folder.rglob("*")):
        file = path.relative_to(folder).as_posix()
        if path.suffix.lower() not in SUFFIXES or path.is_dir():
            continue
        try:
            rows.append(_row(file, {"file": file}))
        except ValueError as error:
            faults.append(f"{file}: {error}")
    _refuse_twice(rows, faults)
    if not rows and not faults:
        faults.append(f"{folder}: no image files (PNG, JPEG, WebP, BMP) in it")
    if faults:
        raise ManifestError(faults)
    return rows


def parse_name(file: str) -> dict[str, str]:
    """What a published file name says; empty for any other name."""
    match = _NAME.fullmatch(PurePosixPath(file).stem)
    if match is None or match["side"] not in SIDES:
        return {}
    return {
        "pair_id": match["pair"],
        "side": match["side"],
        "generator": match["generator"],
        "seed": match["seed"],
    }


def our_spelling(pair_id: str) -> str:
    """Published files write one category `spacial_relation`."""
    if pair_id.startswith("spacial_relation_"):
        return "spatial" + pair_id.removeprefix("spacial")
    return pair_id


def _records(path: Path) -> Iterator[tuple[int, Mapping[str, object]]]:
    """(line, fields) of a manifest; raises ManifestError where the file cannot be read."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as lines:
            if path.suffix.lower() in (".jsonl", ".ndjson"):
                yield from _json_records(path, lines)
            else:
                yield from _table_records(path, lines)
    except UnicodeDecodeError as error:
        raise ManifestError([f"{path.name}: not UTF-8 ({error.reason})"]) from error
    except csv.Error as error:
        raise ManifestError([f"{path.name}: {error}"]) from error


def _json_records(path: Path, lines: Iterable[str]) -> Iterator[tuple[int, Mapping[str, object]]]:
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            fields = parse_json(line)
        except NotJsonError as error:
            raise ManifestError([f"{path.name}, line {number}: {error}"]) from error
        if not isinstance(fields, dict):
            raise ManifestError([f"{path.name}, line {number}: not an object"])
        yield number, fields


def _table_records(path: Path, lines: Iterable[str]) -> Iterator[tuple[int, Mapping[str, object]]]:
    tabs = path.suffix.lower() in (".tsv", ".tab")
    reader = csv.DictReader(lines, delimiter="\t" if tabs else ",", strict=True)
    if "file" not in (reader.fieldnames or []):
        found = ", ".join(reader.fieldnames or []) or "nothing"
        raise ManifestError([f"{path.name}: no column 'file' (found: {found[:200]})"])
    for fields in reader:
        yield reader.line_num, fields


def _row(place: str, fields: Mapping[str, object]) -> ManifestRow:
    file = _text(fields, "file")
    if not file:
        raise ValueError("no file")
    named = parse_name(file)
    values = {
        key: _text(fields, key) or named.get(key, "")
        for key in ("pair_id", "side", "generator", "seed")
    }
    absent = [key for key, value in values.items() if not value]
    if absent:
        raise ValueError(
            f"{file!r}: no {', '.join(absent)}, and the name is not id___side___generator___imageN"
        )
    return ManifestRow(
        place=place,
        file=_inside(file),
        pair_id=our_spelling(values["pair_id"]),
        side=_side(values["side"]),
        generator=_generator(values["generator"]),
        seed=_seed(values["seed"]),
        sha256=_hash(_text(fields, "sha256")),
    )


def _text(fields: Mapping[str, object], key: str) -> str:
    value = fields.get(key)
    return "" if value is None else str(value).strip()


def _inside(file: str) -> str:
    path = PurePosixPath(file)
    if path.is_absolute() or ".." in path.parts or "\\" in file or "\0" in file:
        raise ValueError(f"{file!r} leads out of the folder")
    if len(path.as_posix()) > 400:
        raise ValueError(f"{file[:60]!r}… is longer than 400 characters")
    return path.as_posix()


def _side(value: str) -> str:
    if value not in SIDES:
        raise ValueError(f"unknown side {value!r}; there are {', '.join(SIDES)}")
    return value


def _generator(value: str) -> str:
    if not _GENERATOR.fullmatch(value) or "___" in value:
        raise ValueError(f"the generator {value!r} is not a name of letters, digits and . _ + -")
    return value


def _seed(value: str) -> int:
    if not value.isdecimal() or int(value) > _MAX_SEED:
        raise ValueError(f"the seed {value!r} is not a whole number from 0 to {_MAX_SEED}")
    return int(value)


def _hash(value: str) -> str:
    if value and not re.fullmatch(r"[0-9a-fA-F]{64}", value):
        raise ValueError(f"the sha256 {value[:20]!r} is not 64 hex digits")
    return value.lower()


def _refuse_twice(rows: Iterable[ManifestRow], faults: list[str]) -> None:
    seen: dict[tuple[str, str, str, int], str] = {}
    for row in rows:
        key = (row.pair_id, row.side, row.generator, row.seed)
        first = seen.setdefault(key, row.place)
        if first != row.place:
            faults.append(f"{row.place}: the same pair, side, generator and seed as {first}")
