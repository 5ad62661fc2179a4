"""What setting judgements aside (or bringing them back) would change, before it is done."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from django.db.models import Q

from croc_annotate.agreement import consensus, modelling, reading, reporting
from croc_annotate.agreement import tables as t
from croc_annotate.agreement.consensus import Rule, RuleRefusedError
from croc_annotate.agreement.selectors import rule_of
from croc_annotate.annotation.models import Judgement, Purpose

if TYPE_CHECKING:
    from datetime import datetime

    from croc_annotate.agreement.reading import CampaignData
    from croc_annotate.annotation.models import Campaign

Row = dict[str, Any]

_AGREEMENT = ("raw_agreement", "krippendorff_alpha", "gwet_ac1")


@dataclass(frozen=True, slots=True)
class Period:
    """From ``since`` (with it) until ``until`` (without it); None leaves an end open."""

    since: datetime | None = None
    until: datetime | None = None

    def condition(self) -> Q:
        """The judgements that were stored in the period."""
        found = Q()
        if self.since is not None:
            found &= Q(created_at__gte=self.since)
        if self.until is not None:
            found &= Q(created_at__lt=self.until)
        return found


def effect(
    *, campaign: Campaign, annotator_id: int, period: Period, reinstate: bool = False
) -> Row:
    """Compare the campaign with and without a person's judgements of a period."""
    hidden = Judgement.objects.current().filter(
        period.condition(),
        campaign=campaign,
        annotator_id=annotator_id,
        purpose=Purpose.WORK,
        surplus=False,
        set_aside_at__isnull=not reinstate,
    )
    gold = reading.gold_votes(campaign)
    now = reading.campaign_data(campaign)
    if reinstate:
        then = reading.campaign_data(campaign, also=hidden)
    else:
        then = _without(now, set(hidden.values_list("pk", flat=True)))
    before, after = _state(now, gold), _state(then, gold)
    return {
        "judgements": hidden.count(),
        "items": hidden.values("item_id").distinct().count(),
        "before": before[1],
        "after": after[1],
        "changes": _changes(before[0], after[0]),
    }


def _without(data: CampaignData, gone: set[int]) -> CampaignData:
    keep = ~np.isin(data.judgement_id, np.fromiter(gone, np.int64, len(gone)))
    # Items stay closed by review only: without the answers, others are asked again.
    return reading.with_judgements(data, keep)


def _state(data: CampaignData, gold: reading.GoldVotes) -> tuple[Any, Row]:
    model = modelling.fit_campaign(data, gold)
    adjudicated = reading.adjudications_in_force(data.campaign, data.items)
    try:
        table = modelling.consensus_table(data, rule_of(data.campaign), model, adjudicated)
    except RuleRefusedError:
        table = modelling.consensus_table(data, Rule("majority"), model, adjudicated)
    own = data.items.role == t.OWN
    counts = np.bincount(table.code[own], minlength=len(consensus.STATES))
    row = reporting.report(data.table.of_role(t.OWN), first_two_only=data.policy.adaptive, draws=0)[
        "all"
    ]
    left = modelling.judgements_left(data, modelling.votes_of(data))
    return table.code, {
        **{name: int(counts[code]) for code, name in enumerate(consensus.STATES)},
        **{name: row[name] for name in _AGREEMENT},
        "judgements_left": int(left.sum()),
    }


def _changes(before: Any, after: Any) -> list[Row]:
    """How many items go from one state to another."""
    code = before.astype(int) * len(consensus.STATES) + after
    found = []
    for value, n in zip(*np.unique(code, return_counts=True), strict=True):
        old, new = divmod(int(value), len(consensus.STATES))
        if old != new:
            found.append(
                {"from": consensus.STATES[old], "to": consensus.STATES[new], "items": int(n)}
            )
    return found
