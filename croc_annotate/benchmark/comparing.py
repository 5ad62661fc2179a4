"""Two metrics on one board, and two runs of one metric (pure)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from croc_annotate.benchmark.comparisons import paired_p
from croc_annotate.benchmark.intervals import AVERAGE, bootstrap
from croc_annotate.benchmark.layout import DIRECTIONS
from croc_annotate.benchmark.worst import pair_means

if TYPE_CHECKING:
    from croc_annotate.benchmark.board import Board, Entry
    from croc_annotate.benchmark.intervals import Bounds
    from croc_annotate.benchmark.layout import Direction, Floats, Layout, Scores
    from croc_annotate.benchmark.protocol import Evaluation
    from croc_annotate.benchmark.results import Numbers


@dataclass(frozen=True)
class SideBySide:
    """One statistic of two metrics; the interval is of the difference, on the same draws."""

    name: str
    first: float | None
    second: float | None
    difference: float | None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    reason: str = ""
    """Why there is no interval."""
    category: str = ""
    part: str = ""
    """Of a category's rows: "text" or "image"."""


def compare_entries(board: Board, first: Entry, second: Entry) -> list[SideBySide]:
    """Averages, then each category's text- and image-based values, all with paired intervals.

    A pair's difference is resampled, so that only pairs with both values enter an interval.
    """
    gaps = first.evaluation.values - second.evaluation.values
    bounds = bootstrap(
        board.layout, {"gap": gaps}, draws=board.bootstrap.n_draws, seed=board.bootstrap.seed
    ).bounds["gap"]
    rows = [
        replace(_row(first.result.average, second.result.average, s, s, bounds[AVERAGE]),
                p=_p(board, first, second, s))
        for s in ("overall", "text", "image")
    ]  # fmt: skip
    rows += [
        _row(first.result.average, second.result.average, d, d, bounds[AVERAGE]) for d in DIRECTIONS
    ]
    for category in board.layout.categories:
        a, b = first.result.categories[category], second.result.categories[category]
        rows += [
            replace(
                _row(a, b, part, f"{category}: {part}-based", bounds[category]),
                category=category,
                part=part,
            )
            for part in ("text", "image")
        ]
    return rows


def disagreements(
    first: Evaluation, second: Evaluation, *, count: int
) -> tuple[list[tuple[int, float, float]], list[tuple[int, float, float]]]:
    """(pair, first's value, second's value): where the first is better, where the second is."""
    a, b = pair_means(first, "overall"), pair_means(second, "overall")
    gap = np.nan_to_num(a - b)
    order = np.argsort(-gap, kind="stable")
    better = [int(p) for p in order[:count] if gap[p] > 0]
    worse = [int(p) for p in order[::-1][:count] if gap[p] < 0]
    return (
        [(p, float(a[p]), float(b[p])) for p in better],
        [(p, float(a[p]), float(b[p])) for p in worse],
    )


@dataclass(frozen=True)
class RunDifference:
    """What changed between two runs of one metric."""

    compared: int
    largest: float
    median: float
    changed: dict[Direction, int]
    """Comparisons whose outcome (right, tie, wrong) is another one."""
    comparisons: dict[Direction, int]
    values: dict[Direction, tuple[float | None, float | None]]

    @property
    def changed_share(self) -> float:
        """Share of all comparisons with another outcome."""
        total = sum(self.comparisons.values())
        return sum(self.changed.values()) / total if total else 0.0


def compare_scores(
    layout: Layout,
    first: Scores,
    second: Scores,
    evaluations: tuple[Evaluation, Evaluation],
    *,
    margin: float = 0.0,
) -> RunDifference:
    """Differences of scores, and comparisons that went another way (O(|P|·|Q|) a pair)."""
    columns = ("prompt_own", "prompt_other", "contrast_own", "contrast_other")
    gaps = np.concatenate([np.abs(getattr(first, c) - getattr(second, c)) for c in columns])
    known = gaps[~np.isnan(gaps)]
    changed, total = _changed(layout, first, second, margin)
    every = np.ones(layout.n_pairs, dtype=bool)
    return RunDifference(
        compared=len(known),
        largest=float(known.max(initial=0.0)),
        median=float(np.median(known)) if len(known) else 0.0,
        changed=changed,
        comparisons=total,
        values={
            d: (evaluations[0].cell(d, every).value, evaluations[1].cell(d, every).value)
            for d in DIRECTIONS
        },
    )


def _changed(
    layout: Layout, first: Scores, second: Scores, margin: float
) -> tuple[dict[Direction, int], dict[Direction, int]]:
    changed: dict[Direction, int] = dict.fromkeys(DIRECTIONS, 0)
    total: dict[Direction, int] = dict.fromkeys(DIRECTIONS, 0)
    for pair in range(layout.n_pairs):
        p = np.flatnonzero(layout.prompt.pair == pair)
        q = np.flatnonzero(layout.contrast.pair == pair)
        ours, theirs = _margins(first, p, q), _margins(second, p, q)
        for direction in DIRECTIONS:
            a, b = ours[direction], theirs[direction]
            both = ~np.isnan(a) & ~np.isnan(b)
            other = _outcome(a[both], margin) != _outcome(b[both], margin)
            changed[direction] += int(np.count_nonzero(other))
            total[direction] += int(both.sum())
    return changed, total


def _outcome(differences: Floats, margin: float) -> Floats:
    """1 right, 0 tie, −1 wrong."""
    outcome: Floats = np.where(np.abs(differences) <= margin, 0.0, np.sign(differences))
    return outcome


def _margins(s: Scores, p: np.ndarray, q: np.ndarray) -> dict[Direction, Floats]:
    return {
        "text_forward": s.prompt_own[p] - s.prompt_other[p],
        "text_inverse": s.contrast_own[q] - s.contrast_other[q],
        "image_forward": s.prompt_own[p][:, None] - s.contrast_other[q][None, :],
        "image_inverse": s.contrast_own[q][None, :] - s.prompt_other[p][:, None],
    }


def _row(
    first: Numbers, second: Numbers, statistic: str, name: str, bounds: dict[str, Bounds]
) -> SideBySide:
    a, b, own = first[statistic], second[statistic], bounds[statistic]
    if a is None or b is None:
        return SideBySide(name, a, b, None, reason="one of the two has no value")
    return SideBySide(name, a, b, a - b, own.low, own.high, reason=own.reason)


def _p(board: Board, first: Entry, second: Entry, statistic: str) -> float | None:
    """The uncorrected p of a difference of averages; None where there is no interval."""
    draws = board.bootstrap.draws.get(statistic, {})
    bounds = [e.bounds[AVERAGE][statistic] for e in (first, second)]
    if not draws or any(b.too_few for b in bounds):
        return None
    drawn = draws[first.name] - draws[second.name]
    return None if np.isnan(drawn).all() else paired_p(drawn)
