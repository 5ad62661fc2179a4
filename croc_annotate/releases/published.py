"""The published CROChum layout: its table, its folder and file names. Pure text work.

One table, one folder per category (docs/export-format.md). Two habits of the published
files differ from this project's and live here only: the spelling ``spacial_relation``, and
the generator as the third ``___`` field of a file name.
"""

from __future__ import annotations

import ast
import csv
import io
import re
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

METADATA_NAME = "croc_hum_metadata.tsv"
COLUMNS = ("id", "prompt", "contrast", "prompt_paths", "contrast_paths", "alt_contrast_paths")
SIDES = ("prompt", "contrast", "alt_contrast")
IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg", ".webp", ".bmp")

_OURS, _THEIRS = "spatial_relation", "spacial_relation"
_SEPARATOR = "___"
_NUMBER = re.compile(r"image(\d{1,9})")
_UNSAFE = re.compile(r"[^A-Za-z0-9._+-]+")
_MAX_TABLE_CELL = 64 * 1024 * 1024


class PublishedLayoutError(ValueError):
    """The table or a name is not in the published layout; the message says where and why."""


@dataclass(frozen=True, slots=True)
class ImageName:
    """What the name of one image file says."""

    pair_id: str
    side: str
    generator: str
    number: int
    suffix: str

    @property
    def category_folder(self) -> str:
        """The category as the published layout spells it."""
        return to_published(self.pair_id.rpartition("_")[0])


@dataclass(frozen=True, slots=True)
class PublishedRow:
    """One pair of the table; ids in this project's spelling, paths as written."""

    pair_id: str
    prompt: str
    contrast: str
    paths: dict[str, tuple[str, ...]]


def to_published(name: str) -> str:
    """An id, folder or file name in the published spelling."""
    return _respell(name, _OURS, _THEIRS)


def from_published(name: str) -> str:
    """An id, folder or file name in this project's spelling."""
    return _respell(name, _THEIRS, _OURS)


def _respell(name: str, old: str, new: str) -> str:
    if name == old or name.startswith((f"{old}_", f"{old}/")):
        return new + name[len(old) :]
    return name


def generator_field(slug: str) -> str:
    """A generator's name as the third field of a file name: itself, unless a path cannot hold it."""
    safe = _UNSAFE.sub("_", slug).lstrip(".") or "generator"
    while _SEPARATOR in safe:
        safe = safe.replace(_SEPARATOR, "__")
    return safe.strip("_") or "generator"


def generator_fields(slugs: Iterable[str]) -> dict[str, str]:
    """A file-name field for each generator, no two alike."""
    fields: dict[str, str] = {}
    taken: set[str] = set()
    for slug in sorted(set(slugs)):
        base = field = generator_field(slug)
        number = 2
        while field.casefold() in taken:
            field, number = f"{base}-{number}", number + 1
        taken.add(field.casefold())
        fields[slug] = field
    return fields


def image_stem(*, pair_id: str, side: str, generator: str, number: int) -> str:
    """A file's name without its ending; unique in a release, in this project's spelling."""
    return _SEPARATOR.join((pair_id, side, generator, f"image{number}"))


def image_path(*, category: str, stem: str, side: str, suffix: str) -> str:
    """A file's place in the folder, in the published spelling."""
    return f"{to_published(category)}/{side}/{to_published(stem)}{suffix}"


def parse_image_name(path: str) -> ImageName:
    """Read a file name; raises PublishedLayoutError. Folders before it are ignored."""
    name = PurePosixPath(path).name
    stem, dot, ending = name.rpartition(".")
    fields = stem.split(_SEPARATOR)
    if not dot or f".{ending.lower()}" not in IMAGE_SUFFIXES:
        raise PublishedLayoutError(f"{path!r}: not an image's ending")
    if len(fields) != 4:
        raise PublishedLayoutError(f"{path!r}: not id___side___generator___imageN")
    pair_id, side, generator, last = fields
    number = _NUMBER.fullmatch(last)
    if side not in SIDES:
        raise PublishedLayoutError(f"{path!r}: unknown side {side!r}; known are {', '.join(SIDES)}")
    if not pair_id or not generator or number is None:
        raise PublishedLayoutError(f"{path!r}: not id___side___generator___imageN")
    return ImageName(
        from_published(pair_id), side, generator, int(number.group(1)), f".{ending.lower()}"
    )


