"""The scoring protocol against an independent reference, and its worked values."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from croc_annotate.benchmark.groups import Groups
from croc_annotate.benchmark.layout import DIRECTIONS
from croc_annotate.benchmark.protocol import (
    MissingScoresError,
    Policy,
    evaluate,
    tally_group,
    tally_same_generator,
)
from croc_annotate.benchmark.results import metric_result
from tests.benchmark import reference
from tests.benchmark.layouts import build

# Few distinct values, so that ties are frequent; now and then none at all.
score = st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.75, 1.0, -2.0, math.nan])
images = st.lists(st.tuples(score, score), max_size=7)
pair_lists = st.lists(st.tuples(images, images), min_size=1, max_size=6)


@given(
    pairs=pair_lists,
    ties=st.sampled_from(["loss", "half"]),
    missing=st.sampled_from(["loss", "skip"]),
)
@settings(max_examples=150, deadline=None)
def test_every_direction_equals_the_slow_reference(pairs, ties, missing):
    layout, scores = build(pairs)
    cells = evaluate(layout, scores, policy=Policy(ties, missing)).by_category()["counting"]
    for direction in DIRECTIONS:
        expected = reference.macro(pairs, direction, ties=ties, missing=missing)
        assert cells[direction].value == pytest.approx(expected, abs=1e-12)


@given(pairs=pair_lists)
@settings(max_examples=60, deadline=None)
def test_the_group_score_equals_the_slow_reference(pairs):
    layout, scores = build(pairs)
    values = tally_group(layout, scores).values(ties="loss", missing="loss")
    for value, (p, q) in zip(values, pairs, strict=True):
        expected = reference.all_four_right(p, q)
        assert (math.isnan(value) and expected is None) or value == pytest.approx(expected)


def test_one_pair_of_many_images_weighs_as_much_as_one_with_a_single_image():
    sure = [(1.0, 0.0)] * 20
    layout, scores = build([(sure, []), ([(0.0, 1.0)], [])])
    cell = evaluate(layout, scores, policy=Policy()).by_category()["counting"]["text_forward"]
    assert cell.value == 0.5
    assert cell.micro == pytest.approx(20 / 21)
    assert cell.n == 2


def test_the_worked_image_grid_has_three_wins_of_six():
    p = [(0.9, 0.0), (0.8, 0.0), (0.2, 0.0)]
    q = [(0.0, 0.5), (0.0, 0.85)]
    layout, scores = build([(p, q)])
    cell = evaluate(layout, scores, policy=Policy()).by_category()["counting"]["image_forward"]
    assert cell.value == 0.5


def test_a_constant_metric_has_only_ties():
    layout, scores = build([([(1.0, 1.0)] * 3, [(1.0, 1.0)] * 2)])
    strict = evaluate(layout, scores, policy=Policy()).by_category()["counting"]
    half = evaluate(layout, scores, policy=Policy(ties="half")).by_category()["counting"]
    assert [strict[d].value for d in DIRECTIONS] == [0.0] * 4
    assert [half[d].value for d in DIRECTIONS] == [0.5] * 4
    assert [strict[d].tie_rate for d in DIRECTIONS] == [1.0] * 4


@pytest.mark.field_case(45)
def test_ties_do_not_depend_on_the_order_of_the_rows():
    rng = np.random.default_rng(5)
    pairs = [
        (
            [tuple(rng.integers(0, 3, 2) / 2) for _ in range(9)],
            [tuple(rng.integers(0, 3, 2) / 2) for _ in range(7)],
        )
        for _ in range(5)
    ]
    mixed = [
        ([p[i] for i in rng.permutation(len(p))], [q[i] for i in rng.permutation(len(q))])
        for p, q in pairs
    ]
    results = []
    for version in (pairs, mixed):
        layout, scores = build(version)
        results.append(evaluate(layout, scores, policy=Policy()).values)
    assert np.array_equal(results[0], results[1])


def test_missing_scores_are_an_error_that_says_how_many_and_where():
    layout, scores = build([([(1.0, 0.0)], []), ([(math.nan, 0.0), (1.0, math.nan)], [])])
    with pytest.raises(MissingScoresError, match=r"clip has 2 missing scores.*counting_1"):
        evaluate(layout, scores, policy=Policy(), name="clip")


def test_skipped_comparisons_leave_n_and_show_in_the_coverage():
    layout, scores = build([([(1.0, 0.0), (math.nan, 0.0)], []), ([(math.nan, 0.0)], [])])
    cell = evaluate(layout, scores, policy=Policy(missing="skip")).by_category()["counting"]
    assert cell["text_forward"].value == 1.0
    assert cell["text_forward"].n == 1
    assert cell["text_forward"].coverage == pytest.approx(1 / 3)


def test_directions_have_their_own_sets_of_pairs():
    layout, scores = build([([(1.0, 0.0)], []), ([], [(1.0, 0.0)]), ([(1.0, 0.0)], [(1.0, 0.0)])])
    cells = evaluate(layout, scores, policy=Policy()).by_category()["counting"]
    assert {d: cells[d].n for d in DIRECTIONS} == {
        "text_forward": 2, "text_inverse": 2, "image_forward": 1, "image_inverse": 1,
    }  # fmt: skip


def test_a_margin_makes_small_differences_ties():
    layout, scores = build([([(0.50, 0.45), (0.9, 0.1)], [(0.5, 0.52)])])
    cells = evaluate(layout, scores, policy=Policy(margin=0.06)).by_category()["counting"]
    assert cells["text_forward"].value == 0.5
    assert cells["text_forward"].ties == 1
    assert cells["text_inverse"].ties == 1
    # Grid: 0.50 against 0.52 ties, 0.9 against 0.52 wins.
    assert (cells["image_forward"].value, cells["image_forward"].ties) == (0.5, 1)


def test_the_same_generator_grid_compares_within_one_generator_only():
    # Style leaks: everything of generator b scores high.
    p = [(0.2, 0.0), (0.9, 0.0)]
    q = [(0.0, 0.1), (0.0, 0.8)]
    layout, scores = build([(p, q)], generators=[(["a", "b"], ["a", "b"])])
    plain = evaluate(layout, scores, policy=Policy()).tallies["image_forward"]
    same = tally_same_generator(layout, scores)["image_forward"]
    assert (plain.wins[0], plain.total[0]) == (3, 4)
    assert (same.wins[0], same.total[0]) == (2, 2)


def test_the_average_is_over_categories_not_over_pairs():
    pairs = [([(1.0, 0.0)], [])] * 3 + [([(0.0, 1.0)], [])]
    layout, scores = build(pairs, categories=["action"] * 3 + ["shapes"])
    result = metric_result("m", evaluate(layout, scores, policy=Policy()), scores=scores)
    assert result.average["text_forward"] == 0.5
    assert result.average["n_text_forward"] == 4


def test_a_metric_without_scores_in_a_category_is_marked_incomplete():
    pairs = [([(1.0, 0.0)], []), ([(math.nan, math.nan)], [])]
    layout, scores = build(pairs, categories=["action", "shapes"])
    evaluation = evaluate(layout, scores, policy=Policy(missing="skip"))
    result = metric_result("m", evaluation, scores=scores)
    assert not result.complete
    assert result.missing_categories == ("shapes",)


def test_directions_without_images_in_the_release_are_left_out_of_the_means():
    layout, scores = build([([(1.0, 0.0)], [])])
    result = metric_result("m", evaluate(layout, scores, policy=Policy()), scores=scores)
    assert result.complete
    assert result.average["image"] is None
    assert result.average["overall"] == result.average["text"] == 1.0


@pytest.mark.parametrize("sizes", [(1, 5_000), (5_000, 1), (300, 300)])
def test_groups_of_very_different_sizes_are_counted_alike(sizes):
    rng = np.random.default_rng(1)
    pairs = [
        (
            [tuple(rng.integers(0, 50, 2).astype(float)) for _ in range(sizes[0])],
            [tuple(rng.integers(0, 50, 2).astype(float)) for _ in range(sizes[1])],
        ),
        ([(1.0, 0.0)], [(1.0, 0.0)]),
    ]
    layout, scores = build(pairs)
    tally = evaluate(layout, scores, policy=Policy()).tallies["image_forward"]
    t = np.array([i[0] for i in pairs[0][0]])
    tj = np.array([j[1] for j in pairs[0][1]])
    assert tally.wins[0] == np.count_nonzero(t[:, None] > tj[None, :])
    assert tally.ties[0] == np.count_nonzero(t[:, None] == tj[None, :])


def test_one_large_group_among_many_small_ones_is_counted_alike():
    """Such groups lie in matrices of several widths; pairs without images in none."""
    rng = np.random.default_rng(2)
    sizes = [*rng.integers(0, 9, 60).tolist(), 700, 40, 0]
    pairs = [
        (rng.integers(0, 30, (n, 2)).astype(float), rng.integers(0, 30, (max(n - 1, 0), 2)) / 1)
        for n in sizes
    ]
    layout, scores = build([([*map(tuple, p)], [*map(tuple, q)]) for p, q in pairs])
    assert len(layout.by_pair[0].rows) > 2
    tallies = evaluate(layout, scores, policy=Policy()).tallies
    for number, (p, q) in enumerate(pairs):
        forward, inverse = p[:, :1] - q[:, 1], q[:, :1] - p[:, 1]
        for direction, gap in (("image_forward", forward), ("image_inverse", inverse)):
            tally = tallies[direction]
            assert tally.wins[number] == np.count_nonzero(gap > 0)
            assert tally.ties[number] == np.count_nonzero(gap == 0)
            assert tally.total[number] == gap.size


def test_many_images_on_one_side_and_none_on_the_other_are_counted():
    """Their rows are of a width of their own, in which nothing is looked for."""
    some = [(0.5, 0.25)] * 2
    pairs = [(some, some)] * 30 + [([], [(0.5, 0.25)] * 400)]
    layout, scores = build(pairs)
    found = evaluate(layout, scores, policy=Policy())
    every = np.ones(layout.n_pairs, dtype=bool)
    for direction in DIRECTIONS:
        assert found.cell(direction, every).value == 1.0
    assert found.cell("image_forward", every).n == 30
    assert found.cell("text_inverse", every).total == 30 * 2 + 400


@given(
    keys=st.lists(st.integers(0, 6), max_size=40),
    numbers=st.data(),
)
@settings(max_examples=100, deadline=None)
def test_sums_by_group_are_right_in_any_order_of_the_entries(keys, numbers):
    """Runs of one group are summed in one pass: entries that alternate must not be lost."""
    groups = Groups(np.array(keys, dtype=np.int64), n_pairs=7)
    size = len(keys)
    whole = numbers.draw(st.lists(st.integers(0, 2**40), min_size=size, max_size=size))
    flags = numbers.draw(st.lists(st.booleans(), min_size=size, max_size=size))
    assert groups.sum(np.array(whole, dtype=np.int64)).tolist() == [
        sum(n for key, n in zip(keys, whole, strict=True) if key == group) for group in range(7)
    ]
    assert groups.count(np.array(flags, dtype=bool)).tolist() == [
        sum(f for key, f in zip(keys, flags, strict=True) if key == group) for group in range(7)
    ]
    # Each entry's place within its group is counted in the order of the entries.
    assert groups.slot.tolist() == [keys[:i].count(key) for i, key in enumerate(keys)]
