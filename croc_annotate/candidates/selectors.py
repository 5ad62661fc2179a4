"""Reading candidates: the filters of the wall, and where generation stands."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from django.db.models import Count, Min, Q

from croc_annotate.candidates.models import Candidate, CandidateState
from croc_annotate.prompts.models import ContrastPair

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from croc_annotate.candidates.models import CandidateQuerySet


def filter_candidates(rows: CandidateQuerySet, wanted: Mapping[str, Any]) -> CandidateQuerySet:
    """Narrow candidates by the wall's filters; an empty or unknown filter changes nothing.

    Keys: category, pair (slug or its beginning), side, generator (slug), state, seed,
    hash (beginning of the SHA-256), look ("near": flagged near-duplicates), text.
    """
    conditions: dict[str, Callable[[Any], Q]] = {
        "category": lambda v: _of_pairs(Q(category=v)),
        "pair": lambda v: _of_pairs(Q(slug__startswith=v)),
        "side": lambda v: Q(side=v),
        "generator": lambda v: Q(generator__slug=v),
        "state": lambda v: Q(state=v),
        "seed": lambda v: Q(seed=v),
        # A range, not LIKE: the index serves that under any collation. No hex digit is beyond "g".
        "hash": lambda v: Q(sha256__gte=v.lower(), sha256__lt=f"{v.lower()}g"),
        "look": lambda v: Q(near_duplicate_of__isnull=v != "near"),
        "text": lambda v: _of_pairs(Q(prompt__icontains=v) | Q(contrast__icontains=v)),
    }
    for key, condition in conditions.items():
        value = wanted.get(key)
        if value not in (None, ""):
            rows = rows.filter(condition(value))
    return rows


def _of_pairs(condition: Q) -> Q:
    """Candidates of the pairs that meet a condition, which is asked of each pair, not of each image."""
    # Listed here: joined, even hundreds of pairs double the time of reading 80,000 images.
    return Q(pair__in=list(ContrastPair.objects.filter(condition).values_list("pk", flat=True)))


class Wall:
    """Candidates in wall order, to be cut into parts as a list is.

    Pairs stand one after another on the wall. So it is enough to count the images of each pair
    once, and to read and sort those of the pairs on the part: sorting all 80,000 for each part
    took most of a second.
    """

    def __init__(self, rows: CandidateQuerySet) -> None:
        self._rows = rows

    @cached_property
    def _by_pair(self) -> list[tuple[int, int]]:
        """Each pair on the wall with its number of images, in order."""
        # Counted by an index alone, and put in order here: joined to its pair, each image costs more.
        counted = dict(self._rows.order_by().values_list("pair_id").annotate(n=Count("*")))
        pairs = ContrastPair.objects.order_by("category__position", "pk")
        return [(pk, counted[pk]) for pk in pairs.values_list("pk", flat=True) if pk in counted]

    def count(self) -> int:
        """How many images."""
        return sum(n for _, n in self._by_pair)

    def __getitem__(self, part: slice) -> list[Candidate]:
        """The images from ``part.start`` until ``part.stop``."""
        ends = list(accumulate(n for _, n in self._by_pair))
        shown = [
            (pair, end - n)
            for (pair, n), end in zip(self._by_pair, ends, strict=True)
            if end > part.start and end - n < part.stop
        ]
        if not shown:
            return []
        before = shown[0][1]
        rows = in_wall_order(self._rows.filter(pair__in=[pair for pair, _ in shown]))
        return list(rows[part.start - before : part.stop - before])


def in_wall_order(rows: CandidateQuerySet) -> CandidateQuerySet:
    """By category, pair, side, generator and seed, so that comparable images stand together."""
    return rows.select_related("pair__category", "generator").order_by(
        "pair__category__position", "pair_id", "-side", "generator_id", "seed"
    )


@dataclass(frozen=True)
class Cell:
    """How far one generator is in one category."""

    category: str
    generator: str
    rendered: int
    waiting: int
    failed: int

    @property
    def total(self) -> int:
        """All that was ever asked for."""
        return self.rendered + self.waiting + self.failed

    @property
    def share(self) -> float:
        """Rendered of all, 0…1."""
        return self.rendered / self.total if self.total else 0.0


def progress_table() -> list[Cell]:
    """One cell per category and generator that have candidates, in the categories' order."""
    counts = (
        Candidate.objects.values("pair__category", "pair__category__position", "generator__slug")
        .annotate(
            rendered=Count("pk", filter=Q(state=CandidateState.RENDERED)),
            waiting=Count("pk", filter=Q(state=CandidateState.REQUESTED)),
            failed=Count("pk", filter=Q(state=CandidateState.FAILED)),
        )
        .order_by("pair__category__position", "pair__category", "generator__slug")
    )
    return [
        Cell(
            category=row["pair__category"],
            generator=row["generator__slug"],
            rendered=row["rendered"],
            waiting=row["waiting"],
            failed=row["failed"],
        )
        for row in counts
    ]


@dataclass(frozen=True)
class FailureGroup:
    """Failures of one generator whose reasons begin alike, up to their first colon."""

    reason: str
    generator: str
    count: int
    example: str


def failures_by_reason() -> list[FailureGroup]:
    """What failed and why, most frequent first. Reasons often end in figures of one image."""
    rows = (
        Candidate.objects.failed().values_list("generator__slug", "error").annotate(n=Count("pk"))
    )
    groups: dict[tuple[str, str], FailureGroup] = {}
    for generator, error, n in rows.order_by("error"):
        key = (generator, error.split(":")[0])
        before = groups.get(key)
        groups[key] = FailureGroup(
            reason=key[1],
            generator=generator,
            count=n + (before.count if before else 0),
            example=before.example if before else error,
        )
    return sorted(groups.values(), key=lambda group: (-group.count, group.reason))


def failed_for(*, reason: str, generator: str) -> CandidateQuerySet:
    """The candidates of a failure group."""
    alike = Q(error=reason) | Q(error__startswith=f"{reason}:")
    return Candidate.objects.failed().filter(alike, generator__slug=generator)


def rendered_since(at: datetime) -> tuple[int, datetime | None]:
    """How many images were finished at or after a time, and when the first of these was."""
    found = Candidate.objects.rendered().filter(rendered_at__gte=at)
    first: datetime | None
    n, first = found.aggregate(n=Count("pk"), first=Min("rendered_at")).values()
    return n, first
