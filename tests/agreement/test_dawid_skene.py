"""Two-coin Dawid–Skene against crowd-kit, a slow reference, and the truth of simulations."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from croc_annotate.agreement import dawid_skene
from croc_annotate.agreement.dawid_skene import VoteList, fit, posterior_of
from tests.agreement.oracles import dawid_skene_by_loops
from tests.agreement.simulate import simulate

RECORDED = Path(__file__).parent / "data" / "crowdkit_dawid_skene.json"


def vote_list(rows, n_items, n_raters, truth=None):
    item, rater, vote = (np.array(column, dtype=np.int64) for column in zip(*rows, strict=True))
    known = np.full(n_items, -1, np.int8)
    for i, value in (truth or {}).items():
        known[i] = value
    zeros = np.zeros(n_items, np.int64)
    return VoteList(item, rater, vote.astype(np.int8), zeros, known, n_raters, 1)


def test_plain_maximum_likelihood_is_that_of_crowd_kit():
    recorded = json.loads(RECORDED.read_text())
    found = fit(
        vote_list(recorded["votes"], 60, 6), smoothing=0.0, tolerance=1e-13, max_iterations=20_000
    )
    assert found.converged
    assert found.posterior == pytest.approx(recorded["posterior"], abs=1e-6)
    assert found.prior[0] == pytest.approx(recorded["prior"], abs=1e-6)
    assert found.sensitivity == pytest.approx(recorded["sensitivity"], abs=1e-6)
    assert found.specificity == pytest.approx(recorded["specificity"], abs=1e-6)


@st.composite
def sparse_votes(draw):
    """Votes of few people on few items, many of them missing."""
    n_items, n_raters = draw(st.integers(2, 8)), draw(st.integers(2, 5))
    cells = [(i, r) for i in range(n_items) for r in range(n_raters)]
    chosen = draw(st.lists(st.sampled_from(cells), min_size=2, unique=True))
    rows = [(i, r, draw(st.integers(0, 1))) for i, r in chosen]
    truth = draw(st.dictionaries(st.integers(0, n_items - 1), st.integers(0, 1), max_size=3))
    return rows, n_items, n_raters, truth


@given(sparse_votes(), st.sampled_from([0.5, 1.0]), st.integers(1, 30))
@settings(max_examples=150, deadline=None)
def test_each_step_is_that_of_a_slow_reference(table, smoothing, iterations):
    rows, n_items, n_raters, truth = table
    votes = vote_list(rows, n_items, n_raters, truth)
    found = fit(votes, smoothing=smoothing, tolerance=0.0, max_iterations=iterations)
    if found.reason:
        assert np.isnan(found.posterior).all()
        return
    posterior, *_ = dawid_skene_by_loops(
        rows, n_items, n_raters, iterations=iterations, smoothing=smoothing, truth=truth
    )
    judged = ~np.isnan(found.posterior)
    assert set(np.flatnonzero(judged)) == {i for i, _, _ in rows}
    assert found.posterior[judged] == pytest.approx(np.array(posterior)[judged], abs=1e-9)


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([(0, 0, 1), (1, 1, 0)], "no item has two votes"),
        ([(0, 0, 1), (0, 1, 1)], "all votes are equal"),
    ],
)
def test_votes_that_determine_nothing_give_no_fit_but_a_reason(rows, words):
    found = fit(vote_list(rows, 2, 2))
    assert words in found.reason
    assert np.isnan(found.posterior).all()
    assert np.isnan(found.sensitivity).all()


def test_gold_alone_determines_the_annotators():
    rows = [(i, 0, int(i < 40)) for i in range(50)] + [(i, 1, i % 2) for i in range(50)]
    truth = {i: int(i < 45) for i in range(50)}
    found = fit(vote_list(rows, 50, 2, truth), smoothing=0.0)
    assert found.sensitivity[0] == pytest.approx(40 / 45)
    assert found.specificity[0] == pytest.approx(1.0)
    assert found.posterior.tolist() == [float(truth[i]) for i in range(50)]


def test_gold_keeps_a_bad_majority_from_being_taken_for_the_truth():
    """Three who always accept against two who are right: only gold can tell."""
    rng = np.random.default_rng(4)
    truth = rng.integers(0, 2, 300)
    rows = [(i, r, 1) for i in range(300) for r in range(3)]
    rows += [(i, r, int(truth[i])) for i in range(300) for r in (3, 4)]
    gold = {i: int(truth[i]) for i in range(40)}
    found = fit(vote_list(rows, 300, 5, gold))
    assert (found.posterior[40:] > 0.5).astype(int).tolist() == truth[40:].tolist()
    assert found.specificity[:3].max() < 0.1
    assert found.specificity[3:].min() > 0.95


def test_people_and_items_without_votes_have_no_estimate():
    found = fit(vote_list([(0, 0, 1), (0, 1, 0), (1, 0, 0), (1, 1, 0)], 3, 4))
    assert np.isnan(found.posterior).tolist() == [False, False, True]
    assert np.isnan(found.sensitivity).tolist() == [False, False, True, True]
    assert np.isnan(found.specificity_interval[2:]).all()


def test_a_frozen_fit_gives_the_same_posterior_again():
    sim = simulate(5)
    found = fit(sim.votes)
    again = posterior_of(
        sim.votes,
        sensitivity=found.sensitivity,
        specificity=found.specificity,
        prior=found.prior,
    )
    assert again == pytest.approx(found.posterior, abs=1e-6)


def test_intervals_hold_the_known_rates_at_the_stated_rate():
    """60 campaigns × 12 people × 2 rates: 95 % of 1,440, give or take."""
    held = []
    for seed in range(60):
        sim = simulate(seed, items=1500)
        found = fit(sim.votes)
        for rates, bounds in (
            (sim.sensitivity, found.sensitivity_interval),
            (sim.specificity, found.specificity_interval),
        ):
            held.extend((bounds[:, 0] <= rates) & (rates <= bounds[:, 1]))
    assert 0.93 <= np.mean(held) <= 0.97


def test_intervals_do_not_depend_on_the_size_of_blocks(monkeypatch):
    votes = simulate(9, items=500, gold=20).votes
    whole = fit(votes)
    monkeypatch.setattr(dawid_skene, "_ITEMS_AT_ONCE", 37)
    parts = fit(votes)
    assert parts.sensitivity_interval == pytest.approx(whole.sensitivity_interval, rel=1e-9)
    assert parts.specificity_interval == pytest.approx(whole.specificity_interval, rel=1e-9)


def test_the_posterior_is_calibrated_with_three_judgements():
    claimed, right, stated = [], [], []
    for seed in range(20):
        sim = simulate(100 + seed, items=5000, raters=20)
        found = fit(sim.votes)
        sure = found.posterior >= 0.95
        claimed.append(sure.sum())
        right.append(sim.truth[sure].sum())
        stated.append(found.posterior[sure].sum())
    assert sum(claimed) > 5000
    assert sum(right) / sum(claimed) == pytest.approx(sum(stated) / sum(claimed), abs=0.006)


def test_every_tenth_of_the_posterior_is_calibrated():
    posterior, truth = [], []
    for seed in range(20):
        sim = simulate(200 + seed, items=5000, raters=20)
        posterior.append(fit(sim.votes).posterior)
        truth.append(sim.truth)
    posterior, truth = np.concatenate(posterior), np.concatenate(truth)
    tenth = np.minimum((posterior * 10).astype(int), 9)
    for k in range(10):
        inside = tenth == k
        error = 4 * np.sqrt(0.25 / inside.sum()) + 0.015
        assert truth[inside].mean() == pytest.approx(posterior[inside].mean(), abs=error)
