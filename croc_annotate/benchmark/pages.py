"""What the leaderboard's pages show: who may see it, links, pairs with their pictures."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.core.cache import cache
from django.core.exceptions import PermissionDenied
from django.http import Http404, QueryDict
from django.urls import reverse
from kombu.exceptions import OperationalError

from croc_annotate.accounts.models import User
from croc_annotate.benchmark.boards import (
    EmptyBoardError,
    View,
    board_names,
    cached_images,
    narrow,
    release_board,
    run_scores,
)
from croc_annotate.benchmark.forms import ViewForm
from croc_annotate.benchmark.selectors import ReleaseImages, shown_runs
from croc_annotate.benchmark.tasks import prepare_board
from croc_annotate.benchmark.worst import Showcase, ordered_pairs, pair_means, showcase
from croc_annotate.prompts.marking import Piece, marked_pair
from croc_annotate.prompts.selectors import category_titles
from croc_annotate.releases.models import Release
from croc_annotate.releases.selectors import (
    ReleaseNotFoundError,
    find_release,
    newest_release,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from django.http import HttpRequest

    from croc_annotate.benchmark.board import Board, Entry
    from croc_annotate.benchmark.layout import Scores
    from croc_annotate.releases.records import ScoredMember

_MINUTE = 60


@dataclass(frozen=True)
class PageContext:
    """A release as somebody may see it, with the choices of the address."""

    release: Release
    form: ViewForm
    view: View
    images: ReleaseImages
    query: str
    """The choices as a query string that names the release in full: a permanent link."""

    def url(self, name: str, *args: str, **changes: str) -> str:
        """The address of a page with the same choices, some changed ("" drops one)."""
        query = QueryDict(self.query, mutable=True)
        for key, value in changes.items():
            query.pop(key, None)
            if value:
                query[key] = value
        return f"{reverse(f'benchmark:{name}', args=args)}?{query.urlencode()}"


@dataclass(frozen=True)
class PairPicture:
    """A pair as the page shows it: texts, two images, four scores, what the metric preferred."""

    slug: str
    category: str
    value: float
    prompt: list[Piece]
    contrast: list[Piece]
    prompt_image: str
    contrast_image: str
    prompt_text: str
    contrast_text: str
    shown: Showcase


def visible_releases(request: HttpRequest) -> Any:
    """Public ones for everybody, all for reviewers."""
    user = request.user
    everything = Release.objects.filter(sealed=True)
    if isinstance(user, User) and user.may_review:
        return everything
    return everything.public()


def visible_release(request: HttpRequest, name: str) -> Release | None:
    """The release that the address names, or the newest one; None when there is none to see.

    Raises Http404 for an unknown name and PermissionDenied for one that is not public.
    """
    allowed = visible_releases(request)
    if not name:
        try:
            return newest_release(among=allowed)
        except ReleaseNotFoundError:
            return None
    try:
        release = find_release(name)
    except ReleaseNotFoundError as error:
        raise Http404(str(error)) from error
    if not allowed.filter(pk=release.pk).exists():
        raise PermissionDenied
    return release


def page_context(request: HttpRequest) -> PageContext | None:
    """The release and choices of a request; None when there is no release to see."""
    release = visible_release(request, request.GET.get("release", ""))
    if release is None:
        return None
    images = cached_images(release)
    labels = category_labels()
    form = ViewForm(
        request.GET,
        generators=images.layout.generators,
        categories=[(c, labels.get(c, c)) for c in images.layout.categories],
    )
    view = form.view()
    return PageContext(release, form, view, images, _query(release, view))


def board_of(context: PageContext) -> Board | None:
    """The board, or None when nothing has been scored (or no image is left)."""
    try:
        board = release_board(context.release, context.view, older=_has_workers())
    except EmptyBoardError:
        return None
    if board.outdated and cache.add(f"benchmark-renewing-{context.release.pk}", 1, _MINUTE):
        with suppress(OperationalError):  # the broker is away: the next minute's visitor asks
            prepare_board.delay(context.release.pk)
    return board


def category_labels() -> dict[str, str]:
    """Category → its name in words."""
    return dict(category_titles())


def pair_pictures(
    context: PageContext,
    entry: Entry,
    *,
    statistic: str,
    category: str = "",
    best_first: bool = False,
    start: int = 0,
    count: int = 12,
) -> tuple[list[PairPicture], int]:
    """A page of pairs, worst (or best) first, and how many there are."""
    order = ordered_pairs(
        entry.evaluation, statistic=statistic, category=category, best_first=best_first
    )
    means = pair_means(entry.evaluation, statistic)
    chosen = order[start : start + count].tolist()
    shown = showcases(context, entry.name, [(p, float(means[p])) for p in chosen], best=best_first)
    return shown, len(order)


def showcases(
    context: PageContext, name: str, pairs: Sequence[tuple[int, float]], *, best: bool = False
) -> list[PairPicture]:
    """Pairs (by number in the view's layout, with a value) as pictures."""
    scores, layout, keep_p, keep_q = narrowed_scores(context, name)
    prompt, contrast = _kept(context.images.prompt, keep_p), _kept(context.images.contrast, keep_q)
    pictures = []
    for pair, value in pairs:
        shown = showcase(layout, scores, pair, value, best=best)
        first, second = layout.texts[pair]
        marked = marked_pair(first, second)
        pictures.append(
            PairPicture(
                slug=layout.pair_ids[pair],
                category=layout.categories[layout.category[pair]],
                value=value,
                prompt=marked[0],
                contrast=marked[1],
                prompt_image=_image_url(context, prompt, shown.prompt_row),
                contrast_image=_image_url(context, contrast, shown.contrast_row),
                prompt_text=first,
                contrast_text=second,
                shown=shown,
            )
        )
    return pictures


def narrowed_scores(context: PageContext, name: str) -> tuple[Scores, Any, Any, Any]:
    """One metric's scores on the images of the view, with their layout and masks."""
    runs = shown_runs(context.release)
    names = board_names(runs)
    wanted = {name, "human"} if context.view.voted_only else {name}
    scores = {
        names[run.pk]: run_scores(run, context.images) for run in runs if names[run.pk] in wanted
    }
    if name not in scores:
        raise Http404(f"no metric {name!r} on this release")
    layout, narrowed, keep_p, keep_q = narrow(context.images, scores, context.view)
    return narrowed[name], layout, keep_p, keep_q


def _has_workers() -> bool:
    return not settings.CELERY_TASK_ALWAYS_EAGER


def _kept(members: Sequence[ScoredMember], keep: np.ndarray) -> list[ScoredMember]:
    return [m for m, kept in zip(members, keep.tolist(), strict=True) if kept]


def _image_url(context: PageContext, members: Sequence[ScoredMember], row: int | None) -> str:
    if row is None:
        return ""
    return reverse("benchmark:image", args=[context.release.pk, members[row].candidate_id])


def _query(release: Release, view: View) -> str:
    query = QueryDict(mutable=True)
    query["release"] = f"{release.name}@{release.version}"
    if view.generator:
        query["generator"] = view.generator
    if view.categories:
        query.setlist("category", list(view.categories))
    if view.policy.missing != "skip":
        query["missing"] = view.policy.missing
    if view.policy.ties != "loss":
        query["ties"] = view.policy.ties
    if view.voted_only:
        query["on"] = "human"
    return query.urlencode()
