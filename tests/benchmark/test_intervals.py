"""Intervals, paired differences, Holm and letters."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import pytest
from statsmodels.stats.multitest import multipletests

from croc_annotate.benchmark.board import build_board
from croc_annotate.benchmark.comparing import compare_entries
from croc_annotate.benchmark.comparisons import (
    ALPHA,
    Difference,
    holm,
    letter_groups,
    paired_p,
    smallest_adjusted_p,
)
from croc_annotate.benchmark.intervals import bootstrap, interval_of
from croc_annotate.benchmark.layout import Layout, Side
from croc_annotate.benchmark.protocol import Policy
from croc_annotate.benchmark.render import text
from croc_annotate.lib.components import connected_components
from tests.benchmark.layouts import build


def layout_of(n, *, categories=1, texts=None):
    """n pairs a category with images on the prompt side only."""
    total = n * categories
    return Layout(
        pair_ids=tuple(f"p{i}" for i in range(total)),
        texts=tuple(texts or [(f"t{i}", f"c{i}") for i in range(total)]),
        categories=tuple(f"c{k}" for k in range(categories)),
        category=np.repeat(np.arange(categories), n),
        generators=("g",),
        prompt=Side(np.arange(total), np.zeros(total, dtype=np.int64)),
        contrast=Side(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)),
    )


def values_of(forward):
    rows = np.full((4, len(forward)), np.nan)
    rows[0] = forward
    return rows


def test_pairs_that_share_a_text_are_one_component():
    labels = connected_components([("a", "b"), ("c", "d"), ("b", "e"), ("f", "g"), ("e", "c")])
    assert labels.tolist() == [0, 0, 0, 1, 0]


def test_under_ten_components_there_is_no_interval_in_words():
    layout = layout_of(9)
    found = bootstrap(layout, {"m": values_of(np.linspace(0, 1, 9))}, draws=200)
    bounds = found.bounds["m"]["c0"]["text_forward"]
    assert bounds.low is None
    assert bounds.reason == "9 independent pairs; an interval needs 10"
    assert found.bounds["m"]["average"]["overall"].low is None


def test_twenty_pairs_in_five_components_have_no_interval():
    texts = [(f"t{i // 4}", f"c{i}") for i in range(20)]
    found = bootstrap(layout_of(20, texts=texts), {"m": values_of(np.arange(20) / 20)}, draws=200)
    assert found.bounds["m"]["c0"]["text_forward"].reason.startswith("5 independent pairs")


def test_equal_values_have_no_interval_in_words():
    found = bootstrap(layout_of(20), {"m": values_of(np.ones(20))}, draws=200)
    assert found.bounds["m"]["c0"]["text_forward"].reason == "every pair has the same value"


def test_the_interval_of_a_mean_is_close_to_the_normal_one():
    values = np.random.default_rng(3).random(50)
    found = bootstrap(layout_of(50), {"m": values_of(values)})
    bounds = found.bounds["m"]["c0"]["text_forward"]
    half = NormalDist().inv_cdf(0.975) * values.std() / math.sqrt(50)
    assert bounds.low == pytest.approx(values.mean() - half, abs=0.01)
    assert bounds.high == pytest.approx(values.mean() + half, abs=0.01)


def test_a_categorys_draws_do_not_depend_on_the_other_categories():
    values = np.random.default_rng(4).random(30)
    alone = bootstrap(layout_of(15), {"m": values_of(values[:15])}, draws=500)
    both = bootstrap(layout_of(15, categories=2), {"m": values_of(values)}, draws=500)
    assert alone.bounds["m"]["c0"] == both.bounds["m"]["c0"]
    assert both.bounds["m"]["c0"] != both.bounds["m"]["c1"]


def test_metrics_see_the_same_draws():
    values = np.random.default_rng(4).random(20)
    found = bootstrap(layout_of(20), {"a": values_of(values), "b": values_of(values + 0.25)},
                      draws=500)  # fmt: skip
    difference = found.draws["overall"]["b"] - found.draws["overall"]["a"]
    assert np.allclose(difference, 0.25)


def test_draws_without_any_value_are_counted():
    values = np.full(20, np.nan)
    values[:10] = np.arange(10) / 10
    values[10:] = np.nan
    found = bootstrap(layout_of(20), {"m": values_of(values)}, draws=5_000, seed=1)
    assert found.bounds["m"]["c0"]["text_forward"].undefined_draws < 50
    assert found.bounds["m"]["c0"]["text_forward"].low is not None


def test_intervals_cover_the_truth_as_often_as_they_say():
    """Shared texts make pairs alike: intervals over components cover, those over pairs do not."""
    rng = np.random.default_rng(11)
    texts = [(f"t{i // 3}", f"c{i}") for i in range(90)]
    layout = layout_of(90, texts=texts)
    plain = layout_of(90)
    hits, naive_hits, rounds = 0, 0, 300
    for seed in range(rounds):
        shared = np.repeat(rng.normal(0.6, 0.2, 30), 3)
        values = values_of(shared + rng.normal(0, 0.05, 90))
        ours = bootstrap(layout, {"m": values}, draws=400, seed=seed)
        naive = bootstrap(plain, {"m": values}, draws=400, seed=seed)
        bounds = ours.bounds["m"]["c0"]["text_forward"]
        naive_bounds = naive.bounds["m"]["c0"]["text_forward"]
        hits += bounds.low <= 0.6 <= bounds.high
        naive_hits += naive_bounds.low <= 0.6 <= naive_bounds.high
    assert 0.90 <= hits / rounds <= 0.98
    assert naive_hits / rounds < 0.85


@pytest.mark.parametrize("n", [10, 25])
def test_the_interval_of_the_average_covers_the_truth_as_often_as_it_says(n):
    rng = np.random.default_rng(12)
    layout = layout_of(n, categories=8)
    hits, rounds = 0, 300
    for seed in range(rounds):
        values = values_of(rng.normal(0.6, 0.2, 8 * n))
        bounds = bootstrap(layout, {"m": values}, draws=400, seed=seed).bounds["m"]["average"]
        hits += bounds["overall"].low <= 0.6 <= bounds["overall"].high
    assert 0.89 <= hits / rounds <= 0.98


def test_an_average_with_a_category_under_ten_components_has_no_interval_in_words():
    """Seventy components in eight categories are enough for none while one category has five."""
    layout = layout_of(10, categories=8)
    values = values_of(np.random.default_rng(3).random(80))
    values[:, 5:10] = np.nan
    found = bootstrap(layout, {"m": values}, draws=200).bounds["m"]
    assert found["average"]["overall"].low is None
    assert found["average"]["overall"].reason == (
        "a category has only 5 independent pairs; an interval needs 10 in each"
    )
    assert found["c0"]["overall"].low is None
    assert found["c1"]["overall"].low is not None


def test_holm_equals_statsmodels():
    p = np.random.default_rng(2).random(12) ** 3
    assert holm(list(p)) == pytest.approx(multipletests(p, method="holm")[1].tolist())


def test_p_is_twice_the_smaller_tail_with_one_added():
    assert paired_p(np.array([1.0] * 99)) == pytest.approx(2 * 1 / 100)
    assert paired_p(np.array([-1.0] * 3 + [1.0] * 96)) == pytest.approx(2 * 4 / 100)
    assert paired_p(np.array([0.0] * 9)) == 1.0


def test_with_very_many_metrics_no_difference_however_clear_can_be_told():
    clearest = paired_p(np.full(10_000, 1.0))
    for metrics, bearable in ((22, True), (23, False)):
        pairs = metrics * (metrics - 1) // 2
        least = smallest_adjusted_p(pairs, 10_000)
        assert least == pytest.approx(holm([clearest] * pairs)[0])
        assert (least <= ALPHA) == bearable


def test_false_alarms_are_as_rare_as_stated():
    """Two metrics without any difference are called different in about 5 % of the rounds."""
    rng = np.random.default_rng(21)
    layout, alarms, rounds = layout_of(50), 0, 300
    for seed in range(rounds):
        common = rng.normal(0.6, 0.2, 50)
        found = bootstrap(
            layout,
            {m: values_of(common + rng.normal(0, 0.1, 50)) for m in "ab"}, draws=400, seed=seed,
        )  # fmt: skip
        alarms += paired_p(found.draws["overall"]["a"] - found.draws["overall"]["b"]) <= 0.05
    assert alarms / rounds < 0.09


def differ(*pairs):
    return [Difference(a, b, 0.1, 0.0, 0.2, 0.001, 0.001) for a, b in pairs]


def test_letters_are_shared_exactly_by_metrics_that_cannot_be_told_apart():
    ranked = ["a", "b", "c", "d"]
    apart = [("a", "c"), ("a", "d"), ("b", "d")]
    letters = letter_groups(ranked, differ(*apart))
    assert letters == {"a": "a", "b": "ab", "c": "bc", "d": "c"}


def test_letters_without_any_difference_are_one_group():
    assert letter_groups(["a", "b"], []) == {"a": "a", "b": "a"}


def test_the_board_ranks_complete_rows_only_and_leaves_reference_rows_out():
    good, bad = [(1.0, 0.0)], [(0.0, 1.0)]
    layout, strong = build([(good, good)] * 12, categories=["action"] * 6 + ["shapes"] * 6)
    _, weak = build([(bad, bad)] * 6 + [(good, good)] * 6)
    _, partial = build([(good, good)] * 6 + [([(math.nan, math.nan)], good)] * 6)
    board = build_board(
        layout, {"weak": weak, "partial": partial, "strong": strong, "coin": weak},
        policy=Policy(missing="skip"), reference=frozenset({"coin"}), draws=200,
    )  # fmt: skip
    assert [(e.name, e.rank) for e in board.entries] == [
        ("strong", 1), ("weak", 2), ("partial", None), ("coin", None),
    ]  # fmt: skip
    assert board.entry("partial").result.missing_categories == ("shapes",)


def test_two_metrics_side_by_side_have_paired_intervals_in_every_row():
    rng = np.random.default_rng(8)

    def images(n):
        return [tuple(rng.normal(size=2)) for _ in range(n)]

    pairs = [(images(4), images(4)) for _ in range(24)]
    categories = ["action"] * 12 + ["shapes"] * 12
    layout, first = build(pairs, categories=categories)
    _, second = build([(images(4), images(4)) for _ in range(24)])
    board = build_board(layout, {"a": first, "b": second}, policy=Policy(), draws=300)
    rows = {r.name: r for r in compare_entries(board, board.entry("a"), board.entry("b"))}
    assert len(rows) == 3 + 4 + 2 * 2
    for row in rows.values():
        assert row.low <= row.difference <= row.high
    # The average's interval from differences of pairs is that of differences of draws.
    low, high = interval_of(board.bootstrap.draws["text"]["a"] - board.bootstrap.draws["text"]["b"])
    assert (rows["text"].low, rows["text"].high) == pytest.approx((low, high))
    same = compare_entries(board, board.entry("a"), board.entry("a"))
    assert same[0].low is None
    assert same[0].reason == "every draw gave the same value"


def test_a_metric_with_too_few_pairs_is_not_tested_and_gets_no_letter():
    good, bad, none = [(1.0, 0.0)], [(0.0, 1.0)], [(math.nan, math.nan)]
    layout, strong = build([(good, good)] * 12)
    _, weak = build([(bad, bad)] * 6 + [(good, good)] * 6)
    _, sparse = build([(good, good)] * 4 + [(none, none)] * 8)
    board = build_board(
        layout, {"strong": strong, "weak": weak, "sparse": sparse},
        policy=Policy(missing="skip"), draws=200,
    )  # fmt: skip
    assert board.entry("sparse").rank == 1
    assert board.entry("sparse").group == ""
    assert {(d.first, d.second) for d in board.differences} == {("strong", "weak")}
    assert (board.entry("strong").group, board.entry("weak").group) == ("a", "b")


def test_a_board_of_too_many_metrics_says_that_its_groups_say_nothing():
    layout, _ = build([([(1.0, 0.0)], [(1.0, 0.0)])] * 12)
    scores = {}
    for number in range(24):  # each right on another share of the pairs
        _, scores[f"m{number:02}"] = build(
            [
                ([(1.0, 0.0)], [(1.0, 0.0)]) if (i * 7 + number) % 24 < 12 else ([(0.0, 1.0)],) * 2
                for i in range(12)
            ]
        )
    board = build_board(layout, scores, policy=Policy(), draws=10_000)
    assert len(board.differences) == 276
    assert board.too_many_to_tell
    assert "276 pairs of metrics and 10,000 draws no difference can reach 5 %" in text(
        board, title="t"
    )
    few = build_board(layout, {n: scores[n] for n in ("m00", "m12")}, policy=Policy(), draws=100)
    assert few.differences
    assert not few.too_many_to_tell
