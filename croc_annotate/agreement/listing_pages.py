"""Long lists: the wall of a campaign's images, the log, and everything as CSV."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING, Any

from django.core.paginator import Paginator
from django.db.models import Q
from django.http import Http404, StreamingHttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_GET

from croc_annotate.accounts.access import person, reviewers_only
from croc_annotate.accounts.models import AuditEvent
from croc_annotate.agreement.forms import WallForm
from croc_annotate.agreement.history import (
    hidden_among,
    hidden_decisions,
    history_of,
    without_hidden,
)
from croc_annotate.agreement.models import Adjudication
from croc_annotate.agreement.pages import base_context, chosen_campaign, required_campaign
from croc_annotate.agreement.snapshots import current_statistics
from croc_annotate.agreement.spreadsheets import SHEETS
from croc_annotate.agreement.waiting import waits_for_statistics
from croc_annotate.agreement.wall import by_votes, part_of, wall_rows
from croc_annotate.candidates.models import Candidate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django.http import HttpRequest, HttpResponse, HttpResponseBase

    from croc_annotate.accounts.models import User
    from croc_annotate.annotation.models import Campaign

_PAGE = 60
_LOG_PAGE = 100
_LISTED = 10


@require_GET
@reviewers_only
@waits_for_statistics
def images(request: HttpRequest) -> HttpResponse:
    """A campaign's images by consensus, posterior, annotator and hash."""
    campaign = chosen_campaign(request)
    context = base_context(request, campaign, "images")
    if campaign:
        form = WallForm(request.GET)
        wanted = form.cleaned_data if form.is_valid() else {}
        if wanted.get("annotator") and not person(request).may_administer:
            wanted["annotator"] = ""  # reviewers stay blind to who said what
        snapshot = current_statistics(campaign=campaign, kind="overview")
        rows = wall_rows(campaign, wanted)
        if by_votes(wanted):
            rows = without_hidden(rows, person(request), campaign)
        found, more = part_of(rows, after=_number(request, "after"), size=_PAGE)
        context |= {
            "snapshot": snapshot,
            "form": form,
            "rows": found,
            "hidden": hidden_among(found, person(request), campaign),
            "left_out": by_votes(wanted),
            "next_after": more,
        }
    return render(request, "agreement/images.html", context)


@require_GET
@reviewers_only
def history(request: HttpRequest, key: str) -> HttpResponse:
    """The judgements and decisions of one image, as a piece of its page."""
    candidate = get_object_or_404(Candidate, key=key)
    reader = person(request)
    context = {
        "candidate": candidate,
        "histories": history_of(candidate, reader),
        "may_administer": reader.may_administer,
    }
    return render(request, "agreement/_history.html", context)


def _number(request: HttpRequest, name: str) -> int:
    value = request.GET.get(name, "")
    return int(value) if value.isdecimal() and len(value) < 16 else 0


@require_GET
@reviewers_only
def log(request: HttpRequest) -> HttpResponse:
    """Who decided, revealed, sent back or set aside what, and when; decisions can be taken back."""
    campaign = chosen_campaign(request)
    context = base_context(request, campaign, "log")
    if campaign:
        events = (
            AuditEvent.objects.filter(
                Q(action__startswith="review.") | Q(action__startswith="judgements.")
            )
            .filter(Q(details__campaign=campaign.slug) | Q(action="review.pair_defective"))
            .select_related("actor")
            .order_by("-id")
        )
        if not person(request).may_administer:
            events = events.filter(actor=person(request))
        page = Paginator(events, _LOG_PAGE).get_page(request.GET.get("page"))
        context |= {
            "page_obj": page,
            "lines": [(event, _details(event)) for event in page],
            "decisions": _shown_decisions(campaign, person(request)),
        }
    return render(request, "agreement/log.html", context)


def _shown_decisions(campaign: Campaign, reader: User) -> list[tuple[Adjudication, bool]]:
    """The newest decisions, and whether each must not say yet what it is: see ``hidden_decisions``."""
    current = Adjudication.objects.current().filter(campaign=campaign)
    rows = current.select_related("reviewer", "confirmed_by", "candidate__pair").order_by("-id")[
        :50
    ]
    hidden = hidden_decisions(campaign, reader, among=[found.pk for found in rows])
    return [(found, found.pk in hidden) for found in rows]


def _details(event: AuditEvent) -> list[tuple[str, Any]]:
    """What stands beside an event. Not `details.items` in a template: that may be a key."""
    return [
        (key, _short(value))
        for key, value in event.details.items()
        if key != "campaign" and value not in (None, "")
    ]


def _short(value: Any) -> Any:
    """A bulk act names up to thousands of items: a line shows the first ones and their number."""
    if isinstance(value, list) and len(value) > _LISTED:
        return f"{', '.join(map(str, value[:_LISTED]))} … ({len(value):,})"
    return ", ".join(map(str, value)) if isinstance(value, list) else value


@require_GET
@reviewers_only
def download(request: HttpRequest, kind: str) -> HttpResponseBase:
    """One table of the statistics as CSV; people's rows for admins only."""
    sheet = SHEETS.get(kind)
    if sheet is None or (sheet.admins_only and not person(request).may_administer):
        raise Http404(kind)
    campaign = required_campaign(request)
    writer = csv.writer(_Echo())
    lines: Iterator[str] = (writer.writerow(row) for row in sheet.rows(campaign, person(request)))
    reply = StreamingHttpResponse(lines, content_type="text/csv; charset=utf-8")
    reply["Content-Disposition"] = f'attachment; filename="{campaign.slug}-{kind}.csv"'
    return reply


class _Echo:
    """A file that gives back what is written, so that rows can be streamed."""

    def write(self, value: str) -> str:
        """Return the line itself."""
        return value
