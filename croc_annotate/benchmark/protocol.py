"""The scoring protocol: does a metric prefer the text, or the image, that people verified? (pure)

For each pair and direction the wins, ties and missing comparisons are counted once. Every
policy (ties as loss or half, missing as error, skip or loss) is then arithmetic on counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np

from croc_annotate.benchmark.grid import count_grid
from croc_annotate.benchmark.layout import DIRECTIONS, Direction, Floats, Layout, Scores

if TYPE_CHECKING:
    from collections.abc import Sequence

    from croc_annotate.benchmark.groups import Groups
    from croc_annotate.benchmark.layout import Bools, Ints

Ties = Literal["loss", "half"]
Missing = Literal["error", "skip", "loss"]


class MissingScoresError(ValueError):
    """A metric lacks scores and the caller asked for an error in that case."""


@dataclass(frozen=True)
class Tally:
    """One direction's comparisons, counted pair by pair; all arrays int64 of shape (n_pairs,)."""

    wins: Ints
    ties: Ints
    scored: Ints
    """Comparisons with both scores."""
    total: Ints
    """Comparisons that the release asks for."""

    def points(self, ties: Ties) -> Floats:
        """What each pair earns: wins, and half a point a tie where ties count half."""
        points: Floats = self.wins.astype(np.float64)
        return points + 0.5 * self.ties if ties == "half" else points

    def counted(self, missing: Missing) -> Ints:
        """The comparisons that enter the mean: all of them, or the scored ones."""
        return self.scored if missing == "skip" else self.total

    def values(self, *, ties: Ties, missing: Missing) -> Floats:
        """Each pair's share of right comparisons; NaN where a pair has none."""
        counted = self.counted(missing)
        values: Floats = np.divide(
            self.points(ties), counted, out=np.full(len(counted), np.nan), where=counted > 0
        )
        return values


@dataclass(frozen=True)
class Policy:
    """How ties and missing scores count; differences up to `margin` are ties."""

    ties: Ties = "loss"
    missing: Missing = "error"
    margin: float = 0.0


@dataclass(frozen=True)
class Cell:
    """One direction over a set of pairs. An absent value is None."""

    value: float | None
    """Mean over pairs (macro)."""
    micro: float | None
    """Share of all comparisons, whatever the pair."""
    n: int
    """Pairs with a value."""
    ties: int
    scored: int
    """Comparisons with both scores."""
    total: int
    """Comparisons that the release asks for."""

    @property
    def tie_rate(self) -> float | None:
        """Share of ties among the scored comparisons."""
        return self.ties / self.scored if self.scored else None

    @property
    def coverage(self) -> float | None:
        """Share of comparisons with both scores."""
        return self.scored / self.total if self.total else None


@dataclass(frozen=True)
class Evaluation:
    """One metric's tallies on a layout, and what follows from them under a policy."""

    layout: Layout
    policy: Policy
    tallies: dict[Direction, Tally]

    @cached_property
    def values(self) -> Floats:
        """Value of each direction and pair, shape (4, n_pairs), NaN where undefined."""
        return np.stack(
            [
                self.tallies[d].values(ties=self.policy.ties, missing=self.policy.missing)
                for d in DIRECTIONS
            ]
        )

    def cell(self, direction: Direction, pairs: Bools) -> Cell:
        """Summarise a direction over the pairs where the mask `pairs` is true."""
        row = DIRECTIONS.index(direction)
        return summarise(
            self.tallies[direction],
            values=self.values[row],
            pairs=pairs & self.layout.possible[row],
            policy=self.policy,
        )

    def by_category(self) -> dict[str, dict[Direction, Cell]]:
        """The four cells of each category of the layout."""
        layout = self.layout
        return {
            name: {d: self.cell(d, layout.category == code) for d in DIRECTIONS}
            for code, name in enumerate(layout.categories)
        }


def evaluate(layout: Layout, scores: Scores, *, policy: Policy, name: str = "metric") -> Evaluation:
    """Count all four directions; raises MissingScoresError as the policy says."""
    if policy.missing == "error":
        refuse_missing(layout, scores, name=name)
    return Evaluation(layout, policy, tally_all(layout, scores, margin=policy.margin))


def tally_all(layout: Layout, scores: Scores, *, margin: float = 0.0) -> dict[Direction, Tally]:
    """Tally the four directions of the protocol."""
    p, q = layout.by_pair
    return {
        "text_forward": _tally_text(p, scores.prompt_own, scores.prompt_other, margin),
        "text_inverse": _tally_text(q, scores.contrast_own, scores.contrast_other, margin),
        "image_forward": _tally_grid((p, scores.prompt_own), (q, scores.contrast_other), margin),
        "image_inverse": _tally_grid((q, scores.contrast_own), (p, scores.prompt_other), margin),
    }


def tally_same_generator(
    layout: Layout, scores: Scores, *, margin: float = 0.0
) -> dict[Direction, Tally]:
    """The two image directions on grids within one generator, so that style cannot decide."""
    p, q = layout.by_pair_and_generator
    return {
        "image_forward": _tally_grid((p, scores.prompt_own), (q, scores.contrast_other), margin),
        "image_inverse": _tally_grid((q, scores.contrast_own), (p, scores.prompt_other), margin),
    }


