"""The forecast of the final number of verified images, on campaigns that are played to the end."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from croc_annotate.agreement.forecast import Cells, forecast


def play(seed: int, *, done: float, pairs: int = 30, per_pair: int = 20, strata: int = 3):
    """Pairs of different difficulty; ``done`` of the items are decided, in random order."""
    rng = np.random.default_rng(seed)
    stratum = np.repeat(np.arange(strata), pairs)
    rate = rng.beta(1.5 + stratum, 4.0)
    decided = rng.binomial(per_pair, done, stratum.size)
    accepted = rng.binomial(decided, rate)
    rest = per_pair - decided
    final = accepted.sum() + rng.binomial(rest, rate).sum()
    return Cells(stratum, accepted, decided, rest), final


@pytest.mark.parametrize("done", [0.1, 0.4, 0.8])
def test_the_interval_holds_the_final_number_at_about_its_stated_rate(done):
    held = 0
    for seed in range(150):
        cells, final = play(seed, done=done)
        found, _ = forecast(cells, 3, draws=200)
        held += found.low <= final <= found.high
    assert 0.90 <= held / 150 <= 0.99


def test_a_finished_campaign_is_certain():
    cells, final = play(3, done=1.0)
    found, strata = forecast(cells, 3)
    assert (found.value, found.low, found.high) == (final, final, final)
    assert sum(s.value for s in strata) == final


@given(
    st.lists(
        st.tuples(*[st.integers(0, 3), st.integers(0, 60), st.integers(0, 60), st.integers(0, 60)]),
        min_size=1,
        max_size=12,
    )
)
@settings(max_examples=80, deadline=None)
def test_any_standing_has_a_forecast_between_what_is_and_what_can_be(rows):
    stratum, accepted, rejected, left = (np.array(c) for c in zip(*rows, strict=True))
    found, strata = forecast(Cells(stratum, accepted, accepted + rejected, left), 4, draws=20)
    if found.value is None:
        assert found.reason
        return
    assert accepted.sum() <= found.low <= found.high <= accepted.sum() + left.sum()
    assert found.value == pytest.approx(sum(s.value for s in strata))


def test_before_the_first_decision_there_is_no_forecast_but_a_reason():
    cells = Cells(np.zeros(4, int), np.zeros(4, int), np.zeros(4, int), np.full(4, 10))
    found, strata = forecast(cells, 1)
    assert found.value is None
    assert found.reason == strata[0].reason == "nothing is decided yet"


def test_a_stratum_that_nobody_has_touched_borrows_the_overall_share():
    cells = Cells(np.array([0, 1]), np.array([30, 0]), np.array([100, 0]), np.array([0, 100]))
    _, strata = forecast(cells, 2)
    assert strata[1].value == pytest.approx(30, abs=1.0)
    assert strata[1].high - strata[1].low > 40
