"""The order of a campaign: seeded, complete, pairs kept apart."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from croc_annotate.annotation.ordering import Entry, arrange, reachable_distance, smallest_gap
from croc_annotate.annotation.spacing import Seen, Window


def entries(pairs: int, per_side: int, categories: int = 1) -> list[Entry]:
    return [
        Entry(key, pair, f"{pair}{side}", f"c{pair % categories}")
        for key, (pair, side, _) in enumerate(
            (pair, side, i) for pair in range(pairs) for side in "pc" for i in range(per_side)
        )
    ]


def test_the_same_seed_gives_the_same_order_whatever_the_input_order():
    rows = entries(30, 3)
    first = arrange(rows, seed=7, distance=10)
    assert first == arrange(reversed(rows), seed=7, distance=10)
    assert first != arrange(rows, seed=8, distance=10)
    assert sorted(first, key=lambda e: e.key) == rows


@pytest.mark.parametrize(("pairs", "per_side"), [(2, 1), (5, 1), (40, 4), (400, 10)])
def test_items_of_one_pair_keep_the_distance(pairs, per_side):
    distance = reachable_distance(pairs, 20)
    order = arrange(entries(pairs, per_side), seed=3, distance=distance)
    assert smallest_gap([entry.pair for entry in order]) >= distance


@settings(max_examples=60, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 6), min_size=1, max_size=25),
    seed=st.integers(0, 99),
    wanted=st.integers(0, 30),
)
def test_uneven_pairs_all_come_and_keep_apart_while_others_are_left(sizes, seed, wanted):
    rows = [
        Entry(100 * pair + i, pair, "x", "c")
        for pair, size in enumerate(sizes)
        for i in range(size)
    ]
    distance = reachable_distance(len(sizes), wanted)
    order = arrange(rows, seed=seed, distance=distance)
    assert sorted(entry.key for entry in order) == sorted(entry.key for entry in rows)
    left = dict(enumerate(sizes))
    recent: list[int] = []
    for entry in order:
        near = recent[-distance:] if distance else []
        others = {pair for pair, n in left.items() if n and pair not in near}
        assert entry.pair not in near or not others
        left[entry.pair] -= 1
        recent.append(entry.pair)


def test_categories_are_mixed_or_in_runs():
    rows = entries(32, 2, categories=8)
    mixed = [entry.category for entry in arrange(rows, seed=1, distance=5)]
    runs = [entry.category for entry in arrange(rows, seed=1, distance=2, in_runs=True)]
    changes = sum(a != b for a, b in itertools.pairwise(runs))
    assert changes == 7
    assert sum(a != b for a, b in itertools.pairwise(mixed)) > 50


def test_grid_mode_keeps_images_of_one_text_together():
    order = arrange(entries(20, 12), seed=1, distance=5, chunk=6)
    for start in range(0, len(order), 6):
        assert len({(e.pair, e.text) for e in order[start : start + 6]}) == 1
    screens = [order[start].pair for start in range(0, len(order), 6)]
    assert smallest_gap(screens) >= 5


def test_both_sides_and_generators_are_mixed_early():
    """The first tenth of the order already has both sides of the bank in fair shares."""
    order = arrange(entries(400, 10), seed=5, distance=20)
    head = [entry.text[-1] for entry in order[:800]]
    assert 0.4 < head.count("p") / len(head) < 0.6


def window(*seen: tuple[int, str, int], distance: int = 20) -> Window:
    return Window(distance, [Seen(i, pair, text, at) for i, (pair, text, at) in enumerate(seen)])


def test_a_window_refuses_the_pair_within_the_distance():
    last = window((1, "p", 0), *[(100 + i, "x", 0) for i in range(19)])
    assert not last.allows(pair=1, group="c", image=9, now=1, strict=True)
    last.push(Seen(99, 500, "x", 0))
    assert last.allows(pair=1, group="c", image=9, now=1, strict=True)


def test_a_window_refuses_near_duplicates_of_another_pair():
    last = Window(20, [Seen(0, 1, "p", 0, (77,))])
    assert not last.allows(pair=2, group="x", image=77, now=1, strict=True)
    assert last.allows(pair=2, group="x", image=78, now=1, strict=True)


def test_when_little_is_left_the_same_text_may_come_and_the_other_after_a_while():
    last = window((1, "p", 0))
    assert last.allows(pair=1, group="p", image=9, now=1, strict=False)
    assert not last.allows(pair=1, group="c", image=9, now=1, strict=False)
    assert last.free_at(1) == 60
    assert last.allows(pair=1, group="c", image=9, now=60, strict=False)


def test_a_screen_still_to_be_placed_shortens_no_distance():
    """Gold is placed after the items beside it are chosen: those before it get no place from it."""
    last = window((1, "p", 0), (2, "p", 0), (3, "p", 0), distance=3)
    last.expect(Seen(2, 9, "p", 0, (99,)))
    assert not last.allows(pair=1, group="c", image=5, now=1, strict=True)
    assert not last.allows(pair=9, group="c", image=5, now=1, strict=True)
    assert not last.allows(pair=4, group="c", image=99, now=1, strict=True)
    last.push(Seen(3, 4, "p", 1))
    assert last.allows(pair=1, group="c", image=5, now=1, strict=True)
    last.push(Seen(4, 5, "p", 1))
    last.settle(1)
    assert [seen.pair for seen in last.seen] == [1, 2, 3, 4, 9, 5]
    assert last.allows(pair=3, group="c", image=5, now=1, strict=True)


def test_a_window_survives_its_row():
    seen = Seen(5, 6, "abcdef012345", 7, (8, 9))
    assert Seen.from_row(seen.as_row()) == seen
