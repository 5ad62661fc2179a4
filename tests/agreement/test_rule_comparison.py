"""The estimated label error of a rule, from gold and from the model."""

from __future__ import annotations

import numpy as np
import pytest

from croc_annotate.agreement.dawid_skene import fit
from croc_annotate.agreement.rule_comparison import (
    GoldRates,
    error_from_gold,
    error_from_model,
    majority_error,
)
from tests.agreement.simulate import simulate


def test_a_majority_of_three_can_leave_a_fifth_of_its_accepts_wrong():
    assert majority_error(0.95, 0.80, 0.30, 3) == pytest.approx(0.196, abs=0.001)


def test_gold_tells_the_error_of_a_majority():
    sim = simulate(
        1, items=40_000, categories=2, prior=(0.3, 0.3), sensitivity=(0.95, 0.95),
        specificity=(0.80, 0.80),
    )  # fmt: skip
    accept = np.bincount(sim.votes.item, weights=sim.votes.vote).astype(int)
    accepted = accept >= 2
    gold = GoldRates(hits=950, matches=1000, correct_rejects=800, others=1000)
    found = error_from_gold(accepted, accept, 3 - accept, sim.votes.category, gold)
    assert found.value == pytest.approx((1 - sim.truth[accepted]).mean(), abs=0.01)
    assert found.low < 0.196 < found.high


def test_the_model_tells_the_error_of_any_rule():
    for seed in range(5):
        sim = simulate(seed, items=8000)
        posterior = fit(sim.votes).posterior
        for accepted in (posterior >= 0.95, posterior >= 0.5):
            found = error_from_model(accepted, posterior)
            assert found.value == pytest.approx((1 - sim.truth[accepted]).mean(), abs=0.02)


def test_without_gold_of_both_kinds_there_is_a_reason_instead_of_a_number():
    none = np.zeros(3, int)
    found = error_from_gold(none == 0, none + 1, none, none, GoldRates(30, 30, 0, 0))
    assert found.value is None
    assert "gold" in found.reason
    assert error_from_model(none > 0, np.ones(3)).reason.startswith("no accepted item")
