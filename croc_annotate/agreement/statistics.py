"""Statistics of a campaign: computed together, kept with their time, renewed when they are old.

Pages show the newest snapshot and say "as of".  A snapshot is old when rows changed
that it was computed from; renewing it is work for the background where it takes long.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.core.cache import cache
from django.db import transaction
from django.db.models import Max, Q
from django.utils import timezone

from croc_annotate.accounts.models import AuditEvent
from croc_annotate.agreement import modelling, reading
from croc_annotate.agreement.annotators import annotator_rows
from croc_annotate.agreement.consensus import Rule, RuleRefusedError
from croc_annotate.agreement.consensus_rows import store_consensus
from croc_annotate.agreement.models import Adjudication, StatisticsSnapshot
from croc_annotate.agreement.pair_matrix import pair_matrix
from croc_annotate.agreement.rules_report import compare_rules
from croc_annotate.agreement.selectors import rule_of
from croc_annotate.agreement.services import report_of
from croc_annotate.agreement.standing import overview_of
from croc_annotate.agreement.work_profiles import work_profiles
from croc_annotate.annotation.models import Item, Judgement

if TYPE_CHECKING:
    from datetime import datetime

    import numpy as np
    from numpy.typing import NDArray

    from croc_annotate.agreement.modelling import ConsensusTable, Model
    from croc_annotate.agreement.reading import CampaignData
    from croc_annotate.annotation.models import Campaign

KINDS = ("overview", "report", "pairs", "annotators", "work", "rules")
REPORT_BY = ("category", "side", "generator", "week", "guideline_version", "mode", "text_role")
KEEP = 5
# Raise it when the numbers change their shape: older snapshots are then computed anew.
FORMAT = 3
_LOCK_SECONDS = 600
_AUDITED = (
    "judgements.set_aside",
    "judgements.reinstated",
    "items.more_judgements",
    "items.closed",
    "review.pair_defective",
    "review.withdrawn",
)


@dataclass(frozen=True, slots=True)
class Everything:
    """What one pass over a campaign gives."""

    data: CampaignData
    gold: reading.GoldVotes
    model: Model
    adjudicated: NDArray[np.int8]
    table: ConsensusTable
    refused: str  # why the campaign's own rule could not be used; empty if it could


def read_everything(campaign: Campaign) -> Everything:
    """Read the judgements, fit the model and decide; majority stands in for a refused rule."""
    data = reading.campaign_data(campaign)
    gold = reading.gold_votes(campaign)
    model = modelling.fit_campaign(data, gold)
    adjudicated = reading.adjudications_in_force(campaign, data.items)
    rule, refused = rule_of(campaign), ""
    try:
        table = modelling.consensus_table(data, rule, model, adjudicated)
    except RuleRefusedError as why:
        refused = str(why)
        table = modelling.consensus_table(data, Rule("majority"), model, adjudicated)
    return Everything(data, gold, model, adjudicated, table, refused)


def compute_statistics(*, campaign: Campaign, now: datetime | None = None) -> dict[str, Any]:
    """Compute all statistics of ``campaign`` and keep them; returns them by kind."""
    started, began, now = time.perf_counter(), timezone.now(), now or timezone.now()
    parameters = fingerprint(campaign)
    everything = read_everything(campaign)
    found = {
        "overview": overview_of(
            everything.data, everything.table, refused=everything.refused, now=now
        ),
        "report": report_of(everything.data, by=REPORT_BY),
        "pairs": pair_matrix(everything.data, everything.model),
        "annotators": {
            "rows": annotator_rows(everything.data, everything.gold, everything.model),
            "model": everything.model.as_dict(),
        },
        "work": work_profiles(everything.data),
        "rules": {
            "rows": compare_rules(
                everything.data, everything.gold, everything.model, everything.adjudicated
            )
        },
    }
    with transaction.atomic():
        store_consensus(campaign, everything.table, begun=began)
        took = time.perf_counter() - started
        StatisticsSnapshot.objects.bulk_create(
            StatisticsSnapshot(
                campaign=campaign, kind=kind, parameters=parameters, data=data, as_of=now,
                seconds=took,
            )
            for kind, data in found.items()
        )  # fmt: skip
        _forget_old(campaign)
    return found


def fingerprint(campaign: Campaign) -> dict[str, Any]:
    """What changes whenever the statistics may: newest rows and the campaign's rules."""
    adjudications = Adjudication.objects.filter(campaign=campaign)
    return {
        "format": FORMAT,
        "judgement": Judgement.objects.filter(campaign=campaign).aggregate(n=Max("id"))["n"],
        "item": Item.objects.filter(campaign=campaign).aggregate(n=Max("id"))["n"],
        "adjudication": adjudications.aggregate(n=Max("id"))["n"],
        "confirmed": adjudications.filter(confirmed_by__isnull=False).count(),
        "acts": AuditEvent.objects.filter(action__in=_AUDITED).aggregate(n=Max("id"))["n"],
        "rule": [
            campaign.rule, campaign.posterior_threshold, campaign.redundancy,
            campaign.min_judgements, campaign.max_judgements,
        ],
    }  # fmt: skip


def newest(campaign: Campaign, kind: str) -> StatisticsSnapshot | None:
    """The newest snapshot of one kind, in the shape that this version of the code reads."""
    return (
        StatisticsSnapshot.objects.filter(campaign=campaign, kind=kind, parameters__format=FORMAT)
        .order_by("-as_of")
        .first()
    )


def renew(*, campaign: Campaign) -> bool:
    """Compute old statistics unless somebody else is at it; tells whether it was done."""
    found = newest(campaign, KINDS[0])
    if found is not None and found.parameters == fingerprint(campaign):
        return False  # a page asked twice before a worker came to it
    key = f"agreement-renew-{campaign.pk}"
    if not cache.add(key, 1, _LOCK_SECONDS):
        return False
    try:
        compute_statistics(campaign=campaign)
    finally:
        cache.delete(key)
    return True


def _forget_old(campaign: Campaign) -> None:
    """Keep the newest few of each kind."""
    for kind in KINDS:
        rows = StatisticsSnapshot.objects.filter(campaign=campaign, kind=kind)
        keep = list(rows.order_by("-as_of", "-id").values_list("pk", flat=True)[:KEEP])
        rows.filter(~Q(pk__in=keep)).delete()
