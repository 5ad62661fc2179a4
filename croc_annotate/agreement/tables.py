"""Judgements as columns: what all statistics are computed from."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
Codes = NDArray[np.int8]

ACCEPT, REJECT, UNSURE = 1, 0, -1
OWN, OTHER = 0, 1
ITEM_DIMENSIONS = ("category", "side", "generator")
JUDGEMENT_DIMENSIONS = ("week", "guideline_version", "mode")
PAIR_DIMENSION = "annotator_pair"
DIMENSIONS = (*ITEM_DIMENSIONS, PAIR_DIMENSION, *JUDGEMENT_DIMENSIONS)


@dataclass(frozen=True, slots=True)
class JudgementTable:
    """Judgements in order of item and time, and the items that they are about.

    ``item`` and ``rater`` count from 0.  ``item_codes`` has an array per item-level
    dimension, ``codes`` one per judgement-level dimension; ``labels`` names the codes.
    """

    item: Ints
    rater: Ints
    verdict: Codes
    codes: dict[str, Ints]
    cluster: Ints  # per item: its contrast pair
    role: Codes  # per item: OWN or OTHER
    item_codes: dict[str, Ints]
    labels: dict[str, list[str]] = field(default_factory=dict)
    item_id: Ints = field(default_factory=lambda: np.empty(0, np.int64))

    @property
    def n_items(self) -> int:
        """Number of items, those without a judgement included."""
        return self.cluster.size

    def only(self, mask: Bools) -> JudgementTable:
        """The table with the judgements of ``mask``; items stay numbered as they are."""
        return replace(
            self,
            item=self.item[mask],
            rater=self.rater[mask],
            verdict=self.verdict[mask],
            codes={name: values[mask] for name, values in self.codes.items()},
        )

    def of_role(self, role: int) -> JudgementTable:
        """The judgements against the own texts, or against the other ones."""
        return self.only(self.role[self.item] == role)

    def first_two_votes(self) -> JudgementTable:
        """Each item's first two votes: what adaptive stopping cannot have biased."""
        votes = self.only(self.verdict != UNSURE)
        return votes.only(rank_in_group(votes.item) < 2)

    def counts(self) -> tuple[Ints, Ints, Ints]:
        """Accepts, rejects and unsure of each item."""
        n = self.n_items
        accept, reject, unsure = (
            np.bincount(self.item[self.verdict == value], minlength=n)
            for value in (ACCEPT, REJECT, UNSURE)
        )
        return accept, reject, unsure


def rank_in_group(groups: Ints) -> Ints:
    """Return 0, 1, 2, … within each run of equal values (equal ones stand together)."""
    if groups.size == 0:
        return np.empty(0, np.int64)
    starts = np.flatnonzero(np.r_[True, groups[1:] != groups[:-1]])
    lengths = np.diff(np.r_[starts, groups.size])
    ranks: Ints = np.arange(groups.size) - np.repeat(starts, lengths)
    return ranks


@dataclass(frozen=True, slots=True)
class VotePairs:
    """Every two judgements of one item by two people, the person with the lower number first."""

    item: Ints
    first: Ints
    second: Ints
    first_verdict: Codes
    second_verdict: Codes

    def only(self, mask: Bools | Ints) -> VotePairs:
        """The pairs of ``mask``."""
        return VotePairs(
            self.item[mask],
            self.first[mask],
            self.second[mask],
            self.first_verdict[mask],
            self.second_verdict[mask],
        )


def vote_pairs(table: JudgementTable) -> VotePairs:
    """Pair up the judgements of each item (they stand together in the table)."""
    item, rater, verdict = table.item, table.rater, table.verdict
    most = int(np.bincount(item).max()) if item.size else 0
    left = [np.flatnonzero(item[:-k] == item[k:]) for k in range(1, most)]
    right = [indices + k for k, indices in enumerate(left, start=1)]
    a = np.concatenate(left) if left else np.empty(0, np.int64)
    b = np.concatenate(right) if right else np.empty(0, np.int64)
    swap = rater[a] > rater[b]
    first, second = np.where(swap, b, a), np.where(swap, a, b)
    return VotePairs(item[a], rater[first], rater[second], verdict[first], verdict[second])


def renumbered(table: JudgementTable, place: Ints) -> JudgementTable:
    """The table with rater k called ``place[k]``."""
    return replace(table, rater=place[table.rater] if table.rater.size else table.rater)
