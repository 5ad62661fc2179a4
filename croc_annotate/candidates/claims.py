"""Who works on which waiting candidate: leases in the rows, taken by compare-and-set.

The rows are the truth. A message that is lost or comes twice, a worker that dies or
comes back, a broker that forgets: all that a claim has to survive is time.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.db.models import F

from croc_annotate.candidates.leftovers import give_up
from croc_annotate.candidates.models import Candidate

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime, timedelta

    from croc_annotate.candidates.models import CandidateQuerySet

# A candidate whose workers died this often takes its worker down with it.
MAX_ATTEMPTS = 10
# After so many deaths it is held alone, so that only the guilty one of a batch gets that far.
ALONE_AFTER = 3


@dataclass(frozen=True, order=True)
class Group:
    """The candidates that share a text and a generator: one pair's side."""

    generator_id: int
    pair_id: int
    side: str


@dataclass(frozen=True)
class Claim:
    """Candidates held under one token until a time; possibly none."""

    token: str
    candidates: Sequence[Candidate]

    @property
    def suspect(self) -> bool:
        """Whether its worker may die of it: nothing else should be at stake meanwhile."""
        return any(row.attempts >= ALONE_AFTER for row in self.candidates)


def claim_batch(*, group: Group, worker: str, limit: int, at: datetime, lease: timedelta) -> Claim:
    """Hold up to ``limit`` waiting candidates of a group, lowest seeds first; a suspect alone."""
    token = f"{worker[:100]}#{secrets.token_hex(6)}"
    waiting = _of(group).claimable(at)
    while rows := list(waiting.select_related("pair", "generator").order_by("seed")[:limit]):
        hopeless = [row for row in rows if row.attempts >= MAX_ATTEMPTS]
        if hopeless:
            _give_up(hopeless, waiting)
            continue
        rows = next(([row] for row in rows if row.attempts >= ALONE_AFTER), rows)
        # Whoever else chose the same rows waits here for our update and then finds them held.
        held = waiting.filter(pk__in=[row.pk for row in rows]).update(
            claimed_by=token, claimed_until=at + lease, attempts=F("attempts") + 1
        )
        if held:
            return Claim(token, [row for row in rows if row.pk in _held_by(token, rows, held)])
    return Claim(token, [])


def renew_claims(*, worker: str, at: datetime, lease: timedelta) -> int:
    """Hold everything that a living worker has for another lease; return how many rows."""
    held = Candidate.objects.requested().filter(claimed_by__startswith=f"{worker[:100]}#")
    return held.update(claimed_until=at + lease)


def release_claim(*, token: str, asked: bool = False) -> int:
    """Give back what a claim still holds, unrendered; return how many rows.

    Nobody is to blame, so it does not count as held, unless a source was ``asked`` for it that
    may send a bill.
    """
    held = Candidate.objects.requested().filter(claimed_by=token)
    attempts = F("attempts") if asked else F("attempts") - 1
    return held.update(claimed_by="", claimed_until=None, attempts=attempts)


def waiting_groups(*, at: datetime, generator_id: int | None = None) -> list[Group]:
    """Groups with claimable candidates, by generator and then by text."""
    rows = (
        Candidate.objects.claimable(at)
        .filter(generator__active=True)
        .exclude(
            generator__pipeline=""  # made elsewhere: no worker can render them
        )
    )
    if generator_id is not None:
        rows = rows.filter(generator_id=generator_id)
    keys = rows.values_list("generator_id", "pair_id", "side").distinct()
    return sorted(Group(*key) for key in keys)


def _of(group: Group) -> CandidateQuerySet:
    return Candidate.objects.filter(
        generator_id=group.generator_id, pair_id=group.pair_id, side=group.side
    )


def _held_by(token: str, rows: Sequence[Candidate], held: int) -> set[int]:
    """Which of the chosen rows are ours: nearly always all, and then nothing is asked."""
    if held == len(rows):
        return {row.pk for row in rows}
    return set(Candidate.objects.filter(claimed_by=token).values_list("pk", flat=True))


def _give_up(hopeless: Sequence[Candidate], waiting: CandidateQuerySet) -> None:
    for row in hopeless:
        reason = (
            f"given up after {row.attempts} attempts: each time the worker ended without a result"
        )
        give_up(candidate=row, reason=reason, among=waiting)
