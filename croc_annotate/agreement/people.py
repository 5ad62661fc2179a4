"""What the judgements of each person say about them, as columns over people (pure)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from croc_annotate.agreement import tables as t

if TYPE_CHECKING:
    from croc_annotate.agreement.tables import JudgementTable

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

BURST_SECONDS = 60
QUICK_MS = 800
_Z95 = 1.959963984540054


@dataclass(frozen=True, slots=True)
class Share:
    """How often something held, per person: ``part`` of ``whole`` times."""

    part: Floats
    whole: Floats

    @property
    def value(self) -> Floats:
        """The share; NaN where there is nothing to share."""
        return divide(self.part, self.whole)

    def interval(self) -> tuple[Floats, Floats]:
        """Wilson's 95 % interval, which keeps its promise near 0 and 1."""
        n, p = self.whole, self.value
        centre = (p + _Z95**2 / (2 * n_or_nan(n))) / (1 + _Z95**2 / n_or_nan(n))
        spread = np.sqrt(p * (1 - p) / n_or_nan(n) + _Z95**2 / (4 * n_or_nan(n) ** 2))
        half = _Z95 * spread / (1 + _Z95**2 / n_or_nan(n))
        return centre - half, centre + half


@dataclass(frozen=True, slots=True)
class Others:
    """What others gave the items that a judgement is about, per judgement (votes only)."""

    accepts: Ints
    votes: Ints

    @property
    def share(self) -> Floats:
        """Share of accepts among the others; NaN where nobody else voted."""
        return divide(self.accepts, self.votes)

    @property
    def verdict(self) -> NDArray[np.int8]:
        """The others' majority: accept, reject, or UNSURE where they tie or are missing."""
        twice = 2 * self.accepts
        codes = np.select([twice > self.votes, twice < self.votes], [t.ACCEPT, t.REJECT], t.UNSURE)
        return codes.astype(np.int8)


def divide(part: NDArray[np.generic], whole: NDArray[np.generic]) -> Floats:
    """Divide, with NaN where the whole is zero."""
    quotient: Floats = np.asarray(part, float) / n_or_nan(whole)
    return quotient


def n_or_nan(n: NDArray[np.generic]) -> Floats:
    """The numbers, with NaN in place of zero."""
    values = np.asarray(n, dtype=np.float64)
    return np.where(values == 0, np.nan, values)


def others_of(table: JudgementTable) -> Others:
    """Leave each judgement out and count what is left of its item."""
    accept, reject, _ = table.counts()
    is_vote = table.verdict != t.UNSURE
    mine = (table.verdict == t.ACCEPT).astype(np.int64)
    votes = (accept + reject)[table.item] - is_vote
    return Others(accept[table.item] - mine, votes)


def count_by(rater: Ints, n_raters: int, mask: Bools | None = None) -> Floats:
    """How many judgements each person has, of those in ``mask``."""
    chosen = rater if mask is None else rater[mask]
    return np.bincount(chosen, minlength=n_raters).astype(np.float64)


def accept_shares(table: JudgementTable, n_raters: int) -> tuple[Share, Floats]:
    """Each person's share of accepts, and what the same items got from others on average."""
    others = others_of(table)
    votes = (table.verdict != t.UNSURE) & (others.votes > 0)
    accepts = count_by(table.rater, n_raters, votes & (table.verdict == t.ACCEPT))
    whole = count_by(table.rater, n_raters, votes)
    given = np.where(votes, others.share, 0.0)
    from_others = np.bincount(table.rater, weights=np.nan_to_num(given), minlength=n_raters)
    return Share(accepts, whole), divide(from_others, whole)


def agreement_with_others(table: JudgementTable, n_raters: int) -> Share:
    """Votes equal to the majority of the others, of those where the others have one."""
    return Share(*_agreement_counts(table, n_raters, others_of(table).verdict))


