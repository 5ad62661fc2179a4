"""What was said and decided about one image, campaign by campaign."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.db.models import Q

from croc_annotate.agreement.models import Adjudication, ItemConsensus
from croc_annotate.agreement.review_queue import (
    judgements_on,
    revealed,
    revealed_among,
    revealed_by,
    waiting_for_another,
)
from croc_annotate.agreement.reviewing import review_policy
from croc_annotate.annotation.models import Item, Purpose

if TYPE_CHECKING:
    from collections.abc import Sequence

    from croc_annotate.accounts.models import User
    from croc_annotate.agreement.models import ItemConsensusQuerySet
    from croc_annotate.annotation.models import Campaign, Judgement
    from croc_annotate.candidates.models import Candidate


@dataclass(frozen=True, slots=True)
class ItemHistory:
    """An image against one text in one campaign; ``hidden`` ones wait for a blind review."""

    item: Item
    consensus: ItemConsensus | None
    hidden: bool
    judgements: list[Judgement]
    decisions: list[Adjudication]


def history_of(candidate: Candidate, reader: User) -> list[ItemHistory]:
    """Every item of ``candidate``, the newest campaign first.

    An item that waits for review shows no verdict to a reader who has not lifted its blind:
    this page must not be a way around the record of reveals.
    """
    items = Item.objects.filter(candidate=candidate).exclude(purpose=Purpose.TRAINING)
    rows = items.select_related("campaign", "pair", "consensus").order_by("-campaign_id", "-pk")
    return [_of_item(item, reader) for item in rows]


def _of_item(item: Item, reader: User) -> ItemHistory:
    consensus: ItemConsensus | None = getattr(item, "consensus", None)
    hidden = _waits(item, consensus) and not revealed(item, reader)
    decisions = Adjudication.objects.filter(
        campaign_id=item.campaign_id, candidate_id=item.candidate_id, text_role=item.text_role
    )
    listed = decisions.select_related("reviewer", "confirmed_by").order_by("created_at")
    return ItemHistory(
        item=item,
        consensus=consensus,
        hidden=hidden,
        judgements=[] if hidden else judgements_on(item),
        decisions=[] if hidden else list(listed),
    )


def hidden_among(rows: Sequence[ItemConsensus], reader: User, campaign: Campaign) -> set[int]:
    """Items of a campaign whose votes ``reader`` must not see yet: they wait for a blind review."""
    low = review_policy(campaign).low_posterior
    waiting = [row.item_id for row in rows if row.waits_for_review(low)]
    return set(waiting) - revealed_among(waiting, reader)


def hidden_of(campaign: Campaign, reader: User) -> set[int]:
    """All items of a campaign whose votes ``reader`` must not see yet, for whole tables."""
    return set(_hidden_rows(campaign, reader).values_list("pk", flat=True))


def without_hidden(
    rows: ItemConsensusQuerySet, reader: User, campaign: Campaign
) -> ItemConsensusQuerySet:
    """Those of ``rows`` whose votes ``reader`` may see: a filter by votes would tell the others'."""
    return rows.exclude(pk__in=_hidden_rows(campaign, reader).values("pk"))


def hidden_decisions(
    campaign: Campaign, reader: User, *, among: Sequence[int] | None = None
) -> set[int]:
    """Others' decisions that ``reader`` must not read yet: the items wait for a blind review.

    A second reviewer sees that there is a first decision, not what it says. With ``among`` only
    these decisions are looked at.
    """
    decisions = Adjudication.objects.filter(campaign=campaign).exclude(reviewer=reader)
    if among is not None:
        decisions = decisions.filter(pk__in=among)
    second = set(waiting_for_another(campaign, reader))
    second -= revealed_among(second, reader)
    decided = Q(candidate__in=decisions.values("candidate"))
    items = Item.objects.filter(
        Q(pk__in=second) | decided & Q(pk__in=_hidden_rows(campaign, reader).values("pk"))
    )
    hidden = set(items.filter(campaign=campaign).values_list("candidate_id", "text_role"))
    rows = decisions.values_list("pk", "candidate_id", "text_role")
    return {pk for pk, *item in rows if tuple(item) in hidden}


def _hidden_rows(campaign: Campaign, reader: User) -> ItemConsensusQuerySet:
    rows = ItemConsensus.objects.filter(campaign=campaign)
    waiting = rows.to_review(review_policy(campaign).low_posterior)
    return waiting.exclude(pk__in=revealed_by(reader))


def _waits(item: Item, consensus: ItemConsensus | None) -> bool:
    low = review_policy(item.campaign).low_posterior
    return consensus is not None and consensus.waits_for_review(low)
