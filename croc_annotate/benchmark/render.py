"""The leaderboard as aligned text, CSV and LaTeX (pure)."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

from croc_annotate.benchmark.intervals import AVERAGE, STATISTICS
from croc_annotate.benchmark.layout import DIRECTIONS
from croc_annotate.benchmark.text_table import HEADS, aligned, number

if TYPE_CHECKING:
    from croc_annotate.benchmark.board import Board, Entry

# Characters with a meaning in LaTeX.
_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
}  # fmt: skip


def text(board: Board, *, title: str) -> str:
    """The ranking for a terminal."""
    head = ["", "rank", "group", "overall", "95 %", *HEADS.values(), "ties", "coverage", "n"]
    rows = [head]
    for entry in board.entries:
        average = entry.result.average
        rows.append([
            entry.label + _mark(entry),
            str(entry.rank or "–"),
            entry.group or "–",
            number(average["overall"]),
            interval_text(entry),
            *(number(average[d]) for d in DIRECTIONS),
            number(average["ties"]),
            number(average["coverage"]),
            "/".join(str(average[f"n_{d}"]) for d in DIRECTIONS),
        ])  # fmt: skip
    layout = board.layout
    lines = [
        f"{title}: {layout.n_pairs:,} pairs, {len(layout.prompt) + len(layout.contrast):,} images",
        aligned(rows),
        f"Accuracy 0…1, ties: {board.policy.ties}, missing: {board.policy.missing}. "
        "n: pairs in each direction. Metrics that share a letter cannot be told apart.",
    ]
    if board.too_many_to_tell:
        lines.append(
            f"With {len(board.differences):,} pairs of metrics and {board.bootstrap.n_draws:,} draws "
            "no difference can reach 5 % after Holm's correction: the letters say nothing here."
        )
    reasons = {e.bounds[AVERAGE]["overall"].reason for e in board.entries}
    lines += [f"Interval: {reason}." for reason in sorted(reasons - {""})]
    return "\n".join(lines) + "\n"


def csv_text(board: Board, *, title: str) -> str:
    """One row a metric, category (and average) and statistic, with its interval."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([
        "release", "metric", "rank", "group", "reference", "category", "statistic", "value",
        "low", "high", "n", "ties", "coverage", "interval_note",
    ])  # fmt: skip
    for entry in board.entries:
        tables = [*entry.result.categories.items(), (AVERAGE, entry.result.average)]
        for category, numbers in tables:
            for statistic in STATISTICS:
                bounds = entry.bounds[category][statistic]
                direction = statistic in DIRECTIONS
                values = [
                    numbers[statistic],
                    bounds.low,
                    bounds.high,
                    numbers[f"n_{statistic}"] if direction else None,
                    numbers[f"ties_{statistic}"] if direction else numbers["ties"],
                    numbers[f"coverage_{statistic}"] if direction else numbers["coverage"],
                ]
                writer.writerow([
                    title, safe_cell(entry.label), entry.rank or "", entry.group,
                    int(entry.reference), category, statistic,
                    *("" if v is None else repr(v) for v in values),
                    bounds.reason,
                ])  # fmt: skip
    return out.getvalue()


def latex(board: Board, *, title: str) -> str:
    """A booktabs table: text-, then image-based accuracy by category, AVG with its interval."""
    categories = board.layout.categories
    spec = "lr" + "r" * len(categories) + "rc"
    names = (c.replace("_", " ") for c in categories)
    heads = " & ".join(rf"\rotatebox{{90}}{{{escape(c)}}}" for c in (*names, "AVG"))
    lines = [
        f"% {escape(title)}; values on the scale -1 to 1 (0: chance), ties: {board.policy.ties}, "
        f"missing: {board.policy.missing}",
        r"% needs \usepackage{booktabs,graphicx}",
        r"\begin{table}", r"\centering\small\setlength{\tabcolsep}{4pt}",
        rf"\begin{{tabular}}{{{spec}}}", r"\toprule",
    ]  # fmt: skip
    for part in ("text", "image"):
        lines += [
            rf"\textbf{{{part}-based}} & rank & {heads} & 95\,\% \\",
            r"\midrule",
            *_latex_rows(board, part),
            r"\midrule" if part == "text" else r"\bottomrule",
        ]
    caption = (
        f"Metrics on {escape(title)}: accuracy by category on the scale from $-1$ to $1$ "
        "(0: chance), AVG with its 95\\,\\% interval (bootstrap over contrast pairs). Metrics that "
        "share a letter cannot be told apart."
    )
    lines += [r"\end{tabular}", rf"\caption{{{caption}}}", r"\end{table}"]
    return "\n".join(lines) + "\n"


def interval_text(entry: Entry, *, statistic: str = "overall") -> str:
    """[low, high] of the average, or a dash."""
    bounds = entry.bounds[AVERAGE][statistic]
    if bounds.low is None or bounds.high is None:
        return "–"
    return f"[{bounds.low:.3f}, {bounds.high:.3f}]"


def heat(value: float | None) -> float | None:
    """Accuracy on the scale of the heat maps: −1 always wrong, 0 chance, 1 always right."""
    return None if value is None else 2 * value - 1


def escape(words: str) -> str:
    """Words that LaTeX prints as they are."""
    return "".join(_LATEX.get(char, char) for char in words)


def safe_cell(words: str) -> str:
    """A cell that no spreadsheet takes for a formula."""
    return f"'{words}" if words[:1] in {"=", "+", "-", "@", "\t", "\r"} else words


def _latex_rows(board: Board, part: str) -> list[str]:
    """The ranked rows, then, a little apart, those that take no rank."""
    rows = []
    for before, entry in zip((None, *board.entries), board.entries, strict=False):
        if before is not None and before.rank and not entry.rank:
            rows.append(r"\addlinespace")
        rows.append(_latex_row(entry, part, board.layout.categories))
    return rows


def _latex_row(entry: Entry, part: str, categories: tuple[str, ...]) -> str:
    cells = [heat(entry.result.categories[c][part]) for c in categories]
    cells.append(heat(entry.result.average[part]))
    values = " & ".join("--" if v is None else f"${_two(v)}$" for v in cells)
    group = f"$^{{{entry.group}}}$" if entry.group else ""
    bounds = entry.bounds[AVERAGE][part]
    low, high = heat(bounds.low), heat(bounds.high)
    interval = "--" if low is None or high is None else f"$[{_two(low)}, {_two(high)}]$"
    return rf"{escape(entry.label)}{group} & {entry.rank or '--'} & {values} & {interval} \\"


def _two(value: float) -> str:
    # Adding 0.0 makes -0.0 a plain zero.
    return f"{round(value, 2) + 0.0:.2f}"


def _mark(entry: Entry) -> str:
    if entry.reference:
        return " (reference)"
    if not entry.result.complete:
        return f" (lacks {', '.join(entry.result.missing_categories)})"
    return ""
