"""The JSON that the pages' charts draw, in the reader's language."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from croc_annotate.benchmark.intervals import AVERAGE
from croc_annotate.benchmark.render import heat
from croc_annotate.lib.reasons import reason_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from croc_annotate.benchmark.board import Board, Entry
    from croc_annotate.benchmark.intervals import Bounds
    from croc_annotate.benchmark.layout import Floats, Scores

_BINS = 30
_SERIES = {"text": gettext_noop("Text-based"), "image": gettext_noop("Image-based")}


def ranking(
    board: Board, link: Callable[[Entry], str], label: Callable[[str], str]
) -> dict[str, Any]:
    """Dots with intervals and letters, in the board's order."""
    rows: list[dict[str, Any]] = []
    for entry in board.entries:
        bounds = entry.bounds[AVERAGE]["overall"]
        rows.append(
            {
                "label": entry.label,
                "value": entry.overall,
                "low": bounds.low,
                "high": bounds.high,
                "n": None,
                "note": _note(entry, bounds, label),
                "letters": entry.group,
                "kind": "reference" if entry.reference else "metric",
                "href": link(entry),
            }
        )
    lowest = [r["low"] if r["low"] is not None else r["value"] for r in rows]
    floor = min([0.45, *(v for v in lowest if v is not None)])
    return {
        "x_label": _("Accuracy, mean of the four directions"),
        "domain": [max(0.0, round(floor - 0.05, 1)), 1.0],
        "reference": 0.5,
        "format": ".3f",
        "tick_format": ".1f",
        "rows": rows,
    }


def heat_map(
    board: Board, part: str, link: Callable[[Entry, str, str], str], label: Callable[[str], str]
) -> dict[str, Any]:
    """Category × metric on −1…1 with an AVG column and row; a cell leads to its worst pairs."""
    categories = board.layout.categories
    values: list[list[float | None]] = []
    hrefs: list[list[str | None]] = []
    counts: list[list[int]] = []
    for entry in board.entries:
        cells = [entry.result.categories[c] for c in categories]
        row = [heat(cell[part]) for cell in cells]
        values.append([*row, heat(entry.result.average[part])])
        hrefs.append([*(link(entry, part, c) for c in categories), link(entry, part, "")])
        forward, inverse = f"n_{part}_forward", f"n_{part}_inverse"
        counts.append([
            *(max(c[forward], c[inverse]) for c in cells),
            max(entry.result.average[forward], entry.result.average[inverse]),
        ])  # fmt: skip
    rows = [entry.label for entry in board.entries]
    shown = [i for i, e in enumerate(board.entries) if not e.reference and e.result.complete]
    if len(shown) > 1:
        rows.append("AVG")
        table = [values[i] for i in shown]
        values.append([_mean([row[k] for row in table]) for k in range(len(categories) + 1)])
        hrefs.append([None] * (len(categories) + 1))
        counts.append([max(c) for c in zip(*[counts[i] for i in shown], strict=True)])
    return {
        "rows": rows,
        "cols": [*(label(c) for c in categories), "AVG"],
        "values": values,
        "n": counts,
        "hrefs": hrefs,
        "domain": [-1, 1],
        "scale": "diverging",
        "format": ".2f",
        "emphasis": {"last_col": True, "last_row": len(shown) > 1},
        "row_notes": [e.group for e in board.entries] + ([""] if len(shown) > 1 else []),
    }


def forward_inverse(board: Board, part: str, link: Callable[[Entry], str]) -> dict[str, Any]:
    """Each metric's forward accuracy against its inverse one, text- or image-based."""
    points = [
        {
            "x": entry.result.average[f"{part}_forward"],
            "y": entry.result.average[f"{part}_inverse"],
            "label": entry.label,
            "series": _(_SERIES[part]),
            "n": entry.result.average[f"n_{part}_forward"],
            "href": link(entry),
        }
        for entry in board.entries
        if entry.result.average[f"{part}_forward"] is not None
        and entry.result.average[f"{part}_inverse"] is not None
    ]
    numbers = [v for p in points for v in (p["x"], p["y"])]
    low = max(0.0, round(min([0.5, *numbers]) - 0.05, 1))
    return {
        "x": {"label": _("Forward: the prompt first"), "domain": [low, 1], "format": ".2f"},
        "y": {"label": _("Inverse: the contrast first"), "domain": [low, 1], "format": ".2f"},
        "points": points,
        "lines": [{"label": _("equally good"), "points": [[low, low], [1, 1]]}],
    }


def category_intervals(
    entry: Entry, label: Callable[[str], str], link: Callable[[str], str]
) -> dict[str, Any]:
    """Text- and image-based accuracy of one metric by category."""
    rows = [
        {
            "label": label(category),
            "series": _(_SERIES[part]),
            "value": numbers[part],
            "low": entry.bounds[category][part].low,
            "high": entry.bounds[category][part].high,
            "n": max(numbers[f"n_{part}_forward"], numbers[f"n_{part}_inverse"]),
            "note": reason_text(entry.bounds[category][part].reason) or None,
            "href": link(category),
        }
        for category, numbers in entry.result.categories.items()
        for part in ("text", "image")
        if numbers[part] is not None
    ]
    return {
        "x_label": _("Accuracy (0.5: chance)"), "domain": [0, 1], "reference": 0.5,
        "format": ".2f", "rows": rows,
    }  # fmt: skip


def distribution(scores: Scores) -> dict[str, Any]:
    """How often each score comes: of the verified text, and of the pair's other text."""
    own = _finite(scores.prompt_own, scores.contrast_own)
    other = _finite(scores.prompt_other, scores.contrast_other)
    both = np.concatenate([own, other])
    if not len(both):
        x, y = {"label": _("Score"), "type": "number"}, {"label": _("Share of images")}
        return {"x": x, "y": y, "series": []}
    edges = np.histogram_bin_edges(both, bins=_BINS)
    return {
        "x": {"label": _("Score"), "type": "number"},
        "y": {"label": _("Share of images"), "domain": None, "format": ".0%"},
        "series": [
            _histogram(own, edges, _("verified text")),
            _histogram(other, edges, _("other text")),
        ],
    }


def _histogram(values: Floats, edges: Floats, label: str) -> dict[str, Any]:
    counts, _ = np.histogram(values, edges)
    middle = (edges[:-1] + edges[1:]) / 2
    return {
        "label": label,
        "points": [
            {"x": float(x), "y": float(c / max(len(values), 1)), "n": int(c)}
            for x, c in zip(middle, counts, strict=True)
        ],
    }


def _finite(*columns: Floats) -> Floats:
    joined = np.concatenate(columns)
    finite: Floats = joined[np.isfinite(joined)]
    return finite


def _note(entry: Entry, bounds: Bounds, label: Callable[[str], str]) -> str | None:
    if entry.overall is None:
        return _("no value in every direction")
    if not entry.result.complete:
        lacking = ", ".join(map(label, entry.result.missing_categories))
        return _("not ranked: lacks %(categories)s") % {"categories": lacking}
    return reason_text(bounds.reason) or None


def _mean(numbers: Sequence[float | None]) -> float | None:
    known = [n for n in numbers if n is not None]
    return sum(known) / len(known) if known and len(known) == len(numbers) else None
