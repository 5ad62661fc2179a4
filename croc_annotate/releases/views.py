"""The release pages: parse, call, answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from croc_annotate.accounts.access import admins_only, person
from croc_annotate.accounts.models import User
from croc_annotate.candidates.serving import image_response
from croc_annotate.releases import pages
from croc_annotate.releases.beside.citation import bibtex, citation_cff
from croc_annotate.releases.comparing import compare_releases
from croc_annotate.releases.downloads import request_export
from croc_annotate.releases.export.options import BadOptionsError
from croc_annotate.releases.forms import CompareForm, ExportForm, WithdrawForm
from croc_annotate.releases.freeze_views import recent_freezes
from croc_annotate.releases.models import ExportState, Release, ReleaseExport, ReleaseMember
from croc_annotate.releases.selectors import (
    ReleaseNotFoundError,
    find_release,
    latest_exports,
    release_facts,
)
from croc_annotate.releases.services import (
    ReleaseRefusedError,
    set_visibility,
    withdraw_release,
)
from croc_annotate.releases.serving import archive_response

if TYPE_CHECKING:
    from croc_annotate.releases.models import ReleaseQuerySet

PER_PAGE = 30


def _user(request: HttpRequest) -> User | None:
    return request.user if isinstance(request.user, User) else None


def _visible(request: HttpRequest) -> ReleaseQuerySet:
    return pages.visible_releases(_user(request))


def _release(request: HttpRequest, name: str, version: str) -> Release:
    """The release if this visitor may see it; others do not learn that it exists."""
    return get_object_or_404(_visible(request), name=name, version=version)


@require_GET
def releases(request: HttpRequest) -> HttpResponse:
    """All releases that the visitor may see."""
    page = Paginator(_visible(request), PER_PAGE).get_page(request.GET.get("page"))
    user = _user(request)
    freezes = list(recent_freezes()) if user is not None and user.may_administer else []
    return render(request, "releases/list.html", {"page_obj": page, "freezes": freezes})


@require_GET
def detail(request: HttpRequest, name: str, version: str) -> HttpResponse:
    """One release: numbers, agreement, samples, files, how to cite."""
    release = _release(request, name, version)
    facts = release_facts(release)
    context: dict[str, Any] = {
        "release": release,
        "facts": facts,
        "reasons": pages.reason_rows(release),
        "categories": pages.category_rows(release),
        "agreement": pages.agreement_rows(release),
        "agreement_all": release.agreement.get("all") or {},
        "chart": pages.agreement_chart(release),
        "wall": pages.sample_wall(release),
        "bibtex": bibtex(facts),
        "total": sum(release.counts.values()),
        "share": release.n_verified / (sum(release.counts.values()) or 1),
        "others": _visible(request).exclude(pk=release.pk)[:10],
        "export_form": ExportForm(),
        "withdraw_form": WithdrawForm(),
    }
    return render(request, "releases/detail.html", {**context, **_export_context(release)})


def _export_context(release: Release) -> dict[str, Any]:
    exports = list(latest_exports(release))
    running = any(item.state in (ExportState.WAITING, ExportState.RUNNING) for item in exports)
    return {"exports": exports, "running": running, "release": release}


@require_GET
def exports(request: HttpRequest, name: str, version: str) -> HttpResponse:
    """The list of exports alone, for the page that waits for one."""
    release = _release(request, name, version)
    return render(request, "releases/_exports.html", _export_context(release))


@admins_only
@require_POST
def export(request: HttpRequest, name: str, version: str) -> HttpResponse:
    """Ask for an export."""
    release = _release(request, name, version)
    form = ExportForm(request.POST)
    if not form.is_valid():
        for problems in form.errors.values():
            messages.error(request, " ".join(map(str, problems)))
        return _back(release)
    try:
        found = request_export(
            release=release, options=form.cleaned_data["options"], actor=person(request)
        )
    except BadOptionsError as error:
        messages.error(request, str(error))
        return _back(release)
    found.refresh_from_db()
    if found.state == ExportState.DONE:
        messages.success(request, _("The export is ready below."))
    else:
        messages.info(request, _("The export is being made; it appears below when it is ready."))
    return _back(release)


@require_GET
def download(request: HttpRequest, name: str, version: str, pk: int) -> HttpResponseBase:
    """The archive of a finished export."""
    release = _release(request, name, version)
    found = get_object_or_404(ReleaseExport, pk=pk, release=release, state=ExportState.DONE)
    return archive_response(found)


@require_GET
def image(request: HttpRequest, name: str, version: str, key: str) -> HttpResponseBase:
    """The thumbnail of a verified image, also for visitors of a public release."""
    release = _release(request, name, version)
    member = get_object_or_404(
        ReleaseMember.objects.select_related("candidate"),
        release=release, candidate__key=key, reason="verified",
    )  # fmt: skip
    return image_response(request, name=member.candidate.preview)


@require_GET
def citation(request: HttpRequest, name: str, version: str) -> HttpResponse:
    """``CITATION.cff`` of a release."""
    release = _release(request, name, version)
    response = HttpResponse(citation_cff(release_facts(release)), content_type="text/yaml")
    response["Content-Disposition"] = 'attachment; filename="CITATION.cff"'
    return response


@admins_only
@require_POST
def visibility(request: HttpRequest, name: str, version: str) -> HttpResponse:
    """Show the page to everybody, or not."""
    release = _release(request, name, version)
    set_visibility(
        release=release, public=request.POST.get("public") == "yes", actor=person(request)
    )
    return _back(release)


@admins_only
@require_POST
def withdraw(request: HttpRequest, name: str, version: str) -> HttpResponse:
    """Take a release back."""
    release = _release(request, name, version)
    form = WithdrawForm(request.POST)
    try:
        if form.is_valid():
            withdraw_release(release=release, note=form.cleaned_data["note"], actor=person(request))
        else:
            messages.error(request, _("Say what is wrong with the release."))
    except ReleaseRefusedError as error:
        messages.error(request, str(error))
    return _back(release)


@require_GET
def compare(request: HttpRequest) -> HttpResponse:
    """Two releases beside each other."""
    choices = [(f"{item.name}@{item.version}", str(item)) for item in _visible(request)]
    # The newest stands first: what is asked for most is what it changed.
    before_and_after = {"a": choices[1][0], "b": choices[0][0]} if len(choices) > 1 else {}
    form = CompareForm(request.GET or None, choices=choices, initial=before_and_after)
    context: dict[str, Any] = {"form": form, "enough": len(choices) > 1}
    if form.is_bound and form.is_valid():
        first, second = (_named(request, form.cleaned_data[side]) for side in ("a", "b"))
        found = compare_releases(first, second)
        context |= {
            "first": first,
            "second": second,
            "found": found,
            "added": pages.images_of(found.added),
            "removed": pages.images_of(found.removed),
        }
    return render(request, "releases/compare.html", context)


def _named(request: HttpRequest, name: str) -> Release:
    try:
        release = find_release(name)
    except ReleaseNotFoundError as error:
        raise Http404(str(error)) from error
    return _release(request, release.name, release.version)


def _back(release: Release) -> HttpResponse:
    return redirect("releases:detail", release.name, release.version)
