"""Judgements that do not count for now: set aside, brought back, asked again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import transaction
from django.db.models import F
from django.utils import timezone
from django.utils.translation import gettext_noop

from croc_annotate.accounts.services import record_audit
from croc_annotate.annotation.items import recount_items
from croc_annotate.annotation.leases import release_all
from croc_annotate.annotation.models import (
    Assignment,
    AssignmentState,
    Item,
    Judgement,
    Participation,
    Purpose,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from django.db.models import QuerySet

    from croc_annotate.accounts.models import User
    from croc_annotate.annotation.models import Campaign

GOLD_REASON = gettext_noop("Too many known answers were missed.")


def _of_person(
    campaign: Campaign, annotator: User | int, since: datetime | None, until: datetime | None
) -> QuerySet[Judgement]:
    rows = Judgement.objects.current().filter(
        campaign=campaign,
        annotator=annotator,
        purpose__in=[Purpose.WORK, Purpose.REFERENCE],
    )
    if since is not None:
        rows = rows.filter(created_at__gte=since)
    return rows if until is None else rows.filter(created_at__lt=until)


def set_aside_judgements(
    *,
    campaign: Campaign,
    annotator: User,
    since: datetime | None = None,
    until: datetime | None = None,
    reason: str,
    actor: User | None,
    now: datetime | None = None,
) -> int:
    """Take a person's answers out of the count and ask their items again. Returns how many answers."""
    rows = _of_person(campaign, annotator, since, until).filter(set_aside_at=None)
    with transaction.atomic():
        return _set(rows, campaign, _now(now), actor, annotator, reason, aside=True)


def reinstate_judgements(
    *,
    campaign: Campaign,
    annotator: User,
    since: datetime | None = None,
    until: datetime | None = None,
    reason: str = "",
    actor: User | None,
    now: datetime | None = None,
) -> int:
    """Let answers count again that were set aside; where others filled the place, they are surplus."""
    rows = _of_person(campaign, annotator, since, until).filter(set_aside_at__isnull=False)
    with transaction.atomic():
        return _set(rows, campaign, _now(now), actor, annotator, reason, aside=False)


def _now(now: datetime | None) -> datetime:
    return now or timezone.now()


def _set(
    rows: QuerySet[Judgement],
    campaign: Campaign,
    now: datetime,
    actor: User | None,
    annotator: User,
    reason: str,
    *,
    aside: bool,
) -> int:
    named = list(rows.values_list("item_id", flat=True))
    if not named:
        return 0
    items = Item.objects.filter(pk__in=named)
    # Locked before the answers change, as every answer does: no quota is read in between.
    locked = list(items.order_by("pk").select_for_update(no_key=True))
    # Read under the locks: while we waited for one, a correction may have taken an answer's place.
    pks = list(rows.filter(item_id__in=named).values_list("pk", flat=True))
    if aside:
        Judgement.objects.filter(pk__in=pks).update(set_aside_at=now)
    else:
        full = {i.pk for i in locked if i.needed <= i.leased and i.purpose == Purpose.WORK}
        Judgement.objects.filter(pk__in=pks, item_id__in=full).update(surplus=True)
        Judgement.objects.filter(pk__in=pks).update(set_aside_at=None)
    recount_items(campaign=campaign, items=items, now=now)
    record_audit(
        actor=actor,
        action="judgements.set_aside" if aside else "judgements.reinstated",
        subject_type="user",
        subject_id=annotator.pk,
        details={"campaign": campaign.slug, "judgements": len(pks), "reason": reason},
    )
    return len(pks)


def pause_for_gold(*, participation: Participation, now: datetime) -> int:
    """Pause a person who missed too many known answers; their answers wait for an admin's decision."""
    return pause_person(
        participation=participation, reason=GOLD_REASON, actor=None, set_aside=True, now=now
    )


def pause_person(
    *,
    participation: Participation,
    reason: str,
    actor: User | None,
    set_aside: bool,
    now: datetime,
) -> int:
    """Stop handing items to a person. Returns how many of their answers were set aside."""
    with transaction.atomic():
        participation.paused_at, participation.pause_reason = now, reason
        Participation.objects.filter(pk=participation.pk).update(paused_at=now, pause_reason=reason)
        release_all(participation=participation, now=now)
        _audit(participation, actor, "participation.paused", reason)
        if not set_aside:
            return 0
        return set_aside_judgements(
            campaign=participation.campaign,
            annotator=participation.annotator,
            reason=reason,
            actor=actor,
            now=now,
        )


def resume_person(
    *,
    participation: Participation,
    actor: User,
    reinstate: bool,
    reason: str = "",
    now: datetime,
) -> int:
    """Let a paused person go on; with ``reinstate`` their answers count again. Returns how many.

    Their gold count starts anew: the answers that led to the pause have had their effect.
    """
    with transaction.atomic():
        Participation.objects.filter(pk=participation.pk).update(
            paused_at=None,
            pause_reason="",
            gold_base=F("gold_seen"),
            gold_base_correct=F("gold_correct"),
        )
        _audit(participation, actor, "participation.resumed", reason)
        if not reinstate:
            return 0
        return reinstate_judgements(
            campaign=participation.campaign,
            annotator=participation.annotator,
            reason=reason,
            actor=actor,
            now=now,
        )


def _audit(participation: Participation, actor: User | None, action: str, reason: str) -> None:
    record_audit(
        actor=actor,
        action=action,
        subject_type="user",
        subject_id=participation.annotator_id,
        details={"campaign": participation.campaign.slug, "reason": reason},
    )


def request_more_judgements(
    *,
    item_ids: Sequence[int],
    extra: int,
    actor: User | None,
    reason: str = "",
    now: datetime | None = None,
) -> int:
    """Ask ``extra`` more judgements for items that a reviewer sends back. Returns how many items.

    An empty list is an error: it would look as if something had been asked.
    """
    if not item_ids:
        raise ValueError("No items were named.")
    with transaction.atomic():
        items = Item.objects.filter(pk__in=item_ids, purpose=Purpose.WORK)
        list(items.order_by("pk").select_for_update(no_key=True).values_list("pk"))
        by_campaign = {item.campaign_id: item.campaign for item in items.select_related("campaign")}
        total = items.update(extra=F("extra") + extra, closed_by_review=False)
        for campaign in by_campaign.values():
            recount_items(campaign=campaign, items=items.filter(campaign=campaign), now=_now(now))
        record_audit(
            actor=actor,
            action="items.more_judgements",
            subject_type="item",
            subject_id=item_ids[0],
            details={"items": total, "extra": extra, "reason": reason},
        )
    return total


def requeue_skips(*, item_ids: Sequence[int], actor: User | None, now: datetime) -> int:
    """Let skipped items come again to the people who skipped them. Returns how many skips."""
    if not item_ids:
        raise ValueError("No items were named.")
    with transaction.atomic():
        skips = Assignment.objects.filter(item_id__in=item_ids, state=AssignmentState.SKIPPED)
        total = skips.update(state=AssignmentState.RETURNED)
        Item.objects.filter(pk__in=item_ids).update(opened_at=now)
        record_audit(
            actor=actor,
            action="items.requeued",
            subject_type="item",
            subject_id=item_ids[0],
            details={"items": len(item_ids), "skips": total},
        )
    return total
