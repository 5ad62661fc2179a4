"""Prompt banks as files: read whole, checked whole, or refused with every fault's place.

Layouts: JSON of the research code (category → number → texts), and JSON Lines, CSV or TSV with
the columns ``id, category, prompt, contrast, alt_contrast`` and optionally ``property, topic,
entity``. Nothing here writes; a wrong file changes nothing.
"""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from croc_annotate.prompts.rules import LABEL_FIELDS, TEXT_FIELDS, PairRow, Problem, check_bank

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

BANK_FOLDER = Path(__file__).parent / "bank"
BUILTIN_BANK = "croc-annotate"
# The research code spells one category its own way; here it has one spelling only.
PUBLISHED_SPELLING = "spacial_relation"
OUR_SPELLING = "spatial_relation"
_REQUIRED = ("id", "category", "prompt", "contrast")
_FIELDS = (*TEXT_FIELDS, *LABEL_FIELDS)
_SHOWN = 20


class BankError(ValueError):
    """A bank that cannot be used; ``problems`` names every place."""

    def __init__(self, path: Path | str, problems: Sequence[Problem]) -> None:
        self.problems = list(problems)
        lines = [f"{path}: {problem}" for problem in self.problems[:_SHOWN]]
        if len(self.problems) > _SHOWN:
            lines.append(f"… and {len(self.problems) - _SHOWN} more")
        super().__init__("\n".join(lines))


class _FormError(ValueError):
    """A fault of the file's form, before any rule about its content."""

    def __init__(self, message: str, place: str = "", field: str = "") -> None:
        self.problem = Problem(place, field, message)
        super().__init__(str(self.problem))


def parse_bank(path: Path | str) -> list[PairRow]:
    """Read and check one bank file; its ending names the layout. Raises BankError."""
    path = Path(path)
    try:
        rows = list(_reader(path)(_text(path)))
    except _FormError as error:
        raise BankError(path, [error.problem]) from error
    problems = check_bank(rows)
    if not rows:
        problems = [Problem("", "", "holds no pairs")]
    if problems:
        raise BankError(path, problems)
    return rows


def builtin_files() -> list[Path]:
    """Return the files of the bank that comes with the project, one a category."""
    return sorted(BANK_FOLDER.glob("*.jsonl"))


def _reader(path: Path) -> Any:
    readers = {
        ".json": _read_json,
        ".jsonl": _read_json_lines,
        ".ndjson": _read_json_lines,
        ".csv": lambda text: _read_table(text, ","),
        ".tsv": lambda text: _read_table(text, "\t"),
    }
    if path.suffix.lower() not in readers:
        known = ", ".join(sorted(readers))
        raise _FormError(f"the ending “{path.suffix}” is not a bank's; known are {known}")
    return readers[path.suffix.lower()]


def _text(path: Path) -> str:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise _FormError(f"cannot be read: {error.strerror}") from error
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise _FormError("is not UTF-8 text", f"line {line}") from error


class _Object(dict[str, Any]):
    """A JSON object that remembers keys written twice (json keeps the last, silently)."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        seen: set[str] = set()
        self.repeated = [key for key, _ in pairs if key in seen or seen.add(key)]  # type: ignore[func-returns-value]


def _json(text: str, place: str = "") -> Any:
    try:
        return json.loads(text, object_pairs_hook=_Object)
    except json.JSONDecodeError as error:
        where = place or f"line {error.lineno}, column {error.colno}"
        raise _FormError(f"is not JSON: {error.msg}", where) from error
    except RecursionError as error:
        raise _FormError("is nested too deeply", place) from error
    except ValueError as error:
        raise _FormError("has a number of too many digits", place) from error


def _object(value: Any, place: str) -> _Object:
    if not isinstance(value, _Object):
        raise _FormError(f"must be an object, is {type(value).__name__}", place)
    if value.repeated:
        raise _FormError(f"has the key “{value.repeated[0]}” twice", place)
    return value


def _read_json(text: str) -> Iterator[PairRow]:
    for category, entries in _object(_json(text), "top level").items():
        for number, entry in _object(entries, category).items():
            place = f"{category} → {number}"
            yield _row(f"{category}_{number}", category, _object(entry, place), place)


def _read_json_lines(text: str) -> Iterator[PairRow]:
    # Split at line feeds only: splitlines() would also cut at U+2028 inside a text.
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            place = f"line {number}"
            yield _named_row(_object(_json(line, place), place), place)


def _read_table(text: str, delimiter: str) -> Iterator[PairRow]:
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        header = next(reader, [])
        _check_header(header)
        for cells in reader:
            place = f"line {reader.line_num}"
            if not cells:
                continue
            if len(cells) != len(header):
                message = f"has {len(cells)} cells; the header has {len(header)}"
                raise _FormError(message, place)
            yield _named_row(dict(zip(header, cells, strict=True)), place)
    except csv.Error as error:
        raise _FormError(f"is not a table: {error}", f"line {reader.line_num}") from error


def _check_header(header: list[str]) -> None:
    for name in _REQUIRED:
        if name not in header:
            raise _FormError(f"has no column “{name}”", "line 1")
    for name in (*_REQUIRED, *_FIELDS):
        if header.count(name) > 1:
            raise _FormError(f"has the column “{name}” twice", "line 1")


def _named_row(entry: Mapping[str, Any], place: str) -> PairRow:
    values = {name: _string(entry, name, place) for name in ("id", "category")}
    return _row(values["id"], values["category"], entry, place)


def _row(slug: str, category: str, entry: Mapping[str, Any], place: str) -> PairRow:
    for name in ("prompt", "contrast"):
        if name not in entry:
            raise _FormError("is missing", place, name)
    if category == PUBLISHED_SPELLING:
        category = OUR_SPELLING
        if slug.startswith(f"{PUBLISHED_SPELLING}_"):
            slug = OUR_SPELLING + slug[len(PUBLISHED_SPELLING) :]
    texts = {name: _string(entry, name, place) for name in _FIELDS}
    return PairRow(slug=slug, category=category, place=place, **texts)


def _string(entry: Mapping[str, Any], name: str, place: str) -> str:
    value = entry.get(name, "" if name not in ("id", "category") else None)
    if value is None and name in (*LABEL_FIELDS, "alt_contrast"):
        return ""  # JSON's null is an empty optional field
    if value is None:
        raise _FormError("is missing", place, name)
    if not isinstance(value, str):
        raise _FormError(f"must be text, is {type(value).__name__}", place, name)
    return value
