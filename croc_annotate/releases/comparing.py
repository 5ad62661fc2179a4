"""Two releases beside each other: what came in, what went out, what changed its verdict."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.utils.translation import gettext as _

from croc_annotate.prompts.selectors import category_titles
from croc_annotate.releases.models import MemberReason
from croc_annotate.releases.reasons import REASONS

if TYPE_CHECKING:
    from croc_annotate.releases.models import Release

ABSENT = "absent"


@dataclass(frozen=True, slots=True)
class Move:
    """Candidates that stand under one reason in the first and another in the second release."""

    before: str
    after: str
    n: int

    @property
    def labels(self) -> tuple[str, str]:
        """The reasons in words."""
        return label_of(self.before), label_of(self.after)


@dataclass(frozen=True, slots=True)
class Comparison:
    """How the second release differs from the first; ``moves`` leaves out what stayed."""

    added: list[int]
    removed: list[int]
    kept: int
    moves: list[Move]
    by_category: list[tuple[str, int, int]]

    @property
    def same(self) -> bool:
        """No candidate changed its place."""
        return not self.moves


def compare_releases(first: Release, second: Release) -> Comparison:
    """Compare by candidate; ``added`` and ``removed`` are of the verified images, in file order."""
    before, after = _reasons(first), _reasons(second)
    added = [key for key, reason in after.items() if reason == "verified" != before.get(key)]
    removed = [key for key, reason in before.items() if reason == "verified" != after.get(key)]
    moves: Counter[tuple[str, str]] = Counter()
    for key in before.keys() | after.keys():
        pair = (before.get(key, ABSENT), after.get(key, ABSENT))
        if pair[0] != pair[1]:
            moves[pair] += 1
    order = {reason: number for number, reason in enumerate((*REASONS, ABSENT))}
    return Comparison(
        added=added,
        removed=removed,
        kept=sum(reason == "verified" == after.get(key) for key, reason in before.items()),
        moves=[
            Move(*pair, n=moves[pair])
            for pair in sorted(moves, key=lambda pair: (order[pair[0]], order[pair[1]]))
        ],
        by_category=_by_category(first, second),
    )


def label_of(reason: str) -> str:
    """A reason in words."""
    return _("Not in this release") if reason == ABSENT else str(MemberReason(reason).label)


def _reasons(release: Release) -> dict[int, str]:
    rows = release.members.order_by("position").values_list("candidate_id", "reason")
    return dict(rows.iterator(chunk_size=5_000))


def _by_category(first: Release, second: Release) -> list[tuple[str, int, int]]:
    """Verified images of each category in both, by the category's label."""
    before, after = (release.manifest.get("by_category", {}) for release in (first, second))
    return [
        (label, _verified(before, slug), _verified(after, slug))
        for slug, label in category_titles()
        if slug in before or slug in after
    ]


def _verified(part: dict[str, dict[str, int]], slug: str) -> int:
    return part.get(slug, {}).get("verified", 0)
