"""The leaderboard as a figure for a paper or a talk (matplotlib, no Django)."""

from __future__ import annotations

import io
import logging
import textwrap
import unicodedata
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.font_manager import get_font_names
from matplotlib.text import Text

from croc_annotate.benchmark.intervals import AVERAGE
from croc_annotate.benchmark.render import heat

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from croc_annotate.benchmark.board import Board, Entry

# It tells every step of embedding a font in a PDF.
logging.getLogger("fontTools").setLevel(logging.WARNING)

_NAME_WIDTH = 34  # characters; longer names are folded
_HEADLINE_WIDTH = 110
_MOST_LINES = 3

# Orange, white, blue: readable for colour-blind eyes and in grey.
DIVERGING = LinearSegmentedColormap.from_list(
    "croc", ["#b35806", "#f1a340", "#fee0b6", "#f7f7f7", "#c3dbee", "#5b9bd0", "#1f5fa6"]
)
_INK, _MUTED, _LINE, _BLUE = "#1c2128", "#5b6470", "#d5dae0", "#1f5fa6"
# Families after the first supply what it lacks, sign by sign: names may be written in any script.
_FAMILIES = (
    "Inter", "Helvetica Neue", "Arial", "DejaVu Sans", "Noto Sans", "Noto Sans CJK JP",
    "Noto Sans CJK SC", "WenQuanYi Zen Hei", "Noto Sans Arabic", "Noto Sans Devanagari",
)  # fmt: skip
_STYLE: Any = {
    "font.size": 8.5,
    "text.color": _INK,
    "axes.labelcolor": _INK,
    "axes.edgecolor": _LINE,
    "xtick.color": _MUTED,
    "ytick.color": _INK,
    "pdf.fonttype": 42,  # text stays text: editable, searchable
    "svg.hashsalt": "croc",
    "axes.unicode_minus": True,
}


def draw(board: Board, *, title: str, form: str) -> bytes:
    """The figure as a file; `form` is png, pdf or svg."""
    with mpl.rc_context({**_STYLE, "font.family": _installed()}):
        out = io.BytesIO()
        # No date: equal boards give equal files.
        metadata = {"CreationDate": None} if form == "pdf" else {"Software": None}
        compose(board, title=title).savefig(out, format=form, dpi=200, metadata=metadata)
        return out.getvalue()


def compose(board: Board, *, title: str) -> Figure:
    """Ranking with intervals above the two heat maps.

    The three share one column of names on the left, folded where they are long, so that the maps
    stand under the ranking at a size that a page of a paper can hold.
    """
    lines = [_name_lines(entry) for entry in board.entries]
    n, tall = len(lines), 1 + 0.5 * (max(map(len, lines), default=1) - 1)
    heights = [0.26 * tall * n + 0.55, 0.27 * tall * n + 1.15]
    figure = Figure(figsize=(10.6, sum(heights) + 0.55), layout="constrained")
    FigureCanvasAgg(figure)
    grid = figure.add_gridspec(2, 2, height_ratios=heights)
    _ranking(figure.add_subplot(grid[0, :]), board)
    for column, part in enumerate(("text", "image")):
        axes = figure.add_subplot(grid[1, column])
        _heat_map(axes, board, part, with_labels=column == 0)
    headline = "\n".join(_folded(_headline(board, title), _HEADLINE_WIDTH))
    figure.suptitle(headline, x=0.01, ha="left", fontsize=10)
    # A name may hold dollar signs: it is no formula.
    for text in figure.findobj(Text):
        text.set_parse_math(False)
    return figure


def _installed() -> list[str]:
    """Those of the families that this machine has; matplotlib brings DejaVu Sans itself."""
    known = set(get_font_names())
    return [family for family in _FAMILIES if family in known]


def _name_lines(entry: Entry) -> list[str]:
    return _folded(_row_label(entry), _NAME_WIDTH) or [""]


def _folded(words: str, width: int) -> list[str]:
    """At most three lines; signs that are not drawn (direction marks) are left out."""
    drawn = "".join(" " if c.isspace() else c for c in words if c.isspace() or _is_drawn(c))
    return textwrap.wrap(drawn, width, max_lines=_MOST_LINES, placeholder=" …")


def _is_drawn(character: str) -> bool:
    return not unicodedata.category(character).startswith("C")


def _headline(board: Board, title: str) -> str:
    layout = board.layout
    images = len(layout.prompt) + len(layout.contrast)
    return f"{title}  ·  {layout.n_pairs:,} pairs, {images:,} verified images"


