"""Statistics as lines for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Row = dict[str, Any]

_COLUMNS = [
    ("raw_agreement", "raw"),
    ("krippendorff_alpha", "alpha"),
    ("gwet_ac1", "AC1"),
    ("fleiss_kappa", "Fleiss"),
    ("cohen_kappa", "Cohen"),
    ("prevalence_accept", "accepts"),
]


def report_lines(report: Row) -> Iterator[str]:
    """The agreement report: a table, the intervals of the whole, and what is undefined and why."""
    yield from aligned([_head(), _cells("all", report["all"]), *_groups(report["by"])])
    yield ""
    yield from _interval_lines(report)
    yield from _undefined_lines(report["all"])
    if report["first_two_votes_only"]:
        yield "Adaptive campaign: only the first two votes of each item count in the coefficients."
    if "other" in report:
        yield ""
        yield "Images against the other text of their pair (not in the numbers above):"
        other = report["other"]
        yield from aligned([_head(), _cells("all", other["all"]), *_groups(other["by"])])


def annotator_lines(rows: Sequence[Row]) -> Iterator[str]:
    """The annotators: a table, then the reasons to talk to people."""
    head = [
        "", "judged", "accepts", "others", "gold", "agrees", "sens", "spec", "median", "minute", "run",
    ]  # fmt: skip
    yield from aligned([head, *(_person(row) for row in rows)])
    for row in rows:
        for concern in row["concerns"]:
            yield f"{row['person']}: {concern['text']}"


def _person(row: Row) -> list[str]:
    seconds = None if row["median_ms"] is None else row["median_ms"] / 1000
    return [
        row["person"],
        f"{row['judgements']:,}",
        number(row["accept_share"]["value"], 2),
        number(row["accept_share_others"], 2),
        number(row["gold"]["value"], 2),
        number(row["others"]["value"], 2),
        number(row["sensitivity"]["value"], 2),
        number(row["specificity"]["value"], 2),
        number(seconds, 1),
        str(row["busiest_minute"]),
        str(row["longest_run"]),
    ]


def aligned(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Pad the cells of each column to one width: the first to the left, others to the right."""
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    for first, *rest in rows:
        cells = [cell.rjust(width) for cell, width in zip(rest, widths[1:], strict=True)]
        yield "  ".join([first.ljust(widths[0]), *cells])


def number(value: float | None, digits: int = 3) -> str:
    """A number, or a dash where it is undefined."""
    return "–" if value is None else f"{value:.{digits}f}"


def _head() -> list[str]:
    titles = [title for _, title in _COLUMNS]
    return ["", *titles, "unsure", "items", "with two", "raters", "judgements"]


def _cells(label: str, row: Row) -> list[str]:
    counts = ("items", "items_with_two", "raters", "judgements")
    return [
        label,
        *(number(row[name]) for name, _ in _COLUMNS),
        number(row["unsure_share"]),
        *(f"{row[name]:,}" for name in counts),
    ]


def _groups(by: Row) -> Iterator[list[str]]:
    for dimension, rows in by.items():
        for label, row in rows.items():
            yield _cells(f"{dimension} {label}", row)


def _interval_lines(report: Row) -> Iterator[str]:
    draws = report["bootstrap"]["draws"]
    yield f"95 % intervals over contrast pairs, {draws:,} draws:"
    for name, title in _COLUMNS:
        interval = report["all"]["intervals"][name]
        if interval["low"] is not None:
            lost = interval["undefined_draws"]
            note = f" ({lost} draws undefined)" if lost else ""
            yield f"  {title:8} {number(interval['low'])} … {number(interval['high'])}{note}"
        elif report["all"][name] is not None:
            yield f"  {title:8} no interval: {interval['reason']}"


def _undefined_lines(row: Row) -> Iterator[str]:
    title = dict(_COLUMNS)
    for name, reason in row["undefined"].items():
        yield f"  {title.get(name, name):8} undefined: {reason}"
