"""What is said about each person, against plain counting and planted misbehaviour."""

from __future__ import annotations

from itertools import groupby

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from croc_annotate.agreement import people as p
from croc_annotate.agreement import tables as t
from croc_annotate.agreement.dawid_skene import fit
from croc_annotate.agreement.rater_pairs import pair_agreement
from tests.agreement.simulate import simulate


def table_of(rows):
    """Rows of (item, rater, verdict), sorted by item."""
    item, rater, verdict = (np.array(c, dtype=np.int64) for c in zip(*sorted(rows), strict=True))
    n = int(item.max()) + 1
    zeros = np.zeros(n, np.int64)
    return t.JudgementTable(
        item, rater, verdict.astype(np.int8), {}, zeros, zeros.astype(np.int8), {}
    )


@st.composite
def judgement_rows(draw):
    cells = draw(st.sets(st.tuples(st.integers(0, 6), st.integers(0, 4)), min_size=1))
    return [(i, r, draw(st.sampled_from([1, 0, -1]))) for i, r in sorted(cells)]


@given(judgement_rows())
@settings(max_examples=150, deadline=None)
def test_leave_one_out_agreement_is_what_plain_counting_gives(rows):
    found = p.agreement_with_others(table_of(rows), 5)
    for rater in range(5):
        right = whole = 0
        for item, who, verdict in rows:
            others = [v for i, r, v in rows if i == item and r != who and v >= 0]
            accepts = sum(others)
            if who != rater or verdict < 0 or 2 * accepts == len(others):
                continue
            whole += 1
            right += verdict == int(2 * accepts > len(others))
        assert (found.part[rater], found.whole[rater]) == (right, whole)


@given(judgement_rows())
@settings(max_examples=100, deadline=None)
def test_the_share_of_others_is_that_of_the_same_items(rows):
    share, from_others = p.accept_shares(table_of(rows), 5)
    for rater in range(5):
        given_by_others = [
            [v for i, r, v in rows if i == item and r != rater and v >= 0]
            for item, who, verdict in rows
            if who == rater and verdict >= 0
        ]
        shares = [sum(votes) / len(votes) for votes in given_by_others if votes]
        assert share.whole[rater] == len(shares)
        if shares:
            assert from_others[rater] == pytest.approx(np.mean(shares))
        else:
            assert np.isnan(from_others[rater])


@given(st.lists(st.tuples(st.integers(0, 2), st.sampled_from([1, 0, -1])), min_size=1))
@settings(max_examples=100, deadline=None)
def test_the_longest_run_is_that_of_itertools(answers):
    rater, verdict = np.array(answers).T
    found = p.runs_of(rater, verdict.astype(np.int8), np.arange(rater.size), 3)
    for k in range(3):
        mine = [v for r, v in answers if r == k]
        runs = [len(list(group)) for _, group in groupby(mine)]
        assert found.longest[k] == max(runs, default=0)


def test_the_chance_of_a_long_run_is_that_of_simulation():
    rng = np.random.default_rng(1)
    answers = (rng.random((3000, 200)) < 0.7).astype(np.int8)
    found = p.runs_of(
        np.repeat(np.arange(3000), 200), answers.ravel(), np.arange(answers.size), 3000
    )
    longest = 22
    simulated = (found.longest >= longest).mean()
    stated = np.median(found.chance[found.longest == longest])
    assert stated == pytest.approx(simulated, abs=0.05)


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(-1, 5000), st.integers(0, 400)), min_size=1)
)
@settings(max_examples=100, deadline=None)
def test_pace_is_what_plain_counting_gives(answers):
    rater, active, at = (np.array(column, np.int64) for column in zip(*answers, strict=True))
    found = p.pace_of(rater, active, at, 3)
    for k in range(3):
        times = [a for r, a, _ in answers if r == k and a >= 0]
        if times:
            assert found.median_ms[k] == np.median(times)
        else:
            assert np.isnan(found.median_ms[k])
        seconds = [s for r, _, s in answers if r == k]
        most = max((sum(s <= x < s + 60 for x in seconds) for s in seconds), default=0)
        assert found.busiest_minute[k] == most


