"""The exported figure: nothing runs out of it or into something else, however long the names."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from croc_annotate.benchmark.board import build_board
from croc_annotate.benchmark.figures import compose, draw
from croc_annotate.benchmark.layout import HARD_CATEGORIES
from croc_annotate.benchmark.protocol import Policy
from tests.benchmark.layouts import build

NAMES = [
    "CROCScore (microsoft/Phi-4-multimodal-instruct)",
    "SigLIP (google/siglip2-so400m-patch14-384)",
    "Tiny dual encoder (trained on drawn scenes)",
    "VQAScore (Qwen/Qwen2.5-VL-7B-Instruct)",
]


def board(metrics, names=NAMES):
    rng = np.random.default_rng(4)

    def images(strength):
        return [(float(rng.normal(strength)), float(rng.normal())) for _ in range(2)]

    categories = [c for c in HARD_CATEGORIES for _ in range(12)]
    scores = {}
    for number in range(metrics):
        layout, scores[f"m{number}"] = build(
            [(images(2 - number / 4), images(2 - number / 4)) for _ in categories],
            categories=categories,
        )
    labels = {name: f"{names[k % len(names)]} {k}" for k, name in enumerate(scores)}
    return build_board(layout, scores, policy=Policy(), labels=labels, draws=200,
                       reference=frozenset([f"m{metrics - 1}"]))  # fmt: skip


HOSTILE = [
    "x" * 120,
    "org/" + "a_b-c/d" * 14 + "$\\frac{1}{2}$",
    "$x^2$ and $y",
    "line\nbreak " * 9,
    "a\u202eright to left\u202c",
]


@pytest.mark.parametrize(
    ("metrics", "names", "title"),
    [(1, NAMES, "CROChum 1.0.0"), (3, NAMES, "CROChum 1.0.0"), (13, NAMES, "CROChum 1.0.0"),
     (30, NAMES, "CROChum 1.0.0"), (8, HOSTILE, "my_$set$ " + "long-release-name-" * 9)],
)  # fmt: skip
def test_no_words_leave_the_figure_or_cover_each_other(metrics, names, title):
    figure = compose(board(metrics, names), title=title)
    figure.draw_without_rendering()
    renderer = figure.canvas.get_renderer()
    words = [figure._suptitle]
    for axes in figure.axes:
        words += [axes.title, axes._left_title, axes.xaxis.label, *axes.texts]
        words += [*axes.get_yticklabels()]
    boxes = [(w.get_text(), w.get_window_extent(renderer)) for w in words if w.get_text()]
    for text, box in boxes:
        assert box.x0 >= -1, text
        assert box.y0 >= -1, text
        assert box.x1 <= figure.bbox.width + 1, text
        assert box.y1 <= figure.bbox.height + 1, text
    for (one, a), (other, b) in itertools.combinations(boxes, 2):
        assert not (a.x0 < b.x1 and b.x0 < a.x1 and a.y0 < b.y1 and b.y0 < a.y1), (one, other)


def test_equal_boards_give_equal_files():
    first, second = (draw(board(2), title="t", form="pdf") for _ in range(2))
    assert first == second


def test_no_value_reads_minus_zero():
    figure = compose(board(3), title="t")
    assert "−0.00" not in {text.get_text() for axes in figure.axes for text in axes.texts}


def test_a_long_name_leaves_the_maps_their_width_and_is_no_formula():
    figure = compose(board(5, HOSTILE), title="t")
    figure.draw_without_rendering()
    maps = figure.axes[1:]
    assert all(a.get_position().width > 0.25 for a in maps)
    names = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert any("$x^2$ and $y" in name for name in names)
    assert all(not label.get_parse_math() for label in figure.axes[0].get_yticklabels())
    assert not any("\u202e" in name for name in names)
