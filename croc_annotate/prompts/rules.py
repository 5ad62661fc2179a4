"""The rules of a prompt bank, as pure functions of its rows.

A rule never changes a text: what is wrong is named, with its place, and left to the person.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

CATEGORIES = (
    "action",
    "body_parts",
    "counting",
    "negation",
    "shapes",
    "size_relation",
    "spatial_relation",
    "things_parts",
)
# Text-to-image models draw what a negated text denies, so these need a positive rewording.
NEEDS_ALT = frozenset({"negation"})
MAX_TEXT = 1_000
MAX_SLUG = 80
MAX_LABEL = 80
TEXT_FIELDS = ("prompt", "contrast", "alt_contrast")
LABEL_FIELDS = ("property", "topic", "entity")

# What pandas.read_csv takes for a missing value by default; a text that is one of these words
# would come back as NaN from every published table.
MISSING_WORDS = frozenset({
    "", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN",
    "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null",
})  # fmt: skip

# Ids become folder, file and archive names: no separators, no dots, no "___" (it splits names).
_SLUG = re.compile(r"[A-Za-z0-9_-]+")
_FORBIDDEN_KINDS = {
    "Cc": "control character",
    "Cs": "unpaired surrogate",
    "Zl": "line separator",
    "Zp": "paragraph separator",
}


@dataclass(frozen=True, slots=True)
class PairRow:
    """One row of a bank as it stands in its file; ``place`` says where that is."""

    slug: str
    category: str
    prompt: str
    contrast: str
    alt_contrast: str = ""
    property: str = ""
    topic: str = ""
    entity: str = ""
    place: str = ""


@dataclass(frozen=True, slots=True)
class Problem:
    """One broken rule: where, in which field, and in words."""

    place: str
    field: str
    message: str

    def __str__(self) -> str:
        where = ": ".join(part for part in (self.place, self.field) if part)
        return f"{where}: {self.message}" if where else self.message


def normalised(text: str) -> str:
    """Return the text without what no image can show: case, spacing, punctuation, composition."""
    folded = unicodedata.normalize("NFC", text).casefold()
    kept = (" " if unicodedata.category(char).startswith("P") else char for char in folded)
    return unicodedata.normalize("NFC", " ".join("".join(kept).split()))


def check_pair(row: PairRow) -> list[Problem]:
    """Return every rule that the row breaks by itself (none: an empty list)."""
    found = [*_slug_problems(row), *_text_problems(row), *_difference_problems(row)]
    return [Problem(row.place or row.slug, field, message) for field, message in found]


def check_bank(rows: Iterable[PairRow]) -> list[Problem]:
    """Return the problems of all rows, and of ids that two rows share (compared whole)."""
    problems: list[Problem] = []
    first_place: dict[str, str] = {}
    for row in rows:
        problems.extend(check_pair(row))
        if row.slug in first_place:
            message = f"“{row.slug}” is used twice, first at {first_place[row.slug]}"
            problems.append(Problem(row.place or row.slug, "id", message))
        else:
            first_place[row.slug] = row.place or row.slug
    return problems


def _slug_problems(row: PairRow) -> Iterator[tuple[str, str]]:
    if row.category not in CATEGORIES:
        known = ", ".join(CATEGORIES)
        yield "category", f"“{row.category}” is not a category; known are {known}"
    elif not row.slug.startswith(f"{row.category}_") or row.slug == f"{row.category}_":
        yield "id", f"“{row.slug}” must be “{row.category}_” and a name or number"
    if not _SLUG.fullmatch(row.slug) or "___" in row.slug:
        yield "id", f"“{row.slug}” may hold letters, digits, - and _ only, never “___”"
    if len(row.slug) > MAX_SLUG:
        yield "id", f"has {len(row.slug)} characters; {MAX_SLUG} are allowed"


def _text_problems(row: PairRow) -> Iterator[tuple[str, str]]:
    for field in (*TEXT_FIELDS, *LABEL_FIELDS):
        text: str = getattr(row, field)
        if not text and field not in ("prompt", "contrast"):
            continue
        for message in _faults(text, MAX_TEXT if field in TEXT_FIELDS else MAX_LABEL):
            yield field, message


def _faults(text: str, limit: int) -> Iterator[str]:
    """Yield what is wrong with one text, whatever its field."""
    if not text.strip():
        yield "is empty"
    elif text.strip() in MISSING_WORDS:
        yield f"is “{text.strip()}”, which tables read as a missing value"
    elif not normalised(text):
        yield "has no words"
    if len(text) > limit:
        yield f"has {len(text):,} characters; {limit:,} are allowed"
    for position, char in enumerate(text):
        kind = _FORBIDDEN_KINDS.get(unicodedata.category(char))
        if kind:
            yield f"has a {kind} (U+{ord(char):04X}) at character {position + 1}"
            break


def _difference_problems(row: PairRow) -> Iterator[tuple[str, str]]:
    if row.prompt.strip() and normalised(row.prompt) == normalised(row.contrast):
        yield "contrast", "says the same as the prompt (apart from case, spacing, punctuation)"
    if row.category in NEEDS_ALT and not row.alt_contrast.strip():
        yield (
            "alt_contrast",
            f"is required for {row.category}: a positive rewording of the contrast",
        )
    if row.alt_contrast.strip() and normalised(row.alt_contrast) == normalised(row.prompt):
        yield "alt_contrast", "says the same as the prompt, so its images would show the prompt"