def agreement_by_part(table: JudgementTable, n_raters: int, parts: int, order: Ints) -> Share:
    """The same for each equal part of a person's work in time: arrays of (parts, people).

    ``order`` has a number per judgement that grows with time within a person.
    """
    verdict = others_of(table).verdict
    usable = (table.verdict != t.UNSURE) & (verdict != t.UNSURE)
    by_time = np.lexsort((order, table.rater))
    by_time = by_time[usable[by_time]]
    rater = table.rater[by_time]
    total = np.bincount(rater, minlength=n_raters)
    part = t.rank_in_group(rater) * parts // total[rater] if by_time.size else rater
    cell = part * n_raters + rater
    equal = table.verdict[by_time] == verdict[by_time]
    size = parts * n_raters
    counts = [np.bincount(cell[equal], minlength=size), np.bincount(cell, minlength=size)]
    right, whole = (found.reshape(parts, n_raters).astype(np.float64) for found in counts)
    return Share(right, whole)


def _agreement_counts(
    table: JudgementTable, n_raters: int, verdict: NDArray[np.int8]
) -> tuple[Floats, Floats]:
    usable = (table.verdict != t.UNSURE) & (verdict != t.UNSURE)
    equal = usable & (table.verdict == verdict)
    return count_by(table.rater, n_raters, equal), count_by(table.rater, n_raters, usable)


@dataclass(frozen=True, slots=True)
class Pace:
    """How quickly each person answers."""

    median_ms: Floats
    quick: Share  # answers faster than QUICK_MS
    busiest_minute: Ints  # most answers within any 60 seconds


def pace_of(rater: Ints, active_ms: Ints, at: Ints, n_raters: int) -> Pace:
    """Median active time, share of quick answers and the busiest minute of each person."""
    known = active_ms >= 0
    order = np.lexsort((active_ms[known], rater[known]))
    times, owner = active_ms[known][order], rater[known][order]
    count = np.bincount(owner, minlength=n_raters)
    start = np.r_[0, np.cumsum(count)[:-1]]
    middle = np.full(n_raters, np.nan)
    some = count > 0
    low, high = start + (count - 1) // 2, start + count // 2
    middle[some] = (times[low[some]] + times[high[some]]) / 2
    quick = Share(
        count_by(rater, n_raters, known & (active_ms < QUICK_MS)),
        count_by(rater, n_raters, known),
    )
    return Pace(middle, quick, _busiest_minute(rater, at, n_raters))


def _busiest_minute(rater: Ints, at: Ints, n_raters: int) -> Ints:
    """Most answers of one person within BURST_SECONDS, over all windows that start at an answer."""
    most = np.zeros(n_raters, np.int64)
    if rater.size == 0:
        return most
    order = np.lexsort((at, rater))
    owner, when = rater[order], at[order] - int(at.min())
    # Put people one after another on one axis, further apart than any window.
    axis = owner * (int(when.max()) + BURST_SECONDS + 1) + when
    end = np.searchsorted(axis, axis + BURST_SECONDS, side="left")
    np.maximum.at(most, owner, end - np.arange(axis.size))
    return most


@dataclass(frozen=True, slots=True)
class Runs:
    """Longest run of equal verdicts of each person, in the order in which they answered."""

    longest: Ints
    chance: Floats  # probability of one that long if answers came independently


def runs_of(rater: Ints, verdict: NDArray[np.int8], order: Ints, n_raters: int) -> Runs:
    """Find the longest run; ``order`` grows with time within a person."""
    longest = np.zeros(n_raters, np.int64)
    if rater.size == 0:
        return Runs(longest, np.full(n_raters, np.nan))
    by_time = np.lexsort((order, rater))
    owner, value = rater[by_time], verdict[by_time]
    breaks = np.r_[True, (owner[1:] != owner[:-1]) | (value[1:] != value[:-1])]
    starts = np.flatnonzero(breaks)
    lengths = np.diff(np.r_[starts, owner.size])
    np.maximum.at(longest, owner[starts], lengths)
    n = count_by(rater, n_raters)
    chance = np.zeros(n_raters)
    for code in (t.ACCEPT, t.REJECT, t.UNSURE):
        p = divide(count_by(rater, n_raters, verdict == code), n)
        # Erdős–Rényi: the number of runs of length L or more is about Poisson.
        expected = (n - longest + 1) * (1 - p) * p**longest + p**longest
        chance += np.nan_to_num(expected)
    return Runs(longest, 1.0 - np.exp(-chance))
