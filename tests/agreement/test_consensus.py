"""The three rules, one case a line, and what overrides them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from croc_annotate.agreement.consensus import (
    STATES,
    Rule,
    RuleRefusedError,
    Votes,
    complete,
    decide,
    needed,
    verify,
)
from croc_annotate.annotation import redundancy
from croc_annotate.annotation.redundancy import Policy, Tally, is_complete

THREE = Policy(adaptive=False, least=3, most=3)
ADAPTIVE = Policy(adaptive=True, least=3, most=5)
TWO = Policy(adaptive=False, least=2, most=2)


def votes(*rows):
    """Columns from rows of (accept, reject, unsure, complete)."""
    a, r, u, done = (np.array(column) for column in zip(*rows, strict=True))
    return Votes(a, r, u, done.astype(bool))


def state(rule, row, policy=THREE, **more):
    more = {name: np.array([value]) for name, value in more.items()}
    return STATES[decide(rule, votes(row), policy, **more)[0]]


@pytest.mark.parametrize(
    ("row", "majority", "unanimous"),
    [
        ((3, 0, 0, True), "accepted", "accepted"),
        ((0, 3, 0, True), "rejected", "rejected"),
        ((2, 1, 0, True), "accepted", "disputed"),
        ((1, 2, 0, True), "rejected", "disputed"),
        ((2, 0, 0, False), "pending", "pending"),
        ((0, 0, 0, False), "pending", "pending"),
        ((2, 0, 1, True), "disputed", "disputed"),  # complete without enough votes
        ((0, 0, 3, True), "disputed", "disputed"),
        ((2, 2, 0, True), "disputed", "disputed"),  # a tie
    ],
)
def test_votes_become_a_state(row, majority, unanimous):
    assert state(Rule("majority"), row) == majority
    assert state(Rule("unanimous"), row) == unanimous


@pytest.mark.parametrize(
    ("k", "row", "expected"),
    [
        (2, (2, 0, 1, True), "accepted"),
        (2, (1, 1, 0, True), "disputed"),
        (2, (1, 0, 1, True), "disputed"),
        (2, (1, 0, 0, False), "pending"),
        (1, (1, 0, 0, False), "accepted"),
        (4, (3, 0, 0, True), "disputed"),
    ],
)
def test_min_judgements_overrides_what_the_campaign_wants(k, row, expected):
    assert state(Rule("majority", min_judgements=k), row) == expected


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ((2, 0, 0, True), "accepted"),  # complete: ⌊3/2⌋+1 equal votes
        ((2, 0, 0, False), "pending"),
        ((2, 1, 2, True), "accepted"),  # five judgements exist
        ((3, 2, 0, True), "accepted"),
        ((1, 0, 2, True), "disputed"),  # one vote decides nothing
        ((2, 2, 1, True), "disputed"),
    ],
)
def test_an_adaptive_campaign_decides_on_completion(row, expected):
    assert state(Rule("majority"), row, ADAPTIVE) == expected


@pytest.mark.parametrize(
    ("posterior", "row", "expected"),
    [
        (0.95, (3, 0, 0, True), "accepted"),
        (0.9499, (3, 0, 0, True), "disputed"),
        (0.05, (1, 2, 0, True), "rejected"),
        (0.99, (2, 0, 0, False), "pending"),
        (0.5, (2, 1, 0, False), "pending"),
        (np.nan, (0, 0, 3, True), "disputed"),
    ],
)
def test_the_posterior_rule_accepts_from_its_threshold_on(posterior, row, expected):
    other = (3, 0, 0, True)  # so that some item has three judgements
    table = votes(row, other)
    found = decide(Rule("posterior"), table, THREE, posterior=np.array([posterior, 0.99]))
    assert STATES[found[0]] == expected


@pytest.mark.parametrize("policy", [TWO, ADAPTIVE])
def test_the_posterior_rule_is_refused_where_items_have_fewer_than_three_judgements(policy):
    with pytest.raises(RuleRefusedError, match="three judgements"):
        decide(Rule("posterior"), votes((2, 0, 0, True)), policy, posterior=np.array([0.99]))


def test_the_posterior_rule_is_refused_while_no_item_has_three_judgements():
    with pytest.raises(RuleRefusedError, match="no item has them yet"):
        decide(Rule("posterior"), votes((2, 0, 0, False)), THREE, posterior=np.array([0.99]))


def test_a_rule_that_makes_no_sense_cannot_be_made():
    for arguments in ({"name": "best"}, {"min_judgements": 0}, {"threshold": 0.5}):
        with pytest.raises(ValueError, match=r"rule|min_judgements|threshold"):
            Rule(**arguments)
    with pytest.raises(RuleRefusedError):
        Rule("posterior", min_judgements=2)


@pytest.mark.parametrize(("verdict", "expected"), [(1, "accepted"), (0, "rejected")])
@pytest.mark.parametrize("row", [(0, 3, 0, True), (3, 0, 0, True), (0, 0, 0, False)])
def test_an_adjudication_overrides_any_rule(row, verdict, expected):
    assert state(Rule("majority"), row, adjudicated=verdict) == expected
    assert state(Rule("unanimous"), row, adjudicated=verdict) == expected


@given(
    st.lists(st.tuples(*[st.integers(0, 4)] * 3), min_size=1, max_size=20),
    st.booleans(),
    st.integers(1, 4),
    st.integers(0, 3),
    st.integers(0, 2),
)
def test_completeness_and_what_is_left_are_those_of_the_queue(rows, adaptive, least, more, extra):
    policy = Policy(adaptive=adaptive, least=least, most=least + more)
    columns = [np.array(column) for column in zip(*rows, strict=True)]
    wanted = policy.more(extra)
    done = [is_complete(wanted, Tally(*row)) for row in rows]
    assert complete(policy, *columns, extra).tolist() == done
    left = [redundancy.needed(wanted, Tally(*row)) for row in rows]
    assert needed(policy, *columns, extra).tolist() == left


@pytest.mark.field_case(33)
def test_two_people_who_never_agree_fill_the_review_queue():
    table = votes(*[(1, 1, 0, True)] * 50)
    found = decide(Rule("majority"), table, TWO)
    assert (found == STATES.index("disputed")).all()


def test_exclusive_asks_that_the_other_text_is_rejected():
    own = np.array([STATES.index("accepted")] * 3 + [STATES.index("rejected")])
    other = np.array([STATES.index("rejected"), STATES.index("accepted"), -1, 2])
    assert verify(own, other, exclusive=False).tolist() == [True, True, True, False]
    assert verify(own, other, exclusive=True).tolist() == [True, False, False, False]


@given(
    st.lists(
        st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(0, 3), st.booleans()),
        min_size=1,
        max_size=20,
    ),
    st.integers(1, 5),
)
def test_exchanging_accept_and_reject_exchanges_the_states(rows, k):
    mirrored = [(r, a, u, done) for a, r, u, done in rows]
    swap = np.array([0, 2, 1, 3])
    for name in ("majority", "unanimous"):
        rule = Rule(name, min_judgements=k)
        one, two = decide(rule, votes(*rows), THREE), decide(rule, votes(*mirrored), THREE)
        assert (swap[one] == two).all()
