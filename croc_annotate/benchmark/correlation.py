"""How well scores follow graded human judgements (pure; SciPy).

For sets where people gave grades instead of preferring one of two texts (TIFA160, GenAI-Bench).
Sources: Kendall's τ with ties after Deutsch, Foster and Freitag (2023), "Ties Matter".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy import stats

from croc_annotate.lib.bootstrap import generator, percentile_interval

if TYPE_CHECKING:
    from collections.abc import Sequence

    from croc_annotate.benchmark.layout import Floats, Ints
    from croc_annotate.lib.bootstrap import Interval

Statistic = Callable[["Floats", "Floats"], float | None]


def pearson(x: Floats, y: Floats) -> float | None:
    """Pearson's r, None when one side is constant."""
    return None if _constant(x, y) else float(stats.pearsonr(x, y).statistic)


def spearman(x: Floats, y: Floats) -> float | None:
    """Spearman's ρ, None when one side is constant."""
    return None if _constant(x, y) else float(stats.spearmanr(x, y).statistic)


def kendall_tau_b(x: Floats, y: Floats) -> float | None:
    """τ-b = (C − D) / √((n₀ − Tx)(n₀ − Ty)), None when one side is constant."""
    return None if _constant(x, y) else float(stats.kendalltau(x, y, variant="b").statistic)


def kendall_tau_c(x: Floats, y: Floats) -> float | None:
    """Stuart's τ-c, for two scales of unequal length; None when one side is constant."""
    return None if _constant(x, y) else float(stats.kendalltau(x, y, variant="c").statistic)


STATISTICS: Final[dict[str, Statistic]] = {
    "pearson": pearson,
    "spearman": spearman,
    "kendall_tau_b": kendall_tau_b,
    "kendall_tau_c": kendall_tau_c,
}


@dataclass(frozen=True)
class TieCalibration:
    """Pairwise accuracy with ties: a pair is right when both order it alike, or both tie it."""

    accuracy: float
    epsilon: float
    """Metric differences up to this count as ties (chosen on the same data)."""
    at_zero: float
    """The accuracy when only equal scores tie."""
    pairs: int


def pairwise_accuracy(
    human: Floats, metric: Floats, *, group: Ints | None = None
) -> TieCalibration | None:
    """Accuracy over all pairs (within `group` if given), at the best tie threshold ε.

    Sorting the pairs by the size of the metric's difference turns each ε into a prefix: pairs
    inside it are called ties, the rest keep their order. O(n²) pairs, O(n² log n) time.
    None when there is no pair.
    """
    h, m = _pair_differences(human, metric, group)
    if not len(h):
        return None
    size = np.abs(m)
    order = np.argsort(size, kind="stable")
    size, human_tie = size[order], (h == 0)[order]
    agree = (np.sign(h) == np.sign(m))[order] & ~human_tie
    # After the k smallest differences are called ties: right are the human ties among them and
    # the agreements beyond them.
    right = np.r_[0, np.cumsum(human_tie)] + np.r_[agree.sum(), agree.sum() - np.cumsum(agree)]
    ends = np.r_[np.flatnonzero(size[1:] != size[:-1]) + 1, len(size)]
    # ε = 0 makes exactly the equal scores ties; with none of those, that is the empty prefix.
    zero = int(np.searchsorted(size, 0.0, side="right"))
    candidates = np.unique(np.r_[zero, ends[ends >= zero]])
    best = candidates[np.argmax(right[candidates])]
    return TieCalibration(
        accuracy=float(right[best] / len(h)),
        epsilon=float(size[best - 1]) if best > 0 else 0.0,
        at_zero=float(right[zero] / len(h)),
        pairs=len(h),
    )


def within_groups(
    statistic: Statistic, human: Floats, metric: Floats, group: Ints
) -> tuple[float | None, int]:
    """The mean of a statistic over groups (prompts) where it is defined, and their number."""
    found = [
        value
        for rows in split_by(group)
        if len(rows) > 1 and (value := statistic(human[rows], metric[rows])) is not None
    ]
    return (float(np.mean(found)), len(found)) if found else (None, 0)


def bootstrap_over_groups(
    statistic: Statistic, human: Floats, metric: Floats, group: Ints, *, draws: int, seed: int
) -> Interval:
    """Percentile interval of the pooled statistic, whole prompts drawn with replacement."""
    rows = split_by(group)
    rng = generator(seed, len(rows))
    values = np.full(draws, np.nan)
    for draw in range(draws):
        picked = np.concatenate([rows[i] for i in rng.integers(0, len(rows), len(rows))])
        value = statistic(human[picked], metric[picked])
        values[draw] = np.nan if value is None else value
    return percentile_interval(values, clusters=len(rows))


def split_by(group: Ints) -> list[Ints]:
    """The row numbers of each group."""
    order = np.argsort(group, kind="stable")
    sizes = np.bincount(group)
    return [part for part in np.split(order, np.cumsum(sizes)[:-1]) if len(part)]


def group_codes(labels: Sequence[str]) -> Ints:
    """Numbers 0, 1, … for labels in order of first appearance."""
    index: dict[str, int] = {}
    return np.array([index.setdefault(label, len(index)) for label in labels], dtype=np.int64)


def _pair_differences(human: Floats, metric: Floats, group: Ints | None) -> tuple[Floats, Floats]:
    """Differences of all pairs of rows, or of those within one group."""
    if group is None:
        group = np.zeros(len(human), dtype=np.int64)
    parts = []
    for rows in split_by(group):
        i, j = np.triu_indices(len(rows), k=1)
        parts.append((human[rows][i] - human[rows][j], metric[rows][i] - metric[rows][j]))
    if not parts:
        return np.empty(0), np.empty(0)
    return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])


def _constant(x: Floats, y: Floats) -> bool:
    return len(x) < 2 or bool(np.ptp(x) == 0) or bool(np.ptp(y) == 0)
