"""Where and why a metric fails: for each pair the two images that show it best (pure)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from croc_annotate.benchmark.intervals import STATISTICS
from croc_annotate.benchmark.layout import DIRECTIONS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from croc_annotate.benchmark.layout import Bools, Direction, Floats, Ints, Layout, Scores
    from croc_annotate.benchmark.protocol import Evaluation


@dataclass(frozen=True)
class Showcase:
    """One pair with the images that show its failures; rows index the sides of the layout."""

    pair: int
    value: float
    """The pair's value of the statistic."""
    prompt_row: int | None
    contrast_row: int | None
    scores: dict[str, float | None]
    """s(T,i), s(C,i), s(C,j), s(T,j) as prompt_own, prompt_other, contrast_own, contrast_other."""
    outcomes: dict[Direction, str]
    """right, tie or wrong, for the directions that these two images decide."""


def pair_means(evaluation: Evaluation, statistic: str) -> Floats:
    """Each pair's mean over the directions of a statistic; NaN where it has none."""
    rows = evaluation.values[list(STATISTICS[statistic])]
    known = ~np.isnan(rows)
    n = known.sum(axis=0)
    total = np.where(known, rows, 0.0).sum(axis=0)
    means: Floats = np.divide(total, n, out=np.full(len(n), np.nan), where=n > 0)
    return means


def ordered_pairs(
    evaluation: Evaluation, *, statistic: str, category: str = "", best_first: bool = False
) -> Ints:
    """Pairs that the metric gets wrong somewhere, worst first; ties in the layout's order.

    With `best_first` those that it gets right somewhere, best first.
    """
    means = pair_means(evaluation, statistic)
    # A pair without a value is in neither list: comparing with NaN is false.
    chosen = means > 0 if best_first else means < 1
    chosen &= _in_category(evaluation, category)
    pairs = np.flatnonzero(chosen)
    order = np.argsort(-means[pairs] if best_first else means[pairs], kind="stable")
    result: Ints = pairs[order]
    return result


def has_value(evaluation: Evaluation, *, statistic: str, category: str = "") -> bool:
    """Whether any pair of the choice has a value at all."""
    known = ~np.isnan(pair_means(evaluation, statistic))
    return bool((known & _in_category(evaluation, category)).any())


def showcase(
    layout: Layout, scores: Scores, pair: int, value: float, *, best: bool = False
) -> Showcase:
    """The images i and j of a pair with the most wrong comparisons (or the most right ones)."""
    p = np.flatnonzero(layout.prompt.pair == pair)
    q = np.flatnonzero(layout.contrast.pair == pair)
    i, j = _telling(scores, p, q, best=best)
    values = {
        "prompt_own": _at(scores.prompt_own, i),
        "prompt_other": _at(scores.prompt_other, i),
        "contrast_own": _at(scores.contrast_own, j),
        "contrast_other": _at(scores.contrast_other, j),
    }
    return Showcase(pair, value, i, j, values, _outcomes(values))


def _in_category(evaluation: Evaluation, category: str) -> Bools:
    """The pairs of a category ("" for all)."""
    layout = evaluation.layout
    if not category:
        return np.ones(layout.n_pairs, dtype=bool)
    names = np.array(layout.categories, dtype=object)
    chosen: Bools = names[layout.category] == category
    return chosen


def _telling(scores: Scores, p: Ints, q: Ints, *, best: bool) -> tuple[int | None, int | None]:
    """The rows to show: by the margins of all comparisons that the two images decide."""
    text_p = scores.prompt_own[p] - scores.prompt_other[p]
    text_q = scores.contrast_own[q] - scores.contrast_other[q]
    if not len(p) or not len(q):
        i = int(p[np.argmax(_telling_by([text_p], best=best))]) if len(p) else None
        j = int(q[np.argmax(_telling_by([text_q], best=best))]) if len(q) else None
        return i, j
    grid_f = scores.prompt_own[p][:, None] - scores.contrast_other[q][None, :]
    grid_i = scores.contrast_own[q][None, :] - scores.prompt_other[p][:, None]
    margins = [np.broadcast_to(text_p[:, None], grid_f.shape),
               np.broadcast_to(text_q[None, :], grid_f.shape), grid_f, grid_i]  # fmt: skip
    a, b = np.unravel_index(int(np.argmax(_telling_by(margins, best=best))), grid_f.shape)
    return int(p[a]), int(q[b])


def _telling_by(margins: Sequence[Floats], *, best: bool) -> Floats:
    """How telling each choice of images is, from the margins of the comparisons that it decides.

    Most failures (or successes) first; the size of the margins decides among equals. A tie is half
    a failure; a comparison without a score is none, and so never shown in a failure's stead.
    """
    sign = 1.0 if best else -1.0
    count = sum((sign * m > 0) + (0.0 if best else 0.5) * (m == 0) for m in margins)
    size = sum(np.nan_to_num(m) for m in margins)
    scale = float(np.abs(size).max()) or 1.0
    telling: Floats = count + sign * size / (scale * 4)
    return telling


def _outcomes(values: dict[str, float | None]) -> dict[Direction, str]:
    compared = {
        "text_forward": (values["prompt_own"], values["prompt_other"]),
        "text_inverse": (values["contrast_own"], values["contrast_other"]),
        "image_forward": (values["prompt_own"], values["contrast_other"]),
        "image_inverse": (values["contrast_own"], values["prompt_other"]),
    }
    return {
        direction: "right" if a > b else "tie" if a == b else "wrong"
        for direction in DIRECTIONS
        for a, b in [compared[direction]]
        if a is not None and b is not None
    }


def _at(values: Floats, row: int | None) -> float | None:
    if row is None or np.isnan(values[row]):
        return None
    return float(values[row])
