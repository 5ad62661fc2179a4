"""The rules of a prompt bank, as pure functions of its rows.

A rule never changes a text: what is wrong is named, with its place, and left to the person.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from dataclasses import field as field_of
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

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


def gettext_noop(template: str) -> str:
    """Mark a sentence for the translators' catalogue; nothing is translated in here."""
    return template


_FORBIDDEN_KINDS = {
    "Cc": gettext_noop("control character"),
    "Cs": gettext_noop("unpaired surrogate"),
    "Zl": gettext_noop("line separator"),
    "Zp": gettext_noop("paragraph separator"),
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
    # The message before its values were filled in: pages say it in the reader's language.
    template: str = field_of(default="", compare=False)
    values: Mapping[str, object] = field_of(default_factory=dict, compare=False, hash=False)

    def __str__(self) -> str:
        where = ": ".join(part for part in (self.place, self.field) if part)
        return f"{where}: {self.message}" if where else self.message


def normalised(text: str) -> str:
    """Return the text without what no image can show: case, spacing, punctuation, composition."""
    folded = unicodedata.normalize("NFC", text).casefold()
    kept = (" " if unicodedata.category(char).startswith("P") else char for char in folded)
    return unicodedata.normalize("NFC", " ".join("".join(kept).split()))


class Saying(NamedTuple):
    """A sentence with places for values."""

    template: str
    values: Mapping[str, object] = MappingProxyType({})


def check_pair(row: PairRow) -> list[Problem]:
    """Return every rule that the row breaks by itself (none: an empty list)."""
    found = [*_slug_problems(row), *_text_problems(row), *_difference_problems(row)]
    return [
        Problem(row.place or row.slug, field, said.template % said.values, *said)
        for field, said in found
    ]


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


def _slug_problems(row: PairRow) -> Iterator[tuple[str, Saying]]:
    if row.category not in CATEGORIES:
        values = {"category": row.category, "known": ", ".join(CATEGORIES)}
        text = gettext_noop("“%(category)s” is not a category; known are %(known)s")
        yield "category", Saying(text, values)
    elif not row.slug.startswith(f"{row.category}_") or row.slug == f"{row.category}_":
        text = gettext_noop("“%(id)s” must be “%(category)s_” and a name or number")
        yield "id", Saying(text, {"id": row.slug, "category": row.category})
    if not _SLUG.fullmatch(row.slug) or "___" in row.slug:
        text = gettext_noop("“%(id)s” may hold letters, digits, - and _ only, never “___”")
        yield "id", Saying(text, {"id": row.slug})
    if len(row.slug) > MAX_SLUG:
        yield "id", _too_long(len(row.slug), MAX_SLUG)


def _too_long(length: int, most: int) -> Saying:
    text = gettext_noop("has %(n)s characters; %(most)s are allowed")
    return Saying(text, {"n": f"{length:,}", "most": f"{most:,}"})


def _text_problems(row: PairRow) -> Iterator[tuple[str, Saying]]:
    for field in (*TEXT_FIELDS, *LABEL_FIELDS):
        text: str = getattr(row, field)
        if not text and field not in ("prompt", "contrast"):
            continue
        for said in _faults(text, MAX_TEXT if field in TEXT_FIELDS else MAX_LABEL):
            yield field, said


def _faults(text: str, limit: int) -> Iterator[Saying]:
    """Yield what is wrong with one text, whatever its field."""
    if not text.strip():
        yield Saying(gettext_noop("is empty"))
    elif text.strip() in MISSING_WORDS:
        said = gettext_noop("is “%(text)s”, which tables read as a missing value")
        yield Saying(said, {"text": text.strip()})
    elif not normalised(text):
        yield Saying(gettext_noop("has no words"))
    if len(text) > limit:
        yield _too_long(len(text), limit)
    for position, char in enumerate(text):
        kind = _FORBIDDEN_KINDS.get(unicodedata.category(char))
        if kind:
            values = {"kind": kind, "code": f"U+{ord(char):04X}", "place": position + 1}
            yield Saying(gettext_noop("has a %(kind)s (%(code)s) at character %(place)s"), values)
            break


def _difference_problems(row: PairRow) -> Iterator[tuple[str, Saying]]:
    if row.prompt.strip() and normalised(row.prompt) == normalised(row.contrast):
        text = gettext_noop("says the same as the prompt (apart from case, spacing, punctuation)")
        yield "contrast", Saying(text)
    if row.category in NEEDS_ALT and not row.alt_contrast.strip():
        text = gettext_noop("is required for %(category)s: a positive rewording of the contrast")
        yield "alt_contrast", Saying(text, {"category": row.category})
    if row.alt_contrast.strip() and normalised(row.alt_contrast) == normalised(row.prompt):
        text = gettext_noop("says the same as the prompt, so its images would show the prompt")
        yield "alt_contrast", Saying(text)
