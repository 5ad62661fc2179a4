"""Which items a reviewer looks at next, and what is shown of one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.db.models import BigIntegerField, Case, F, Q, Value, When
from django.db.models.functions import Abs, Cast, Coalesce
from django.utils.translation import gettext_lazy as _

from croc_annotate.accounts.models import AuditEvent
from croc_annotate.agreement.models import Adjudication, ConsensusState, ItemConsensus
from croc_annotate.agreement.reviewing import review_policy
from croc_annotate.annotation.models import Flag, Item, Judgement, Purpose
from croc_annotate.candidates.models import Candidate
from croc_annotate.prompts.models import ContrastPair, Side

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from django.db.models import QuerySet

    from croc_annotate.accounts.models import User
    from croc_annotate.agreement.models import ItemConsensusQuerySet
    from croc_annotate.annotation.models import Campaign

KINDS = ("", "disputed", "weak", "second")
# Why people passed over an item, in the words of the page where they chose.
_SKIPPED = {
    "image_broken": _("The image is broken"),
    "text_unclear": _("The text is unclear"),
    "other": _("Something else"),
}
_FILTERS = {
    "generator": "candidate__generator__slug",
    "side": "candidate__side",
    "text_role": "text_role",
}
_PAIR_FILTERS = {"category": "category", "pair": "slug"}


def review_queue(
    campaign: Campaign, reviewer: User, wanted: Mapping[str, str]
) -> ItemConsensusQuerySet:
    """Items to review that wait for this reviewer, the most open ones first."""
    waiting = Adjudication.objects.waiting_for_second().filter(campaign=campaign)
    mine = _items_of(waiting.filter(reviewer=reviewer))
    second = _items_of(waiting.exclude(reviewer=reviewer))
    weak = Q(state=ConsensusState.ACCEPTED, posterior__lt=review_policy(campaign).low_posterior)
    kinds = {
        "disputed": Q(state=ConsensusState.DISPUTED),
        "weak": weak,
        "second": Q(pk__in=second),
    }
    everything = kinds["disputed"] | weak | kinds["second"]
    rows = (
        ItemConsensus.objects.filter(kinds.get(wanted.get("kind", ""), everything))
        .filter(campaign=campaign)
        .exclude(verified_by="adjudicated")
        .exclude(pk__in=mine)
        # Few pairs are out of use: their images are looked up, not the pair of each image.
        .exclude(candidate__in=Candidate.objects.filter(pair__active=False).values("pk"))
    )
    for name, field in _FILTERS.items():
        if wanted.get(name):
            rows = rows.filter(**{field: wanted[name]})
    for name, field in _PAIR_FILTERS.items():
        if wanted.get(name):
            # The pairs first: an index leads from them to their images.
            pairs = ContrastPair.objects.filter(**{field: wanted[name]})
            rows = rows.filter(candidate__pair__in=list(pairs.values_list("pk", flat=True)))
    openness = Abs(Coalesce(F("posterior"), 0.5) - 0.5)
    if not second:  # a Case without a When would be a bare number: a column's position
        return rows.order_by(openness, "item_id")
    first = Case(When(pk__in=second, then=Value(0)), default=Value(1))
    return rows.order_by(first, openness, "item_id")


def _items_of(waiting: QuerySet[Adjudication]) -> list[int]:
    """The items of decisions; a list, as there are few and the queue asks for them often."""
    found = waiting.values_list("campaign_id", "candidate_id", "text_role")
    keys = set(found)
    items = Item.objects.filter(
        campaign_id__in={key[0] for key in keys}, candidate_id__in={key[1] for key in keys}
    )
    rows = items.values_list("pk", "campaign_id", "candidate_id", "text_role")
    return [pk for pk, *key in rows if tuple(key) in keys]


def waiting_for_another(campaign: Campaign, reader: User) -> list[int]:
    """Items that another reviewer decided and a second one has still to decide."""
    waiting = Adjudication.objects.waiting_for_second().filter(campaign=campaign)
    return _items_of(waiting.exclude(reviewer=reader))


def in_order(queue: QuerySet[ItemConsensus], *, after: int | None = None) -> list[int]:
    """The queue's items; those up to ``after`` (put off for now) go to its end."""
    pks = list(queue.values_list("pk", flat=True))
    place = pks.index(after) + 1 if after in pks else 0
    return pks[place:] + pks[:place]