def table_head() -> str:
    """The first line of the table."""
    return "\t".join(COLUMNS) + "\n"


def table_line(row: PublishedRow) -> str:
    """One pair as a line of the table, as pandas' ``to_csv(sep="\\t", index=False)`` writes it."""
    cells = [to_published(row.pair_id), row.prompt, row.contrast]
    cells += [path_list(row.paths.get(side, ())) for side in SIDES]
    return "\t".join(quoted(cell) for cell in cells) + "\n"


def path_list(paths: Sequence[str]) -> str:
    """Paths as the literal of a Python list, the form that the published scripts evaluate."""
    return repr(list(paths))


def quoted(cell: str) -> str:
    """A cell quoted only where it must be; a bare CR is a line end to pandas' reader, so it is."""
    if any(char in cell for char in '\t\n\r"'):
        return '"' + cell.replace('"', '""') + '"'
    return cell


def read_table(text: str, *, name: str = METADATA_NAME) -> list[PublishedRow]:
    """Every pair of a table; raises PublishedLayoutError naming the row and the fault."""
    rows: list[PublishedRow] = []
    seen: dict[str, int] = {}
    for number, cells in _records(text, name):
        row = _row(cells, f"{name}, row {number}")
        if row.pair_id in seen:
            raise PublishedLayoutError(
                f"{name}, row {number}: {row.pair_id!r} stands already in row {seen[row.pair_id]}"
            )
        seen[row.pair_id] = number
        rows.append(row)
    if not rows:
        raise PublishedLayoutError(f"{name}: holds no pairs")
    return rows


def clean_path(path: str) -> str:
    """A path of the table without the leading ``images/`` that some copies carry."""
    return path.removeprefix("./").removeprefix("images/")


def _records(text: str, name: str) -> Iterator[tuple[int, dict[str, str]]]:
    csv.field_size_limit(_MAX_TABLE_CELL)
    # newline="" keeps line ends inside quotes as they are.
    reader = csv.reader(io.StringIO(text, newline=""), delimiter="\t", strict=True)
    try:
        head = next(reader, None)
        if head is None:
            raise PublishedLayoutError(f"{name}: is empty")
        missing = [column for column in COLUMNS if column not in head]
        if missing:
            raise PublishedLayoutError(f"{name}: has no column {', '.join(missing)}")
        for number, cells in enumerate(reader, start=2):
            if len(cells) != len(head):
                raise PublishedLayoutError(
                    f"{name}, row {number}: {len(cells)} cells under {len(head)} columns"
                )
            yield number, dict(zip(head, cells, strict=True))
    except csv.Error as error:
        raise PublishedLayoutError(f"{name}, line {reader.line_num}: {error}") from error


def _row(cells: dict[str, str], place: str) -> PublishedRow:
    if not cells["id"].strip():
        raise PublishedLayoutError(f"{place}: has no id")
    for column in ("prompt", "contrast"):
        if not cells[column].strip():
            raise PublishedLayoutError(f"{place}: has no {column}")
    paths = {side: _paths(cells[f"{side}_paths"], f"{place}, {side}_paths") for side in SIDES}
    return PublishedRow(from_published(cells["id"]), cells["prompt"], cells["contrast"], paths)


def _paths(cell: str, place: str) -> tuple[str, ...]:
    if not cell.strip() or cell.strip().lower() == "nan":
        return ()
    try:
        value = ast.literal_eval(cell)
    except (ValueError, SyntaxError, MemoryError, RecursionError) as error:
        raise PublishedLayoutError(f"{place}: is not the literal of a Python list") from error
    if not isinstance(value, (list, tuple)) or not all(isinstance(path, str) for path in value):
        raise PublishedLayoutError(f"{place}: is not a list of paths")
    return tuple(value)
