"""Questions about the bank."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.db.models import Count, Q

from croc_annotate.prompts.models import Category, ContrastPair
from croc_annotate.prompts.rules import normalised

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from croc_annotate.prompts.models import ContrastPairQuerySet


@dataclass(frozen=True)
class SameText:
    """Another pair in use with one of the texts."""

    slug: str
    field: str


def filter_pairs(wanted: Mapping[str, str]) -> ContrastPairQuerySet:
    """Pairs by category, bank, words and state (``active`` unless it says otherwise)."""
    pairs = ContrastPair.objects.select_related("category").in_order()
    if wanted.get("category"):
        pairs = pairs.filter(category=wanted["category"])
    if wanted.get("bank"):
        pairs = pairs.in_bank(wanted["bank"])
    if wanted.get("q"):
        pairs = pairs.search(wanted["q"])
    state = wanted.get("state") or "active"
    return pairs if state == "all" else pairs.filter(active=state == "active")


def category_titles() -> list[tuple[str, str]]:
    """(slug, title in the reader's language) of each category, in order."""
    return [(category.slug, category.title) for category in Category.objects.all()]


def category_counts() -> list[Category]:
    """The categories in order, each with ``in_use``: its number of active pairs."""
    return list(Category.objects.annotate(in_use=Count("pairs", filter=Q(pairs__active=True))))


def banks() -> list[str]:
    """The names of the banks that pairs came from."""
    names = ContrastPair.objects.exclude(bank="").order_by("bank").values_list("bank", flat=True)
    return list(names.distinct())


def versions(slug: str) -> list[ContrastPair]:
    """All versions of a pair: the one in use first, then the newest."""
    found = ContrastPair.objects.filter(slug=slug).select_related("category")
    return list(found.order_by("-active", "-version"))


def same_texts(*, texts: Mapping[str, str], slug: str) -> list[SameText]:
    """Other active pairs that have one of the texts (``prompt``, ``contrast``), for a warning."""
    wanted = {key: field for field, text in texts.items() if (key := normalised(text))}
    others = ContrastPair.objects.active().exclude(slug=slug)
    found: list[SameText] = []
    for key, field in wanted.items():
        # Equal after normalisation is finer than a database can say: it only narrows down.
        near = others.filter(
            Q(prompt__icontains=_anchor(key)) | Q(contrast__icontains=_anchor(key))
        )
        for other, prompt, contrast in near.values_list("slug", "prompt", "contrast"):
            if key in (normalised(prompt), normalised(contrast)):
                found.append(SameText(other, field))
    return found


def _anchor(key: str) -> str:
    """A word that every text with this normal form contains, in whatever case; "" if none is sure."""
    return max((word for word in key.split() if word.isascii()), key=len, default="")


def next_number(category: str) -> int:
    """The first free number for a new pair's id, after the highest that was ever used."""
    prefix = f"{category}_"
    slugs = ContrastPair.objects.filter(slug__startswith=prefix).values_list("slug", flat=True)
    numbers = [int(rest) for slug in slugs if (rest := slug[len(prefix) :]).isdecimal()]
    return max(numbers, default=0) + 1


def bank_rows(pairs: ContrastPairQuerySet) -> Iterator[dict[str, str]]:
    """The pairs as rows of a bank file (JSON Lines), in the order given."""
    fields = ("prompt", "contrast", "alt_contrast", "property", "topic", "entity")
    rows = pairs.values_list("slug", "category_id", *fields)
    for slug, category, *values in rows.iterator(chunk_size=500):
        yield {"id": slug, "category": category, **dict(zip(fields, values, strict=True))}