@dataclass(frozen=True, slots=True)
class Sight:
    """What a reviewer sees of an item; ``judgements`` stay hidden until revealed."""

    item: Item
    text: str
    other_text: str
    same_side: list[Candidate]
    other_side: list[Candidate]
    remarks: list[dict[str, Any]]
    first_decision: Adjudication | None
    revealed: bool
    judgements: list[Judgement]
    consensus: ItemConsensus | None


def sight_of(item: Item, reviewer: User) -> Sight:
    """Everything that the review page shows of an item."""
    candidate = item.candidate
    siblings = (
        Candidate.objects.rendered()
        .filter(pair_id=item.pair_id)
        .exclude(pk=candidate.pk)
        .order_by(
            # The other image of the same generator and seed is the natural counterpart.
            Abs(F("generator_id") - candidate.generator_id),
            Abs(F("seed") - candidate.seed),
            "pk",
        )
    )
    is_prompt = candidate.side == Side.PROMPT
    own = Q(side=Side.PROMPT) if is_prompt else ~Q(side=Side.PROMPT)
    seen = revealed(item, reviewer)
    return Sight(
        item=item,
        text=item.text,
        other_text=item.other_text,
        same_side=list(siblings.filter(own)[:3]),
        other_side=list(siblings.filter(~own)[:3]),
        remarks=remarks_on(item),
        first_decision=_first_decision(item, reviewer),
        revealed=seen,
        judgements=judgements_on(item) if seen else [],
        consensus=ItemConsensus.objects.filter(item=item).first(),
    )


def revealed(item: Item, reviewer: User) -> bool:
    """Whether this reviewer has lifted the blind of this item."""
    return bool(revealed_among([item.pk], reviewer))


def revealed_among(items: Iterable[int], reviewer: User) -> set[int]:
    """Those of ``items`` whose blind this reviewer has lifted."""
    found = _reveals(reviewer).filter(subject_id__in=[str(pk) for pk in items])
    return {int(pk) for pk in found.values_list("subject_id", flat=True)}


def revealed_by(reviewer: User) -> QuerySet[AuditEvent, Any]:
    """All items whose blind this reviewer has lifted, in any campaign, for ``pk__in``."""
    # A subquery: an admin may have asked for more of them than a statement takes values.
    return _reveals(reviewer).values(item=Cast("subject_id", BigIntegerField()))


def _reveals(reviewer: User) -> QuerySet[AuditEvent]:
    return AuditEvent.objects.filter(action="review.revealed", subject_type="item", actor=reviewer)


def remarks_on(item: Item) -> list[dict[str, Any]]:
    """What people wrote about an item, without who wrote it or how they judged."""
    written = Judgement.objects.filter(item=item).exclude(remark="", reason="")
    found = [
        {"text": remark or reason, "at": at, "kind": ""}
        for remark, reason, at in written.values_list("remark", "reason", "created_at")
    ]
    flags = Flag.objects.filter(item=item)
    found += [
        {"text": flag.remark, "at": flag.created_at, "kind": flag.get_kind_display()}
        for flag in flags
    ]
    skips = item.assignments.exclude(skip_reason="")
    found += [
        {"text": remark, "at": at, "kind": _SKIPPED.get(reason, reason)}
        for remark, reason, at in skips.values_list("remark", "skip_reason", "created_at")
    ]
    return sorted(found, key=lambda remark: str(remark["at"]))


def judgements_on(item: Item) -> list[Judgement]:
    """All answers about an item with their people: for admins, and after a reveal."""
    rows = Judgement.objects.filter(item=item).exclude(purpose=Purpose.TRAINING)
    return list(rows.select_related("annotator").order_by("created_at"))


def _first_decision(item: Item, reviewer: User) -> Adjudication | None:
    """A decision that waits for a second reviewer: that there is one, not what it says."""
    return (
        Adjudication.objects.waiting_for_second()
        .filter(campaign_id=item.campaign_id, candidate=item.candidate, text_role=item.text_role)
        .exclude(reviewer=reviewer)
        .first()
    )
