"""The words of the charts come in the reader's language, and lists of pairs say what they hold."""

from __future__ import annotations

import json

import pytest
from django.utils import translation

from croc_annotate.benchmark import chart_data
from croc_annotate.benchmark.board import build_board
from croc_annotate.benchmark.protocol import Policy
from croc_annotate.benchmark.worst import ordered_pairs
from tests.benchmark.layouts import build

RIGHT, WRONG, TIE = (1.0, 0.0), (0.0, 1.0), (0.5, 0.5)
MISSING = (float("nan"), float("nan"))
ENGLISH = (
    "Accuracy", "Forward", "Inverse", "equally good", "based", "Score", "Share", "text\"",
    "not ranked", "independent pairs", "no value",
)  # fmt: skip


def board_of(pairs, **more):
    layout, scores = build(pairs, **more)
    return build_board(layout, {"m": scores}, policy=Policy(missing="skip"), draws=100), scores


@pytest.fixture
def incomplete():
    """One metric that lacks a category: notes and reasons of all kinds."""
    pairs = [([RIGHT], [WRONG]), ([MISSING], [MISSING])]
    return board_of(pairs, categories=["action", "shapes"])


def drawn(board, scores):
    entry = board.entries[0]
    return [
        chart_data.ranking(board, lambda e: "", lambda c: c),
        chart_data.heat_map(board, "text", lambda *a: "", lambda c: c),
        chart_data.forward_inverse(board, "image", lambda e: ""),
        chart_data.category_intervals(entry, lambda c: c, lambda c: ""),
        chart_data.distribution(scores),
    ]


def test_every_word_of_the_charts_is_german_on_german_pages(incomplete):
    with translation.override("de"):
        words = json.dumps(drawn(*incomplete), ensure_ascii=False)
    assert [word for word in ENGLISH if word in words] == []
    assert "nicht eingestuft" in words


def test_the_charts_are_english_otherwise(incomplete):
    words = json.dumps(drawn(*incomplete), ensure_ascii=False)
    assert "not ranked: lacks shapes" in words
    assert "Text-based" in words


def test_the_list_of_failures_holds_no_pair_that_is_all_right():
    pairs = [([RIGHT], [RIGHT]), ([WRONG], [RIGHT]), ([TIE], [TIE]), ([MISSING], [])]
    board, _ = board_of(pairs)
    evaluation = board.entries[0].evaluation
    worst = ordered_pairs(evaluation, statistic="text").tolist()
    assert worst == [2, 1]  # ties are losses: 0 and 0.5
    best = ordered_pairs(evaluation, statistic="text", best_first=True).tolist()
    assert best == [0, 1]
