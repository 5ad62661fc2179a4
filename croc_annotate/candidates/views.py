"""Images for those who may see them; the wall and one image's page for reviewers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.core.paginator import Paginator
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_safe

from croc_annotate.accounts.access import reviewers_only
from croc_annotate.candidates.forms import BrowseForm
from croc_annotate.candidates.models import Candidate
from croc_annotate.candidates.selectors import Wall, filter_candidates, in_wall_order
from croc_annotate.candidates.serving import image_response

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponseBase

_PAGE = 60


@require_safe
def display(request: HttpRequest, key: str) -> HttpResponseBase:
    """The stripped copy that people judge; for anybody signed in."""
    return _copy(request, key, "display")


@require_safe
def preview(request: HttpRequest, key: str) -> HttpResponseBase:
    """The thumbnail; for anybody signed in."""
    return _copy(request, key, "preview")


@require_safe
@reviewers_only
def original(request: HttpRequest, key: str) -> HttpResponseBase:
    """The original file; its metadata name the generator, so reviewers and admins only."""
    return _send(request, key, "image")


@require_safe
@reviewers_only
def browse(request: HttpRequest) -> HttpResponseBase:
    """The wall of images with its filters in the address."""
    form = BrowseForm(request.GET)
    wanted = form.cleaned_data if form.is_valid() else {}
    wall = Wall(filter_candidates(Candidate.objects.all(), wanted))
    # The stubs want all of a list; a paginator only counts and slices.
    pages: Paginator[Candidate] = Paginator(wall, _PAGE)  # type: ignore[arg-type]
    page = pages.get_page(request.GET.get("page"))
    filtered = any(value not in (None, "") for value in wanted.values())
    return render(
        request,
        "candidates/browse.html",
        {"form": form, "page_obj": page, "filtered": filtered},
    )


@require_safe
@reviewers_only
def detail(request: HttpRequest, key: str) -> HttpResponseBase:
    """Everything about one image."""
    candidate = get_object_or_404(
        Candidate.objects.select_related(
            "pair__category", "generator", "near_duplicate_of__generator"
        ),
        key=key,
    )
    siblings = in_wall_order(
        Candidate.objects.rendered()
        .filter(pair=candidate.pair, side=candidate.side)
        .exclude(pk=candidate.pk)
    )[:24]
    return render(request, "candidates/detail.html", {"candidate": candidate, "siblings": siblings})


@require_safe
@reviewers_only
def of_pair(request: HttpRequest, pair: int, side: str) -> HttpResponseBase:
    """The images of one side of a pair, as a piece of another room's page."""
    rows = in_wall_order(Candidate.objects.rendered().filter(pair=pair, side=side))
    context = {"candidates": list(rows[:_PAGE]), "count": rows.count(), "side": side}
    return render(request, "candidates/_of_pair.html", context)


def _copy(request: HttpRequest, key: str, which: str) -> HttpResponseBase:
    if not request.user.is_authenticated:
        # An <img> cannot follow a redirect to a log-in page.
        return HttpResponse(status=401)
    return _send(request, key, which)


def _send(request: HttpRequest, key: str, which: str) -> HttpResponseBase:
    name = Candidate.objects.rendered().filter(key=key).values_list(which, flat=True).first()
    if not name:
        raise Http404("There is no such image.")
    return image_response(request, name=name)
