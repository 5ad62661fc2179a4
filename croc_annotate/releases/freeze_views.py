"""Freezing a release from the page: asked for here, done in the background."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.db.models import Q
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_GET, require_http_methods

from croc_annotate.accounts.access import admins_only, person
from croc_annotate.releases.forms import FreezeForm
from croc_annotate.releases.freezes import request_freeze, steps_done
from croc_annotate.releases.models import UNDER_WAY, JobState, ReleaseFreeze
from croc_annotate.releases.services import STEPS, ReleaseRefusedError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django.http import HttpRequest, HttpResponse

# Long enough to be read, short enough not to be a second list of releases.
SHOWN_FOR = timedelta(hours=1)
WORDS = {
    "read": gettext_lazy("reading the judgements"),
    "decide": gettext_lazy("deciding about each image"),
    "members": gettext_lazy("writing the images"),
    "judgements": gettext_lazy("copying the judgements"),
    "agreement": gettext_lazy("computing the agreement"),
    "seal": gettext_lazy("sealing"),
}


@admins_only
@require_http_methods(["GET", "POST"])
def new(request: HttpRequest) -> HttpResponse:
    """Ask for a release."""
    form = FreezeForm(request.POST or None, initial={"campaign": request.GET.get("campaign")})
    if request.method == "POST" and form.is_valid():
        values = {**form.cleaned_data, "rule": form.cleaned_data["rule"] or None}
        try:
            asked = request_freeze(actor=person(request), **values)
        except ReleaseRefusedError as error:
            form.add_error(None, str(error))
        else:
            return _answer(request, asked)
    return render(request, "releases/new.html", {"form": form})


def _answer(request: HttpRequest, asked: ReleaseFreeze) -> HttpResponse:
    """To the release where it is there already (no worker: it was frozen here), else to the list."""
    asked.refresh_from_db()
    if asked.state == JobState.DONE:
        messages.success(request, _("%(release)s is frozen.") % {"release": asked})
        return redirect("releases:detail", asked.name, asked.version)
    if asked.state == JobState.FAILED:
        messages.error(request, asked.error)
    else:
        messages.info(request, _("%(release)s is being frozen.") % {"release": asked})
    return redirect("releases:list")


@admins_only
@require_GET
def freezes(request: HttpRequest) -> HttpResponse:
    """What is being frozen, for the list that waits for it."""
    return render(request, "releases/_freezes.html", {"freezes": list(recent_freezes())})


def recent_freezes() -> Iterator[dict[str, Any]]:
    """Wishes under way, and those that ended a moment ago, newest first."""
    ended = Q(finished_at__gt=timezone.now() - SHOWN_FOR)
    for asked in ReleaseFreeze.objects.filter(Q(state__in=UNDER_WAY) | ended)[:5]:
        done = steps_done(asked)
        yield {
            "asked": asked,
            "done": done,
            "total": len(STEPS),
            "words": WORDS[STEPS[done]] if asked.state == JobState.RUNNING else "",
        }
