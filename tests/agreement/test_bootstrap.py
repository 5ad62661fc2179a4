"""The cluster bootstrap: seeded, right and honest about what it could not draw."""

from __future__ import annotations

import numpy as np
import pytest

from croc_annotate.agreement import coefficients as c
from croc_annotate.lib import bootstrap as b

RAW = {"raw": c.raw_from_sums}


def sums_of(accept, reject, cluster, n):
    return b.cluster_sums(c.item_sums(np.asarray(accept), np.asarray(reject)), cluster, n)


def test_a_draw_is_what_resampling_the_items_of_whole_clusters_gives():
    rng = np.random.default_rng(3)
    cluster = np.repeat(np.arange(12), 5)
    accept, reject = rng.integers(0, 4, 60), rng.integers(0, 4, 60)
    sums = sums_of(accept, reject, cluster, 12)
    weights = np.concatenate(list(b.weight_blocks(12, draws=20, seed=7)))
    assert (weights.sum(axis=1) == 12).all()
    drawn = c.alpha_from_sums(b.resampled_sums(sums, draws=20, seed=7))
    for weight, value in zip(weights, drawn, strict=True):
        times = weight[cluster].astype(int)
        repeated = c.krippendorff_alpha(np.repeat(accept, times), np.repeat(reject, times))
        assert value == pytest.approx(repeated.value, abs=1e-12)


def test_the_draws_depend_on_seed_and_clusters_but_not_on_the_size_of_blocks(monkeypatch):
    whole = np.concatenate(list(b.weight_blocks(30, draws=40, seed=1)))
    monkeypatch.setattr(b, "_CELLS_AT_ONCE", 90)
    assert (whole == np.concatenate(list(b.weight_blocks(30, draws=40, seed=1)))).all()
    assert (whole != np.concatenate(list(b.weight_blocks(30, draws=40, seed=2)))).any()


def test_weights_are_those_of_a_multinomial():
    weights = np.concatenate(list(b.weight_blocks(10, draws=20_000, seed=5)))
    assert weights.mean() == 1.0
    assert weights.var(axis=0) == pytest.approx(np.full(10, 0.9), abs=0.03)
    assert np.cov(weights[:, 0], weights[:, 1])[0, 1] == pytest.approx(-0.1, abs=0.02)


def test_undefined_draws_are_counted_and_left_out():
    values = np.array([0.1, np.nan, 0.2, 0.3, 0.4])
    found = b.percentile_interval(values, clusters=9, level=0.5)
    assert (found.draws, found.undefined_draws) == (5, 1)
    assert found.low == pytest.approx(np.quantile([0.1, 0.2, 0.3, 0.4], 0.25))


@pytest.mark.field_case(31)
@pytest.mark.parametrize(
    ("values", "words"),
    [
        (np.full(10, np.nan), "undefined in 10 of 10 draws"),
        (np.full(10, 0.5), "every draw gave the same value"),
        (np.array([np.nan] * 6 + [0.1, 0.2, 0.3, 0.4]), "undefined in 6 of 10 draws"),
    ],
)
def test_an_interval_that_means_nothing_is_none_with_the_reason(values, words):
    found = b.percentile_interval(values, clusters=3)
    assert (found.low, found.high, found.reason) == (None, None, words)


def test_one_contrast_pair_gives_no_interval():
    sums = sums_of([2, 1], [0, 1], np.array([0, 0]), 1)
    found = b.bootstrap_intervals(sums, RAW, draws=100, seed=1)["raw"]
    assert found.low is None
    assert "two contrast pairs" in found.reason


def test_intervals_over_pairs_are_wider_than_over_items_where_pairs_share_difficulty():
    rng = np.random.default_rng(2)
    hard = rng.beta(1, 3, 60)
    cluster = np.repeat(np.arange(60), 40)
    wrong = rng.random((2400, 2)) < hard[cluster, None]
    accept = wrong.sum(axis=1)
    sums = c.item_sums(accept, 2 - accept)
    over_pairs = b.bootstrap_intervals(b.cluster_sums(sums, cluster, 60), RAW, draws=500, seed=1)[
        "raw"
    ]
    over_items = b.bootstrap_intervals(sums, RAW, draws=500, seed=1)["raw"]
    assert over_pairs.high - over_pairs.low > 2 * (over_items.high - over_items.low)