def _ranking(axes: Axes, board: Board) -> None:
    """A dot and its 95 % interval a metric; hollow dots are reference rows."""
    for row, entry in enumerate(board.entries):
        value = entry.overall
        bounds = entry.bounds[AVERAGE]["overall"]
        colour = _MUTED if entry.reference else _BLUE
        if bounds.low is not None and bounds.high is not None:
            axes.hlines(row, bounds.low, bounds.high, color=colour, linewidth=1.6)
        if value is not None:
            face = "white" if entry.reference or not entry.result.complete else colour
            axes.plot([value], [row], "o", ms=5.5, mfc=face, mec=colour, mew=1.3)
            axes.annotate(
                f"{value:.3f}", (1.0, row), xycoords=("axes fraction", "data"),
                xytext=(8, 0), textcoords="offset points", va="center", annotation_clip=False,
            )  # fmt: skip
        axes.annotate(
            entry.group, (1.0, row), xycoords=("axes fraction", "data"),
            xytext=(44, 0), textcoords="offset points", va="center", color=_MUTED,
            annotation_clip=False,
        )  # fmt: skip
    axes.axvline(0.5, color=_LINE, linewidth=1, zorder=0)
    axes.set_yticks(range(len(board.entries)), ["\n".join(_name_lines(e)) for e in board.entries])
    axes.set_ylim(len(board.entries) - 0.4, -0.6)
    low = min([0.45, *(b for e in board.entries if (b := _lowest(e)) is not None)])
    axes.set_xlim(low - 0.02, 1.0)
    axes.set_xlabel(
        f"accuracy, mean of the four directions ({_interval_words(board)}; 0.5 is chance); "
        "metrics that share a letter cannot be told apart",
        color=_MUTED, loc="left", fontsize=8,
    )  # fmt: skip
    _bare(axes)
    axes.grid(axis="x", color=_LINE, linewidth=0.5)
    axes.set_axisbelow(True)


def _heat_map(axes: Axes, board: Board, part: str, *, with_labels: bool) -> None:
    categories = [*board.layout.categories, "AVG"]
    values = np.array([_heat_row(entry, part, board.layout.categories) for entry in board.entries])
    axes.imshow(np.ma.masked_invalid(values), cmap=DIVERGING, vmin=-1, vmax=1, aspect="auto")
    for (row, column), value in np.ndenumerate(values):
        if np.isnan(value):
            axes.text(column, row, "–", ha="center", va="center", color=_MUTED)
        else:
            axes.text(column, row, _signed(value), ha="center", va="center",
                      color=_ink_on(DIVERGING((value + 1) / 2)), fontsize=7)  # fmt: skip
    axes.axvline(len(categories) - 1.5, color="white", linewidth=3)
    axes.set_xticks(range(len(categories)), [c.replace("_", " ") for c in categories])
    axes.tick_params(axis="x", rotation=35, length=0)
    for label in axes.get_xticklabels():
        label.set_horizontalalignment("right")
        label.set_rotation_mode("anchor")
    axes.set_yticks(
        range(len(board.entries)),
        ["\n".join(_name_lines(e)) for e in board.entries] if with_labels else [],
    )
    axes.tick_params(axis="y", length=0, labelsize=8)
    axes.set_title(
        f"{part.capitalize()}-based: −1 always wrong, 0 chance, 1 right", loc="left", fontsize=8.5
    )
    for spine in axes.spines.values():
        spine.set_visible(False)


def _ink_on(colour: tuple[float, float, float, float]) -> str:
    """White or ink, whichever stands out more (relative luminance of WCAG 2)."""
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in colour[:3]]
    luminance = sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))
    return "white" if luminance < 0.18 else _INK


def _heat_row(entry: Entry, part: str, categories: tuple[str, ...]) -> list[float]:
    cells = [heat(entry.result.categories[c][part]) for c in categories]
    cells.append(heat(entry.result.average[part]))
    return [float("nan") if v is None else v for v in cells]


def _row_label(entry: Entry) -> str:
    place = f"{entry.rank}. " if entry.rank else ""
    note = "" if entry.result.complete else " (incomplete)"
    return f"{place}{entry.label}{note}"


def _interval_words(board: Board) -> str:
    """What the lines are, or why there are none."""
    bounds = [e.bounds[AVERAGE]["overall"] for e in board.entries if not e.reference]
    missing = [b.reason for b in bounds if b.low is None]
    return (
        f"no interval: {missing[0]}" if missing and len(missing) == len(bounds) else "95 % interval"
    )


def _lowest(entry: Entry) -> float | None:
    low = entry.bounds[AVERAGE]["overall"].low
    return low if low is not None else entry.overall


def _signed(value: float) -> str:
    # Adding 0.0 makes −0.0 a plain zero.
    return f"{round(value, 2) + 0.0:.2f}".replace("-", "−")


def _bare(axes: Axes) -> None:
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.tick_params(axis="both", length=0, labelsize=8)
