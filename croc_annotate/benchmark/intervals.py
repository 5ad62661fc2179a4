"""How sure a mean over contrast pairs is: a bootstrap over pairs that share no text (pure).

Within each category the connected components of pairs that share a text are drawn with
replacement. All metrics and directions see the same draws, so their differences are paired.
A category's draws depend on the seed, its name and its number of components only.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from croc_annotate.benchmark.layout import DIRECTIONS, Layout
from croc_annotate.lib.bootstrap import LEVEL, weight_blocks

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from croc_annotate.benchmark.layout import Bools, Floats, Ints

DRAWS: Final = 10_000
SEED: Final = 20_250_515
MIN_COMPONENTS: Final = 10
AVERAGE: Final = "average"

# What is reported of each metric and category: the directions, and means over some of them.
STATISTICS: Final[dict[str, tuple[int, ...]]] = {
    **{name: (row,) for row, name in enumerate(DIRECTIONS)},
    "text": (0, 1),
    "image": (2, 3),
    "overall": (0, 1, 2, 3),
}


@dataclass(frozen=True)
class Bounds:
    """A 95 % percentile interval, or None and None with the reason in words."""

    low: float | None = None
    high: float | None = None
    reason: str = ""
    undefined_draws: int = 0
    too_few: bool = False
    """No interval for want of independent pairs: then no test either."""


@dataclass(frozen=True)
class Bootstrap:
    """Intervals by metric, category (or "average") and statistic, and the draws of "overall"."""

    bounds: dict[str, dict[str, dict[str, Bounds]]]
    draws: dict[str, dict[str, Floats]]
    """Statistic ("text", "image", "overall") → metric → its average in each draw."""
    seed: int
    n_draws: int


def bootstrap(
    layout: Layout,
    values: Mapping[str, Floats],
    *,
    draws: int = DRAWS,
    seed: int = SEED,
) -> Bootstrap:
    """Bootstrap every metric's (4, n_pairs) values; NaN marks a pair without a value.

    The average is over the categories that the release allows a value in. Directions that
    the release has no images for are left out of "text", "image" and "overall".
    """
    names = list(values)
    stacked = np.stack([values[name] for name in names]) if names else np.empty((0, 4, 0))
    bounds: dict[str, dict[str, dict[str, Bounds]]] = {name: {} for name in names}
    possible = _possible(layout)
    total = np.zeros((draws, len(names), len(DIRECTIONS)))
    support = np.zeros((len(names), len(DIRECTIONS), len(layout.categories)), dtype=np.int64)
    for code, category in enumerate(layout.categories):
        pairs = np.flatnonzero(layout.category == code)
        component = _renumber(layout.components[pairs])
        chosen = stacked[:, :, pairs]
        support[:, :, code] = _components_with_values(chosen, component)
        drawn = _draw(chosen, component, draws=draws, seed=category_seed(seed, category))
        for m, name in enumerate(names):
            bounds[name][category] = _category_bounds(
                drawn[:, m], chosen[m], support[m, :, code], possible[:, code]
            )
        # Where the release has no images at all, the average does not ask for a value.
        total += np.where(possible[:, code], drawn, 0.0)
    mean = total / np.maximum(possible.sum(axis=1), 1)
    for m, name in enumerate(names):
        bounds[name][AVERAGE] = _average_bounds(mean[:, m], support[m], possible)
    rows = {s: _usable(STATISTICS[s], possible) for s in ("text", "image", "overall")}
    kept = {
        s: {name: mean[:, m, list(r)].mean(axis=1) for m, name in enumerate(names)}
        for s, r in rows.items()
        if r
    }
    return Bootstrap(bounds, kept, seed, draws)


def category_seed(seed: int, category: str) -> int:
    """A stream of its own for each category, whatever other categories there are."""
    digest = hashlib.sha256(f"{seed}\x1f{category}".encode()).digest()
    return int.from_bytes(digest[:8], "big")


def interval_of(draws: Floats) -> tuple[float, float]:
    """The central 95 % of the defined draws."""
    tail = (1.0 - LEVEL) / 2.0
    low, high = np.quantile(draws[~np.isnan(draws)], [tail, 1.0 - tail])
    return float(low), float(high)


def _possible(layout: Layout) -> Bools:
    """Whether any pair of a category allows a value, shape (4, n_categories)."""
    result = np.zeros((len(DIRECTIONS), len(layout.categories)), dtype=bool)
    for code in range(len(layout.categories)):
        result[:, code] = layout.possible[:, layout.category == code].any(axis=1)
    return result


def _usable(rows: Sequence[int], possible: Bools) -> tuple[int, ...]:
    """Those of a statistic's directions that the release has images for anywhere."""
    return tuple(r for r in rows if possible[r].any())


