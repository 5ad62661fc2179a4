"""Results as aligned text for a terminal (pure)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from croc_annotate.benchmark.layout import DIRECTIONS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

HEADS = {
    "text_forward": "text fwd",
    "text_inverse": "text inv",
    "image_forward": "image fwd",
    "image_inverse": "image inv",
}


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Columns padded to one width; the first column starts, the others end there."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [row[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        lines.append("  ".join(cells).rstrip())
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(lines)


def number(value: float | None, digits: int = 3) -> str:
    """A number, or a dash where there is none."""
    return "–" if value is None else f"{value:.{digits}f}"


def averages(metrics: Mapping[str, Mapping[str, Any]]) -> str:
    """One line a metric: the four averages, their mean, ties, coverage and pairs."""
    head = ["metric", *HEADS.values(), "overall", "ties", "coverage", "pairs"]
    rows = [head]
    for name, document in metrics.items():
        average = document["average"]
        mark = "" if document.get("complete", True) else " (incomplete)"
        rows.append([
            name + mark,
            *(number(average[d]) for d in DIRECTIONS),
            number(average.get("overall")),
            number(average.get("ties")),
            number(average.get("coverage")),
            "/".join(str(average[f"n_{d}"]) for d in DIRECTIONS[:3]),
        ])  # fmt: skip
    return aligned(rows)


def by_category(metrics: Mapping[str, Mapping[str, Any]]) -> str:
    """One line a metric and category."""
    rows = [["metric", "category", *HEADS.values()]]
    for name, document in metrics.items():
        for category, cells in document["categories"].items():
            rows.append([name, category, *(_with_n(cells, d) for d in DIRECTIONS)])
    return aligned(rows)


def _with_n(cells: Mapping[str, Any], direction: str) -> str:
    return f"{number(cells[direction])} (n {cells[f'n_{direction}']})"