def tally_group(layout: Layout, scores: Scores, *, margin: float = 0.0) -> Tally:
    """All four right at once, over P × Q. A tie anywhere is not right, so there are no ties.

    Two conditions on (i, j) at once make this a dominance count; it is done by
    broadcasting, O(|P|·|Q|) a pair, over the images whose own text comparison is right.
    """
    n, p, q = layout.n_pairs, layout.prompt, layout.contrast
    own = np.zeros(n, dtype=np.int64)
    p_right = np.flatnonzero(scores.prompt_other < scores.prompt_own - margin)
    q_right = np.flatnonzero(scores.contrast_other < scores.contrast_own - margin)
    p_of, q_of = _rows_of(p.pair, p_right, n), _rows_of(q.pair, q_right, n)
    for pair in range(n):
        i, j = p_of[pair], q_of[pair]
        if len(i) and len(j):
            forward = scores.contrast_other[j][None, :] < scores.prompt_own[i][:, None] - margin
            inverse = scores.prompt_other[i][:, None] < scores.contrast_own[j][None, :] - margin
            own[pair] = np.count_nonzero(forward & inverse)
    p_known = ~np.isnan(scores.prompt_own + scores.prompt_other)
    q_known = ~np.isnan(scores.contrast_own + scores.contrast_other)
    scored = _count(p.pair[p_known], n) * _count(q.pair[q_known], n)
    total = _count(p.pair, n) * _count(q.pair, n)
    return Tally(own, np.zeros(n, dtype=np.int64), scored, total)


def summarise(tally: Tally, *, values: Floats, pairs: Bools, policy: Policy) -> Cell:
    """Macro and micro mean, n, ties and coverage over the pairs where `pairs` is true."""
    chosen = values[pairs]
    defined = chosen[~np.isnan(chosen)]
    counted = int(tally.counted(policy.missing)[pairs].sum())
    return Cell(
        value=float(defined.mean()) if len(defined) else None,
        micro=float(tally.points(policy.ties)[pairs].sum()) / counted if counted else None,
        n=len(defined),
        ties=int(tally.ties[pairs].sum()),
        scored=int(tally.scored[pairs].sum()),
        total=int(tally.total[pairs].sum()),
    )


def refuse_missing(layout: Layout, scores: Scores, *, name: str) -> None:
    """Raise MissingScoresError naming how many scores are missing and in which pair first."""
    missing = 0
    first: int | None = None
    for side, arrays in (
        (layout.prompt, (scores.prompt_own, scores.prompt_other)),
        (layout.contrast, (scores.contrast_own, scores.contrast_other)),
    ):
        for array in arrays:
            holes = np.flatnonzero(np.isnan(array))
            missing += len(holes)
            if len(holes):
                pair = int(side.pair[holes].min())
                first = pair if first is None else min(first, pair)
    if first is not None:
        raise MissingScoresError(
            f"{name} has {missing:,} missing scores, the first in pair {layout.pair_ids[first]}. "
            "Choose what they count: skip (left out, coverage is shown) or loss (as published)."
        )


def mean_or_none(numbers: Sequence[float | None]) -> float | None:
    """The mean of the numbers, or None unless every one of them is there."""
    present = [x for x in numbers if x is not None]
    return sum(present) / len(present) if present and len(present) == len(numbers) else None


def _tally_text(groups: Groups, own: Floats, other: Floats, margin: float) -> Tally:
    # x − 0 is x: no copy of all scores for a margin that is not there.
    low, high = (own - margin, own + margin) if margin else (own, own)
    won = other < low
    tied = ~won & (other <= high)  # a missing score is neither
    return Tally(
        wins=groups.count(won),
        ties=groups.count(tied),
        scored=groups.count(~(np.isnan(own) | np.isnan(other))),
        total=groups.sizes,
    )


def _tally_grid(
    better: tuple[Groups, Floats], worse: tuple[Groups, Floats], margin: float
) -> Tally:
    """Compare each score of `better` with each of `worse` in the same group; sum up by pair."""
    (a_groups, a), (b_groups, b) = better, worse
    wins, ties = count_grid(a, a_groups, b, b_groups, margin=margin)
    scored = a_groups.count(~np.isnan(a)) * b_groups.count(~np.isnan(b))
    return Tally(
        wins=a_groups.by_pair(wins),
        ties=a_groups.by_pair(ties),
        scored=a_groups.by_pair(scored),
        total=a_groups.by_pair(a_groups.sizes * b_groups.sizes),
    )


def _count(pair: Ints, n_pairs: int) -> Ints:
    return np.bincount(pair, minlength=n_pairs)


def _rows_of(pair: Ints, rows: Ints, n_pairs: int) -> list[Ints]:
    """The given rows split by their pair."""
    order = rows[np.argsort(pair[rows], kind="stable")]
    return np.split(order, np.cumsum(_count(pair[rows], n_pairs))[:-1]) if n_pairs else []