def _renumber(component: Ints) -> Ints:
    return np.unique(component, return_inverse=True)[1].astype(np.int64)


def _components_with_values(values: Floats, component: Ints) -> Ints:
    """Number of components with a defined value, for (metrics, 4, pairs) → (metrics, 4)."""
    n = int(component.max(initial=-1)) + 1
    defined = ~np.isnan(values)
    hits = np.zeros((*values.shape[:2], n), dtype=bool)
    for pair, target in enumerate(component):
        hits[:, :, target] |= defined[:, :, pair]
    counts: Ints = hits.sum(axis=2)
    return counts


def _draw(values: Floats, component: Ints, *, draws: int, seed: int) -> Floats:
    """Means over resampled pairs, shape (draws, metrics, 4); NaN where a draw has no value."""
    n = int(component.max(initial=-1)) + 1
    metrics = values.shape[0]
    flat = values.reshape(metrics * len(DIRECTIONS), -1).T
    known = ~np.isnan(flat)
    sums, counts = np.zeros((n, flat.shape[1])), np.zeros((n, flat.shape[1]))
    np.add.at(sums, component, np.where(known, flat, 0.0))
    np.add.at(counts, component, known.astype(np.float64))
    blocks = []
    for weights in weight_blocks(n, draws=draws, seed=seed):
        size = weights @ counts
        mean = np.divide(weights @ sums, size, out=np.full(size.shape, np.nan), where=size > 0)
        blocks.append(mean)
    return np.concatenate(blocks).reshape(draws, metrics, len(DIRECTIONS))


def _category_bounds(
    drawn: Floats, values: Floats, support: Ints, possible: Bools
) -> dict[str, Bounds]:
    result = {}
    for statistic, rows in STATISTICS.items():
        used = [r for r in rows if possible[r]]
        if not used:
            result[statistic] = Bounds(reason="the release has no images for it")
            continue
        smallest = int(support[used].min())
        if smallest < MIN_COMPONENTS:
            result[statistic] = Bounds(reason=_too_few(smallest), too_few=True)
        elif all(_constant(values[r]) for r in used):
            result[statistic] = Bounds(reason="every pair has the same value")
        else:
            result[statistic] = _bounds(drawn[:, used].mean(axis=1))
    return result


def _average_bounds(drawn: Floats, support: Ints, possible: Bools) -> dict[str, Bounds]:
    """Bounds of the mean over categories: it is no surer than its least sure category.

    Draws are made within categories, so that one of few components makes the average's interval
    too narrow, however many the others have.
    """
    result = {}
    for statistic, rows in STATISTICS.items():
        used = _usable(rows, possible)
        if not used:
            result[statistic] = Bounds(reason="the release has no images for it")
            continue
        smallest = min(int(support[r][possible[r]].min()) for r in used)
        if smallest < MIN_COMPONENTS:
            reason = _too_few_in_one(smallest) if support.shape[1] > 1 else _too_few(smallest)
            result[statistic] = Bounds(reason=reason, too_few=True)
        else:
            result[statistic] = _bounds(drawn[:, list(used)].mean(axis=1))
    return result


def _bounds(draws: Floats) -> Bounds:
    undefined = int(np.isnan(draws).sum())
    defined = draws[~np.isnan(draws)]
    if undefined * 2 > len(draws) or not len(defined):
        return Bounds(
            reason=f"undefined in {undefined} of {len(draws)} draws", undefined_draws=undefined
        )
    if np.ptp(defined) <= 1e-12:
        return Bounds(reason="every draw gave the same value", undefined_draws=undefined)
    low, high = interval_of(defined)
    return Bounds(low, high, undefined_draws=undefined)


def _constant(values: Floats) -> bool:
    defined = values[~np.isnan(values)]
    return not len(defined) or bool(np.ptp(defined) == 0)


def _too_few(n: int) -> str:
    return f"{n} independent pairs; an interval needs {MIN_COMPONENTS}"


def _too_few_in_one(n: int) -> str:
    found = "no independent pairs" if n == 0 else f"only {n} independent pair{'s' if n > 1 else ''}"
    return f"a category has {found}; an interval needs {MIN_COMPONENTS} in each"
