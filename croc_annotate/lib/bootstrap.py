"""A seeded cluster bootstrap on sums: fast, because each draw is one row of a product.

Items of one cluster (here: of one contrast pair) share their difficulty, so whole
clusters are drawn with replacement.  A statistic that is a function of sums over
items needs only the sums per cluster: ``draws`` resamples of ``n`` clusters are a
(draws × n) matrix of weights times an (n × k) matrix of sums, whatever the number
of items.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Statistic = Callable[[Floats], Floats]

LEVEL = 0.95
# Weights of at most this many cells are held at once (16 MB), however many clusters.
_CELLS_AT_ONCE = 2_000_000


@dataclass(frozen=True, slots=True)
class Interval:
    """A percentile interval, or None and None with the reason in words."""

    low: float | None
    high: float | None
    draws: int
    undefined_draws: int
    clusters: int
    reason: str = ""


def generator(*seed: int) -> np.random.Generator:
    """Return a PCG64 generator that depends on the given integers only."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed)))


def cluster_sums(terms: Floats, cluster: NDArray[np.int64], n_clusters: int) -> Floats:
    """Add up (n_items, k) terms within clusters 0…n-1 to (n_clusters, k)."""
    columns = [
        np.bincount(cluster, weights=terms[:, j], minlength=n_clusters)
        for j in range(terms.shape[1])
    ]
    return np.stack(columns, axis=1) if columns else np.empty((n_clusters, 0))


def weight_blocks(n_clusters: int, *, draws: int, seed: int) -> Iterator[Floats]:
    """Yield blocks of rows of the (draws, n_clusters) matrix: how often each cluster is drawn.

    The rows do not depend on the size of the blocks: equal seed and number of
    clusters give equal draws.
    """
    rng = generator(seed, n_clusters)
    rows_at_once = max(1, _CELLS_AT_ONCE // max(n_clusters, 1))
    for start in range(0, draws, rows_at_once):
        rows = min(rows_at_once, draws - start)
        picks = rng.integers(0, n_clusters, size=(rows, n_clusters), dtype=np.int64)
        picks += np.arange(rows, dtype=np.int64)[:, None] * n_clusters
        counts = np.bincount(picks.ravel(), minlength=rows * n_clusters)
        yield counts.reshape(rows, n_clusters).astype(np.float64)


def resampled_sums(sums: Floats, *, draws: int, seed: int) -> Floats:
    """Return the (draws, k) sums over resampled clusters of (n_clusters, k) sums."""
    blocks = weight_blocks(sums.shape[0], draws=draws, seed=seed)
    return np.concatenate([weights @ sums for weights in blocks])


def percentile_interval(values: Floats, *, clusters: int, level: float = LEVEL) -> Interval:
    """Return the percentile interval of the defined draws, counting the undefined ones (NaN)."""
    defined = values[~np.isnan(values)]
    draws, undefined = values.size, int(values.size - defined.size)
    reason = _why_not(defined, draws)
    if reason:
        return Interval(None, None, draws, undefined, clusters, reason)
    tail = (1.0 - level) / 2.0
    low, high = np.quantile(defined, [tail, 1.0 - tail])
    return Interval(float(low), float(high), draws, undefined, clusters)


def bootstrap_intervals(
    sums: Floats, statistics: dict[str, Statistic], *, draws: int, seed: int
) -> dict[str, Interval]:
    """Return one interval per statistic of (…, k) sums, all on the same draws."""
    clusters = sums.shape[0]
    if clusters < 2:
        reason = "an interval needs at least two contrast pairs"
        return {name: Interval(None, None, 0, 0, clusters, reason) for name in statistics}
    if draws < 1:
        return {name: Interval(None, None, 0, 0, clusters, "not asked for") for name in statistics}
    resampled = resampled_sums(sums, draws=draws, seed=seed)
    return {
        name: percentile_interval(statistic(resampled), clusters=clusters)
        for name, statistic in statistics.items()
    }


def _why_not(defined: Floats, draws: int) -> str:
    if defined.size * 2 < draws or defined.size == 0:
        return f"undefined in {draws - defined.size} of {draws} draws"
    if np.ptp(defined) <= 1e-12:
        return "every draw gave the same value"
    return ""
