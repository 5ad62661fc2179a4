"""A person's page: their numbers, and setting their judgements aside after a look at the effect."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from django.contrib import messages
from django.contrib.auth import get_user_model
from django.db.models import Avg, Count, Q
from django.db.models.functions import TruncDate
from django.http import Http404, HttpResponseRedirect
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from croc_annotate.accounts.access import admins_only, person
from croc_annotate.accounts.models import AuditEvent
from croc_annotate.agreement.cells import percent
from croc_annotate.agreement.effects import effect
from croc_annotate.agreement.forms import PeriodForm
from croc_annotate.agreement.pages import base_context, required_campaign
from croc_annotate.agreement.people_pages import named, shown
from croc_annotate.agreement.snapshots import current_statistics, is_small
from croc_annotate.agreement.waiting import waits_for_statistics
from croc_annotate.annotation.models import Judgement, Purpose, Verdict
from croc_annotate.annotation.services import reinstate_judgements, set_aside_judgements

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from croc_annotate.accounts.models import User
    from croc_annotate.annotation.models import Campaign

Context = dict[str, Any]

_LATEST = 24
_BINS_MS = range(0, 20_001, 1_000)


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
    context = base_context(request, campaign, "annotators") | {
        "snapshot": snapshot,
        "who": who,
        "row": shown(named(rows)[0], campaign) if rows else None,
        "form": PeriodForm(initial={"act": "set_aside"}),
        **_work_of(campaign, who),
    }
    return render(request, "agreement/annotator.html", context)


def _work_of(campaign: Campaign, who: User) -> Context:
    mine = Judgement.objects.current().filter(campaign=campaign, annotator=who)
    work = mine.filter(purpose=Purpose.WORK)
    acts = AuditEvent.objects.filter(subject_type="user", subject_id=str(who.pk))
    return {
        "by_category": _by_category(work),
        "days_data": _days_chart(work),
        "pace_data": _pace_chart(work),
        "aside": mine.filter(set_aside_at__isnull=False).count(),
        "latest": work.select_related("item__candidate", "item__pair").order_by("-id")[:_LATEST],
        "gold": mine.filter(purpose=Purpose.GOLD)
        .select_related("item__candidate", "item__pair")
        .order_by("-id")[:_LATEST],
        "acts": acts.filter(details__campaign=campaign.slug).select_related("actor")[:20],
    }


def _by_category(work: Any) -> list[Context]:
    rows = (
        work.order_by()
        .values("item__pair__category_id")
        .annotate(
            n=Count("pk"),
            accepts=Count("pk", filter=Q(verdict=Verdict.ACCEPT)),
            votes=Count("pk", filter=~Q(verdict=Verdict.UNSURE)),
            active=Avg("active_ms"),
        )
        .order_by("item__pair__category_id")
    )
    return [
        {
            "category": row["item__pair__category_id"],
            "n": row["n"],
            "accepts": percent(row["accepts"] / row["votes"]) if row["votes"] else "",
            "unsure": row["n"] - row["votes"],
            "seconds": "" if row["active"] is None else f"{row['active'] / 1000:.1f} s",
        }
        for row in rows
    ]


def _days_chart(work: Any) -> Context:
    days = (
        work.order_by()
        .annotate(day=TruncDate("created_at"))
        .values("day")
        .annotate(**{v: Count("pk", filter=Q(verdict=v)) for v in Verdict.values})
        .order_by("day")
    )
    rows = list(days)
    return {
        "x": {"label": _("Day"), "type": "time"},
        "y": {"label": _("Judgements"), "domain": None, "format": ","},
        "series": [
            {"label": v, "points": [{"x": str(row["day"]), "y": row[v]} for row in rows]}
            for v in Verdict.values
        ],
    }


def _pace_chart(work: Any) -> Context:
    edges = list(pairwise(_BINS_MS))
    counts = work.aggregate(
        **{
            f"b{k}": Count("pk", filter=Q(active_ms__gte=low, active_ms__lt=high))
            for k, (low, high) in enumerate(edges)
        }
    )
    return {
        "x_label": _("Active seconds for one answer (longer ones are left out)"),
        "format": ".1f",
        "bins": [
            {"x0": low / 1000, "x1": high / 1000, "n": counts[f"b{k}"]}
            for k, (low, high) in enumerate(edges)
        ],
        "marks": [],
    }


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
    return {"effect": found, "comparison": _comparison(found)}


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


def _number(value: float | None) -> str:
    if value is None:
        return _("undefined")
    return f"{value:,}" if isinstance(value, int) else f"{value:.3f}"


def _to_person(campaign: Campaign, who: User) -> HttpResponse:
    address = reverse("agreement:annotator", args=[who.pk])
    return HttpResponseRedirect(f"{address}?{urlencode({'campaign': campaign.slug})}")