@pytest.mark.field_case(34)
def test_pace_is_visible_active_time_and_not_the_time_between_answers():
    """Answers half an hour apart, each after four active seconds."""
    rater, active = np.zeros(20, np.int64), np.full(20, 4000)
    found = p.pace_of(rater, active, np.arange(20) * 1800, 1)
    assert found.median_ms[0] == 4000
    assert found.busiest_minute[0] == 1


def test_wilson_intervals_are_those_of_statsmodels():
    from statsmodels.stats.proportion import proportion_confint

    part, whole = np.array([0, 3, 7, 20.0]), np.array([5, 10, 7, 300.0])
    low, high = p.Share(part, whole).interval()
    for k in range(4):
        expected = proportion_confint(part[k], whole[k], method="wilson")
        assert (low[k], high[k]) == pytest.approx(expected)


def test_parts_of_a_persons_work_follow_time_and_add_up():
    sim = simulate(3, items=300)
    rows = list(zip(sim.votes.item.tolist(), sim.votes.rater.tolist(), sim.votes.vote, strict=True))
    table = table_of(rows)
    order = np.random.default_rng(3).permutation(len(rows))
    parts, whole = p.agreement_by_part(table, 12, 10, order), p.agreement_with_others(table, 12)
    assert (parts.whole.sum(axis=0) == whole.whole).all()
    assert (parts.part.sum(axis=0) == whole.part).all()
    assert np.ptp(parts.whole, axis=0).max() <= 1


def test_drift_is_seen_where_items_come_in_another_order_than_answers():
    """The last third of one person's answers is wrong; their items lie all over the table."""
    items = np.random.default_rng(5).permutation(300)
    rows = [
        (int(item), rater, 1 if rater or place < 200 else 0)
        for place, item in enumerate(items)
        for rater in range(3)
    ]
    answered = {
        (int(item), rater): k * 3 + rater for k, item in enumerate(items) for rater in range(3)
    }
    order = np.array([answered[item, rater] for item, rater, _ in sorted(rows)])
    thirds = p.agreement_by_part(table_of(rows), 3, 3, order).value[:, 0]
    assert thirds.tolist() == [1.0, 1.0, 0.0]


def copying(seed: int, share: float):
    """Twelve people, of whom number 1 copies number 0 on ``share`` of their common items."""
    sim = simulate(seed, items=6000, raters=12)
    rng = np.random.default_rng(seed)
    vote = sim.votes.vote.copy()
    of_0 = dict(zip(*(c[sim.votes.rater == 0] for c in (sim.votes.item, vote)), strict=True))
    for k in np.flatnonzero(sim.votes.rater == 1):
        item = int(sim.votes.item[k])
        if item in of_0 and rng.random() < share:
            vote[k] = of_0[item]
    rows = zip(sim.votes.item.tolist(), sim.votes.rater.tolist(), vote.tolist(), strict=True)
    votes = type(sim.votes)(
        sim.votes.item, sim.votes.rater, vote, sim.votes.category, sim.votes.truth, 12, 3
    )
    found = fit(votes)
    return pair_agreement(
        t.vote_pairs(table_of(list(rows))),
        posterior=found.posterior,
        sensitivity=found.sensitivity,
        specificity=found.specificity,
    )


def test_a_copyist_stands_out_and_honest_pairs_do_not():
    for seed in range(6):
        found = copying(seed, share=0.8)
        guilty = (found.first == 0) & (found.second == 1)
        assert found.z[guilty][0] > 4.0
        assert (found.z[~guilty] < 4.0).all()


def test_among_honest_people_agreement_is_as_expected():
    z = np.concatenate([copying(seed, share=0.0).z for seed in range(10, 20)])
    assert abs(z.mean()) < 0.2
    assert (np.abs(z) > 3).mean() < 0.02
