"""Pages that show statistics: overview, agreement, annotators, rules."""

from __future__ import annotations

import math
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django.db.models import Case, Value, When
from django.http import Http404
from django.shortcuts import get_object_or_404, render
from django.utils import timezone

from croc_annotate.accounts.access import admins_only, person, reviewers_only
from croc_annotate.agreement import charts
from croc_annotate.agreement.cells import (
    has_few_pairs,
    reasons_in,
    report_cells,
    report_table,
    rule_row,
)
from croc_annotate.agreement.people_pages import annotators_context
from croc_annotate.agreement.snapshots import current_statistics
from croc_annotate.agreement.waiting import waits_for_statistics
from croc_annotate.agreement.wording import COUNTS, DIMENSIONS, NUMBERS, part_label
from croc_annotate.annotation.models import Campaign, CampaignState, RuleName
from croc_annotate.candidates.models import Worker
from croc_annotate.prompts.models import Side

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from croc_annotate.agreement.models import StatisticsSnapshot

Context = dict[str, Any]

# Open campaigns first, drafts last, the newest first among equals.
_URGENCY = Case(
    When(state=CampaignState.OPEN, then=Value(0)),
    When(state=CampaignState.DRAFT, then=Value(2)),
    default=Value(1),
)
WORKER_ALIVE_SECONDS = 120


def chosen_campaign(request: HttpRequest) -> Campaign | None:
    """The campaign in the address, else the most urgent one; None where there is none."""
    slug = request.GET.get("campaign", "")
    if slug:
        return get_object_or_404(Campaign, slug=slug)
    return Campaign.objects.order_by(_URGENCY, "-id").first()


def base_context(request: HttpRequest, campaign: Campaign | None, tab: str) -> Context:
    """What every page of the room needs."""
    return {
        "campaign": campaign,
        "campaigns": Campaign.objects.order_by(_URGENCY, "-id").only("slug", "title", "state"),
        "tab": tab,
        "may_administer": person(request).may_administer,
    }


@reviewers_only
@waits_for_statistics
def overview(request: HttpRequest) -> HttpResponse:
    """Where the campaign stands; the inner part alone for the page's own renewal."""
    campaign = chosen_campaign(request)
    context = base_context(request, campaign, "overview")
    if campaign:
        context |= overview_context(current_statistics(campaign=campaign, kind="overview"))
    part = "agreement/_overview.html" if "live" in request.GET else "agreement/overview.html"
    return render(request, part, context)


def overview_context(snapshot: StatisticsSnapshot) -> Context:
    """The overview's numbers, with shares for the small bars."""
    data = snapshot.data
    alive = timezone.now() - timedelta(seconds=WORKER_ALIVE_SECONDS)
    workers = Worker.objects.filter(heartbeat_at__gte=alive, stopped_at__isnull=True)
    rows = [
        {
            **row,
            "decided": row["accepted"] + row["rejected"],
            "share": _share(row),
            "side_label": Side(row["side"]).label,
        }
        for row in data["rows"]
    ]
    totals = data["totals"]
    return {
        "snapshot": snapshot,
        "overview": {**data, "rows": rows},
        "rule_label": RuleName(data["rule"]["rule"]).label,
        "judged_share": totals["judged"] / totals["candidates"] if totals["candidates"] else 0.0,
        "verified_share": totals["accepted"] / totals["candidates"] if totals["candidates"] else 0,
        "days_data": charts.days_chart(data["timeline"]),
        "workers": list(workers.order_by("name")),
        "headline": {cell["name"]: cell for cell in report_cells(data["agreement"])},
        "csv_kinds": ["overview", "consensus"],
    }


def _share(row: Context) -> float:
    decided = row["accepted"] + row["rejected"]
    return row["accepted"] / decided if decided else 0.0


@reviewers_only
@waits_for_statistics
def report(request: HttpRequest) -> HttpResponse:
    """Agreement in all and by part, with plots."""
    campaign = chosen_campaign(request)
    context = base_context(request, campaign, "report")
    if campaign:
        snapshot = current_statistics(campaign=campaign, kind="report")
        # Computed together with the report, whose age was just looked at.
        pairs = current_statistics(campaign=campaign, kind="pairs", patience=math.inf)
        context |= report_context(snapshot, pairs.data)
    return render(request, "agreement/report.html", context)


def report_context(snapshot: StatisticsSnapshot, pairs: Context) -> Context:
    """Tables and charts of the agreement page."""
    data = snapshot.data
    by = {
        name: {label: data["by"][name][label] for label in labels}
        for name, labels in data["order"].items()
    }
    return {
        "snapshot": snapshot,
        "report": data,
        "numbers": NUMBERS.items(),
        "counts": COUNTS.items(),
        "whole": report_cells(data["all"]),
        "tables": [
            {
                "name": name,
                "title": title,
                "rows": report_table(rows),
                "why": reasons_in(rows),
                "few": has_few_pairs(rows),
            }
            for name, title in DIMENSIONS.items()
            if (rows := {part_label(name, part): row for part, row in by.get(name, {}).items()})
        ],
        "interval_data": charts.interval_chart(by.get("category", {})),
        "prevalence_data": charts.prevalence_chart(by.get("category", {})),
        "time_data": charts.time_chart(by.get("week", {})),
        "pair_data": charts.pair_chart(pairs),
        "csv_kinds": ["agreement", "pairs"],
    }


@admins_only
@waits_for_statistics
def annotators(request: HttpRequest) -> HttpResponse:
    """Everybody's work, those to talk to first at the top."""
    campaign = chosen_campaign(request)
    context = base_context(request, campaign, "annotators")
    if campaign:
        snapshot = current_statistics(campaign=campaign, kind="annotators")
        context |= {
            "snapshot": snapshot,
            "csv_kinds": ["annotators"],
            **annotators_context(campaign, snapshot.data),
        }
    return render(request, "agreement/annotators.html", context)


@reviewers_only
@waits_for_statistics
def rules(request: HttpRequest) -> HttpResponse:
    """What each rule would verify, and its estimated label error."""
    campaign = chosen_campaign(request)
    context = base_context(request, campaign, "rules")
    if campaign:
        snapshot = current_statistics(campaign=campaign, kind="rules")
        rows = snapshot.data["rows"]
        categories = sorted({name for row in rows for name in row["by_category"]})
        context |= {
            "snapshot": snapshot,
            "rows": [rule_row(row, categories) for row in rows],
            "csv_kinds": ["rules"],
            "categories": categories,
            "rules_data": charts.rules_chart(rows),
        }
    return render(request, "agreement/rules.html", context)


def required_campaign(request: HttpRequest) -> Campaign:
    """The campaign in the address or the most urgent one; 404 where there is none."""
    campaign = chosen_campaign(request)
    if campaign is None:
        raise Http404("no campaign")
    return campaign
