"""The leaderboard's pages and downloads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.http import Http404, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from croc_annotate.accounts.access import reviewers_only
from croc_annotate.benchmark import chart_data
from croc_annotate.benchmark.comparing import compare_entries, disagreements
from croc_annotate.benchmark.intervals import AVERAGE, STATISTICS
from croc_annotate.benchmark.models import ExternalResult, MetricRun
from croc_annotate.benchmark.pages import (
    PageContext,
    board_of,
    category_labels,
    narrowed_scores,
    page_context,
    pair_pictures,
    showcases,
    visible_releases,
)
from croc_annotate.benchmark.results import FACETS, by_facet
from croc_annotate.benchmark.worst import has_value
from croc_annotate.benchmark.writing import CONTENT_TYPES, write_board
from croc_annotate.candidates.serving import image_response
from croc_annotate.lib.reasons import reason_text
from croc_annotate.releases.selectors import verified

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponseBase

    from croc_annotate.benchmark.board import Board, Entry

_PAIRS = 12


@require_safe
def leaderboard(request: HttpRequest) -> HttpResponse:
    """Ranking, heat maps, forward against inverse, differences, runs, results from elsewhere."""
    context = page_context(request)
    if context is None:
        return render(request, "benchmark/none.html", status=200)
    board = board_of(context)
    page: dict[str, Any] = {
        "context": context,
        "release": context.release,
        "form": context.form,
        "releases": visible_releases(request).newest_first(),
        "board": board,
        "external": ExternalResult.objects.order_by("board", "measure", "-value"),
        "permanent": context.url("leaderboard"),
        "downloads": [
            (form.upper() if form != "latex" else "LaTeX", context.url("download", form))
            for form in CONTENT_TYPES
        ],
    }
    if board is not None:
        page |= _board_data(context, board)
    return render(request, "benchmark/leaderboard.html", page)


@require_safe
def metric(request: HttpRequest, name: str) -> HttpResponse:
    """One metric: by category, its worst pairs as pictures, its scores, what it ran on."""
    context, board, entry = _entry(request, name)
    labels = category_labels()
    statistic = request.GET.get("by", "overall")
    statistic = statistic if statistic in STATISTICS else "overall"
    of = request.GET.get("of", "")
    best = request.GET.get("order") == "best"
    start = max(0, int(request.GET.get("from", "0"))) if _whole(request, "from") else 0
    pictures, total = pair_pictures(
        context, entry, statistic=statistic, category=of, best_first=best, start=start,
        count=_PAIRS,
    )  # fmt: skip
    scores, _layout, _p, _q = narrowed_scores(context, name)
    following = {"by": statistic, "of": of, "order": "best" if best else ""}
    page = {
        "context": context, "release": context.release, "board": board, "entry": entry,
        "pictures": pictures, "total": total, "first": start + 1, "last": start + len(pictures),
        "statistic": statistic, "of": of, "best": best, "labels": labels,
        "statistics": list(STATISTICS), "categories": board.layout.categories,
        "earlier": context.url("metric", name, **following, **{"from": str(start - _PAIRS)})
        if start else "",
        "later": context.url("metric", name, **following, **{"from": str(start + _PAIRS)})
        if start + _PAIRS < total else "",
        "back": context.url("leaderboard"),
        "by_category": chart_data.category_intervals(
            entry, lambda c: labels.get(c, c), lambda c: context.url("metric", name, of=c)
        ),
        "distribution": chart_data.distribution(scores),
        "facets": {
            facet: cells
            for facet in FACETS
            if (cells := by_facet(facet, entry.evaluation, scores))
        },
        "others": [e for e in board.entries if e.name != name],
        "words": _stat_notes(board, entry),
        "kept": _kept(context),
        # Asked only where the list is empty: which words explain that?
        "has_value": bool(pictures) or has_value(
            entry.evaluation, statistic=statistic, category=of
        ),
    }  # fmt: skip
    return render(request, "benchmark/metric.html", page)


@require_safe
def compare(request: HttpRequest) -> HttpResponse:
    """Two metrics side by side: differences on the same draws, and pairs where they disagree."""
    context, board = _board(request)
    names = [entry.name for entry in board.entries]
    first = request.GET.get("a", names[0])
    second = request.GET.get("b", names[min(1, len(names) - 1)])
    if first not in names or second not in names:
        raise Http404("no such metric on this release")
    pair = (board.entry(first), board.entry(second))
    apart = disagreements(pair[0].evaluation, pair[1].evaluation, count=6)
    page = {
        "context": context, "release": context.release, "board": board, "a": pair[0],
        "b": pair[1], "rows": compare_entries(board, *pair), "labels": category_labels(),
        "entries": board.entries, "back": context.url("leaderboard"),
        "a_better": list(zip(
            showcases(context, second, [(p, vb) for p, _va, vb in apart[0]]),
            [(va, vb) for _p, va, vb in apart[0]], strict=True)),
        "b_better": list(zip(
            showcases(context, first, [(p, va) for p, va, _vb in apart[1]]),
            [(va, vb) for _p, va, vb in apart[1]], strict=True)),
    }  # fmt: skip
    return render(request, "benchmark/compare.html", page)


@require_safe
def download(request: HttpRequest, form: str) -> HttpResponse:
    """The leaderboard as csv, json, latex, png or pdf."""
    if form not in CONTENT_TYPES:
        raise Http404("no such format")
    context, board = _board(request)
    response = HttpResponse(
        write_board(context.release, board, form), content_type=CONTENT_TYPES[form]
    )
    ending = "tex" if form == "latex" else form
    name = f"leaderboard-{context.release.name}-{context.release.version}.{ending}"
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    return response


@require_safe
def image(request: HttpRequest, release_id: int, candidate_id: int) -> HttpResponseBase:
    """A verified image of a release that the person may see."""
    release = get_object_or_404(visible_releases(request), pk=release_id)
    member = get_object_or_404(
        verified(release).select_related("candidate"), candidate_id=candidate_id
    )
    return image_response(request, name=member.candidate.display or member.candidate.image)


@require_safe
@reviewers_only
def runs(request: HttpRequest) -> HttpResponse:
    """All runs with their state, speed and surroundings."""
    rows = MetricRun.objects.select_related("metric", "release").order_by("-id")[:200]
    template = "benchmark/_runs.html" if "part" in request.GET else "benchmark/runs.html"
    return render(request, template, {"runs": rows})


def _board(request: HttpRequest) -> tuple[PageContext, Board]:
    context = page_context(request)
    board = board_of(context) if context is not None else None
    if context is None or board is None:
        raise Http404(_("Nothing has been scored here."))
    return context, board


def _entry(request: HttpRequest, name: str) -> tuple[PageContext, Board, Entry]:
    context, board = _board(request)
    try:
        return context, board, board.entry(name)
    except KeyError as error:
        raise Http404(f"no metric {name!r} on this release") from error


def _board_data(context: PageContext, board: Board) -> dict[str, Any]:
    labels = category_labels()

    def of(category: str) -> str:
        return labels.get(category, category)

    def to_metric(entry: Entry) -> str:
        return context.url("metric", entry.name)

    def to_cell(entry: Entry, part: str, category: str) -> str:
        return context.url("metric", entry.name, by=part, of=category) + "#pairs"

    ranked = [entry for entry in board.entries if entry.rank]
    return {
        "ranking": chart_data.ranking(board, to_metric, of),
        "text_map": chart_data.heat_map(board, "text", to_cell, of),
        "image_map": chart_data.heat_map(board, "image", to_cell, of),
        "text_ways": chart_data.forward_inverse(board, "text", to_metric),
        "image_ways": chart_data.forward_inverse(board, "image", to_metric),
        "rows": [(entry, to_metric(entry)) for entry in board.entries],
        "n_images": f"{len(board.layout.prompt) + len(board.layout.contrast):,}",
        "metric_labels": {entry.name: entry.label for entry in board.entries},
        "interval_words": _interval_words(board),
        "has_human": any(entry.name == "human" for entry in board.entries),
        "compare": context.url("compare", a=ranked[0].name, b=ranked[1].name)
        if len(ranked) > 1 else "",
    }  # fmt: skip


def _interval_words(board: Board) -> str:
    """Why intervals are absent; "" when all are there."""
    found = [entry.bounds[AVERAGE]["overall"] for entry in board.entries]
    reasons = sorted({reason_text(b.reason) for b in found} - {""})
    return (
        _("About the intervals: %(reasons)s.") % {"reasons": "; ".join(reasons)} if reasons else ""
    )


def _stat_notes(board: Board, entry: Entry) -> dict[str, str]:
    """The doubt that stands under each number."""
    notes = {}
    for statistic in ("overall", "text", "image"):
        bounds = entry.bounds[AVERAGE][statistic]
        notes[statistic] = (
            _("95 %% interval %(low).3f – %(high).3f") % {"low": bounds.low, "high": bounds.high}
            if bounds.low is not None
            else _("no interval: %(reason)s") % {"reason": reason_text(bounds.reason)}
        )
    ranked = sum(e.rank is not None for e in board.entries)
    notes["rank"] = _("of %(n)d, group %(group)s") % {"n": ranked, "group": entry.group or "–"}
    return notes


def _kept(context: PageContext) -> list[tuple[str, str]]:
    """The view's choices as hidden fields, so that a form on the page does not lose them."""
    return [(key, value) for key, values in QueryDict(context.query).lists() for value in values]


def _whole(request: HttpRequest, name: str) -> bool:
    return request.GET.get(name, "").isdecimal()
