"""A person's page: their numbers, and setting their judgements aside after a look at the effect."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from django.contrib import messages
from django.contrib.auth import get_user_model
from django.http import Http404, HttpResponseRedirect
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from croc_annotate.accounts.access import admins_only, person
from croc_annotate.accounts.models import AuditEvent
from croc_annotate.agreement import charts
from croc_annotate.agreement.cells import percent
from croc_annotate.agreement.effects import effect
from croc_annotate.agreement.forms import PeriodForm
from croc_annotate.agreement.models import ConsensusState
from croc_annotate.agreement.pages import base_context, required_campaign
from croc_annotate.agreement.people_pages import named, shown
from croc_annotate.agreement.snapshots import current_statistics, is_small
from croc_annotate.agreement.waiting import waits_for_statistics
from croc_annotate.agreement.work_profiles import BIN_MS, BINS
from croc_annotate.annotation.models import Judgement, Purpose
from croc_annotate.annotation.services import reinstate_judgements, set_aside_judgements

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from croc_annotate.accounts.models import User
    from croc_annotate.annotation.models import Campaign

Context = dict[str, Any]

_LATEST = 24
_NO_WORK: Context = {"categories": [], "days": [], "pace": [0] * BINS}


@admins_only
@waits_for_statistics
def annotator(request: HttpRequest, pk: int) -> HttpResponse:
    """Everything known about one person's work in a campaign."""
    campaign = required_campaign(request)
    who = get_object_or_404(get_user_model(), pk=pk)
    snapshot = current_statistics(campaign=campaign, kind="annotators")
    rows = [row for row in snapshot.data["rows"] if row["id"] == who.pk]
    if not rows and not campaign.judgements.filter(annotator=who).exists():
        raise Http404("not an annotator of this campaign")
    # Both were computed together, and just looked at: no need to ask again whether they are old.
    work = current_statistics(campaign=campaign, kind="work", patience=math.inf)
    context = base_context(request, campaign, "annotators") | {
        "snapshot": snapshot,
        "who": who,
        "row": shown(named(rows)[0], campaign) if rows else None,
        "form": PeriodForm(initial={"act": "set_aside"}),
        **_work_of(campaign, who),
        **_profile_of(work.data.get(str(who.pk), _NO_WORK)),
    }
    return render(request, "agreement/annotator.html", context)


def _work_of(campaign: Campaign, who: User) -> Context:
    mine = Judgement.objects.current().filter(campaign=campaign, annotator=who)
    work = mine.filter(purpose=Purpose.WORK)
    acts = AuditEvent.objects.filter(subject_type="user", subject_id=str(who.pk))
    return {
        "aside": mine.filter(set_aside_at__isnull=False).count(),
        "latest": work.select_related("item__candidate", "item__pair").order_by("-id")[:_LATEST],
        "gold": mine.filter(purpose=Purpose.GOLD)
        .select_related("item__candidate", "item__pair")
        .order_by("-id")[:_LATEST],
        "acts": acts.filter(details__campaign=campaign.slug).select_related("actor")[:20],
    }


def _profile_of(profile: Context) -> Context:
    """The table and the charts of a person's counted work."""
    categories = [
        {
            "category": row["category"],
            "n": row["accept"] + row["reject"] + row["unsure"],
            "accepts": percent(row["accept"] / votes) if (votes := _votes(row)) else "",
            "unsure": row["unsure"],
            "seconds": "" if row["mean_ms"] is None else f"{row['mean_ms'] / 1000:.1f} s",
        }
        for row in profile["categories"]
    ]
    return {
        "by_category": categories,
        "days_data": charts.days_chart(profile["days"]),
        "pace_data": charts.pace_chart(profile["pace"], BIN_MS),
    }


def _votes(row: Context) -> int:
    return int(row["accept"]) + int(row["reject"])


@admins_only
def set_aside(request: HttpRequest, pk: int) -> HttpResponse:
    """Show what an act would change; do it when it is confirmed."""
    campaign = required_campaign(request)
    who = get_object_or_404(get_user_model(), pk=pk)
    form = PeriodForm(request.POST or request.GET)
    if not form.is_valid():
        messages.error(
            request, "; ".join(str(e) for errors in form.errors.values() for e in errors)
        )
        return _to_person(campaign, who)
    if request.method == "POST" and "confirm" in request.POST:
        return _carry_out(request, campaign, who, form)
    context = base_context(request, campaign, "annotators") | {
        "who": who,
        "form": form,
        "reinstate": form.cleaned_data["act"] == "reinstate",
    }
    part = "part" in request.GET
    if part or "now" in request.GET or request.method == "POST" or is_small(campaign):
        context |= _effect_context(campaign, who, form)
    # In a large campaign the page is there at once and fetches the effect when it is computed.
    template = "agreement/_effect.html" if part else "agreement/set_aside.html"
    return render(request, template, context)


def _effect_context(campaign: Campaign, who: User, form: PeriodForm) -> Context:
    found = effect(
        campaign=campaign,
        annotator_id=who.pk,
        period=form.period(),
        reinstate=form.cleaned_data["act"] == "reinstate",
    )
    return {"effect": found, "comparison": _comparison(found), "changes": _changes(found)}


def _carry_out(
    request: HttpRequest, campaign: Campaign, who: User, form: PeriodForm
) -> HttpResponse:
    act = set_aside_judgements
    if form.cleaned_data["act"] == "reinstate":
        act = reinstate_judgements
    period = form.period()
    done = act(
        campaign=campaign,
        annotator=who,
        since=period.since,
        until=period.until,
        reason=form.cleaned_data["reason"],
        actor=person(request),
    )
    words = ngettext("%(n)s judgement changed.", "%(n)s judgements changed.", done)
    messages.success(request, words % {"n": f"{done:,}"})
    return _to_person(campaign, who)


def _comparison(found: Context) -> list[Context]:
    """Before and after, side by side."""
    names = {
        "accepted": _("Verified images"),
        "rejected": _("Rejected"),
        "disputed": _("Disputed"),
        "pending": _("Pending"),
        "judgements_left": _("Judgements left"),
        "raw_agreement": _("Raw agreement"),
        "krippendorff_alpha": _("Krippendorff's α"),
        "gwet_ac1": _("Gwet's AC1"),
    }
    return [
        {
            "name": title,
            "before": _number(found["before"][name]),
            "after": _number(found["after"][name]),
        }
        for name, title in names.items()
    ]


def _changes(found: Context) -> list[Context]:
    """How many items change their state, the most first, in the reader's language."""
    return [
        {
            "before": ConsensusState(change["from"]).label,
            "after": ConsensusState(change["to"]).label,
            "items": change["items"],
        }
        for change in sorted(found["changes"], key=lambda change: -change["items"])
    ]


def _number(value: float | None) -> str:
    if value is None:
        return _("undefined")
    return f"{value:,}" if isinstance(value, int) else f"{value:.3f}"


def _to_person(campaign: Campaign, who: User) -> HttpResponse:
    address = reverse("agreement:annotator", args=[who.pk])
    return HttpResponseRedirect(f"{address}?{urlencode({'campaign': campaign.slug})}")
