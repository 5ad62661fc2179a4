"""Intervals of simulated campaigns hold the true value at about the stated rate."""

from __future__ import annotations

import numpy as np
import pytest

from croc_annotate.agreement import coefficients as c
from croc_annotate.lib import bootstrap as b

STATISTICS = {
    "raw": c.raw_from_sums,
    "alpha": c.alpha_from_sums,
    "ac1": c.ac1_from_sums,
    "fleiss": c.fleiss_from_sums,
}


def sums_of(seed: int, pairs: int, per_pair: int = 30) -> np.ndarray:
    """Terms per contrast pair: truth and difficulty vary by pair, three votes an item."""
    rng = np.random.default_rng(seed)
    share = rng.beta(1.2, 2.5, pairs)[:, None]
    error = rng.beta(2.0, 14.0, pairs)[:, None, None]
    truth = rng.random((pairs, per_pair)) < share
    wrong = rng.random((pairs, per_pair, 3)) < error
    accept = (truth[..., None] ^ wrong).sum(axis=2).ravel()
    cluster = np.repeat(np.arange(pairs), per_pair)
    return b.cluster_sums(c.item_sums(accept, 3 - accept), cluster, pairs)


@pytest.fixture(scope="module")
def truth() -> dict[str, float]:
    """The values in a campaign without end (200,000 pairs)."""
    total = sum(sums_of(seed, 10_000).sum(axis=0) for seed in range(1000, 1020))
    return {name: float(statistic(total)) for name, statistic in STATISTICS.items()}


@pytest.mark.parametrize("pairs", [50, 200])
def test_bootstrap_intervals_cover_where_difficulty_varies_by_pair(truth, pairs):
    campaigns = 400
    held = dict.fromkeys(STATISTICS, 0)
    for seed in range(campaigns):
        found = b.bootstrap_intervals(sums_of(seed, pairs), STATISTICS, draws=400, seed=seed)
        for name, interval in found.items():
            held[name] += interval.low <= truth[name] <= interval.high
    for name, n in held.items():
        assert 0.90 <= n / campaigns <= 0.97, name


def test_intervals_over_items_would_cover_far_less():
    """Why pairs are drawn: items of one pair repeat each other."""
    held = 0
    for seed in range(150):
        rng = np.random.default_rng(seed)
        accept_share = rng.beta(1.2, 2.5, 50)
        accept = rng.binomial(3, np.repeat(accept_share, 30))
        terms = c.item_sums(accept, 3 - accept)
        # One column is enough: the mean share of accepts.
        drawn = b.resampled_sums(terms, draws=200, seed=seed)
        share = drawn[:, c.SHARE] / drawn[:, c.ITEMS]
        low, high = np.quantile(share, [0.025, 0.975])
        held += low <= 1.2 / 3.7 <= high
    assert held / 150 < 0.75
