"""How many judgements an item needs, by exhaustion over all tallies."""

from __future__ import annotations

from itertools import product

import pytest

from croc_annotate.annotation.redundancy import (
    Policy,
    Tally,
    is_complete,
    needed,
    places,
    wanted,
)

FIXED = Policy(adaptive=False, least=3, most=3)
ADAPTIVE = Policy(adaptive=True, least=3, most=5)


@pytest.mark.parametrize(
    ("votes", "expected"),
    [("", 3), ("a", 2), ("au", 1), ("uuu", 0), ("aar", 0), ("aaaa", 0)],
)
def test_fixed_wants_exactly_the_same_number_whatever_the_votes(votes, expected):
    assert needed(FIXED, tally(votes)) == expected


@pytest.mark.parametrize(
    ("votes", "expected"),
    [
        ("", 2),  # two equal votes would do
        ("a", 1),
        ("aa", 0),  # the majority of three cannot change
        ("ar", 2),  # now five: one more would not decide
        ("aar", 1),
        ("aara", 0),
        ("aarr", 1),
        ("aarra", 0),
        ("u", 2),
        ("uu", 1),
        ("uuu", 0),  # three judgements exist, no vote differs
        ("aru", 2),
        ("aruu", 1),
        ("aruuu", 0),
    ],
)
def test_adaptive_wants_the_fewest_that_could_complete(votes, expected):
    assert needed(ADAPTIVE, tally(votes)) == expected
    assert is_complete(ADAPTIVE, tally(votes)) == (expected == 0)


def tally(votes: str) -> Tally:
    return Tally(votes.count("a"), votes.count("r"), votes.count("u"))


@pytest.mark.parametrize("policy", [FIXED, ADAPTIVE, Policy(True, 1, 7), Policy(True, 4, 6)])
def test_complete_by_the_letter_of_the_protocol(policy):
    for a, r, u in product(range(5), repeat=3):
        counts = Tally(a, r, u)
        m = policy.most if policy.adaptive and a and r else policy.least
        decided = policy.adaptive and max(a, r) >= m // 2 + 1
        assert wanted(policy, counts) == m
        assert is_complete(policy, counts) == (decided or counts.total >= m)


@pytest.mark.parametrize("policy", [FIXED, ADAPTIVE, Policy(True, 4, 6), Policy(True, 3, 9)])
def test_handing_out_all_that_is_needed_at_once_never_gives_one_too_many(policy):
    """Whatever order of verdicts the people who hold the places come back with."""
    for a, r, u in product(range(4), repeat=3):
        start = Tally(a, r, u)
        if is_complete(policy, start):
            continue
        for verdicts in product("aru", repeat=needed(policy, start)):
            counts = start
            for verdict in verdicts:
                assert not is_complete(policy, counts)
                counts = counts.plus({"a": "accept", "r": "reject", "u": "unsure"}[verdict])
            assert counts.total <= policy.most


def test_leases_take_places_and_a_reviewer_can_ask_for_more():
    assert places(FIXED, Tally(accept=1), leased=1) == 1
    assert places(FIXED, Tally(accept=1), leased=5) == 0
    assert needed(FIXED.more(2), Tally(accept=3)) == 2
    assert needed(ADAPTIVE.more(2), Tally(accept=2)) == 1
