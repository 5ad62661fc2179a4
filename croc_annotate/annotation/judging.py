"""What a judging page does: claim, answer, give back, skip, flag. One transaction each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import transaction
from django.utils.translation import gettext as _

from croc_annotate.annotation.answers import record_answers
from croc_annotate.annotation.golds import below_threshold
from croc_annotate.annotation.leases import end_leases, expire_leases, give_back, lock_leases
from croc_annotate.annotation.models import (
    Assignment,
    AssignmentState,
    CampaignState,
    Flag,
    Item,
    Judgement,
    Participation,
    Purpose,
)
from croc_annotate.annotation.people import lock_participation
from croc_annotate.annotation.queue import Claim, ask_held, hand_out, next_items
from croc_annotate.annotation.setting_aside import pause_for_gold
from croc_annotate.annotation.stages import Stage, stage_of
from croc_annotate.annotation.training import finish_quiz_if_done, hand_out_training
from croc_annotate.lib.writebatch import WriteBatch

if TYPE_CHECKING:
    import uuid
    from collections.abc import Sequence
    from datetime import datetime

    from croc_annotate.accounts.models import User
    from croc_annotate.accounts.visitors import Visitor
    from croc_annotate.annotation.answer_shapes import Answer, Result
    from croc_annotate.annotation.queue import Handed

SKIP_REASONS = ("image_broken", "text_unclear", "other")


class AnswerRefusedError(ValueError):
    """An answer could not be stored; the message says why."""


def claim_items(
    *, slug: str, annotator: User | Visitor, count: int, now: datetime
) -> tuple[Claim, Participation]:
    """Hand out up to ``count`` items of the person's stage, or say why there are none.

    States: items, finished, nothing, held (``retry_at``), paused, closed, stage.
    """
    claim, person = _claim_once(slug, annotator, count, now)
    short = claim.state in {"items", "held", "nothing", "finished"} and len(claim.items) < count
    # The queue ran dry: places may be bound by leases that are over.
    if short and expire_leases(now=now, campaign_id=person.campaign_id):
        return _claim_once(slug, annotator, count, now)
    return claim, person


@transaction.atomic
def _claim_once(
    slug: str, annotator: User | Visitor, count: int, now: datetime
) -> tuple[Claim, Participation]:
    person = lock_participation(slug=slug, annotator=annotator)
    if _missed_too_much_gold(person):
        pause_for_gold(participation=person, now=now)
    return _claim(person, count, now), person


def _claim(person: Participation, count: int, now: datetime) -> Claim:
    if person.campaign.state != CampaignState.OPEN:
        paused = person.campaign.state == CampaignState.PAUSED
        return Claim("paused" if paused else "closed")
    stage = stage_of(person, now)
    if stage is Stage.PAUSED:
        return Claim("paused")
    if stage in {Stage.PRACTICE, Stage.QUIZ}:
        return hand_out_training(
            participation=person, count=count, quiz=stage is Stage.QUIZ, now=now
        )
    if stage is not Stage.WORK:
        return Claim("stage")
    return hand_out(participation=person, count=count, now=now)


def store_answers(
    *, slug: str, annotator: User | Visitor, answers: Sequence[Answer], now: datetime
) -> tuple[list[Result], Participation]:
    """Store a batch of one person's answers and act on what they show (gold, quiz)."""
    results, _given, person = store_and_claim(
        slug=slug, annotator=annotator, answers=answers, want=0, now=now
    )
    return results, person


def store_and_claim(
    *, slug: str, annotator: User | Visitor, answers: Sequence[Answer], want: int, now: datetime
) -> tuple[list[Result], list[Handed], Participation]:
    """`store_answers`, and in the same transaction up to ``want`` items of work, held ones first.

    Without items nothing is said about why: `claim_items` tells that.
    """
    with transaction.atomic():
        person = lock_participation(slug=slug, annotator=annotator)
        batch = WriteBatch()
        along = ask_held(person, want) if want and _may_work(person, now) else None
        recorded = record_answers(
            participation=person, answers=answers, now=now, batch=batch, along=along
        )
        handed: list[Handed] = []
        if along is not None and _may_work(person, now):
            handed = next_items(
                participation=person,
                count=want,
                held=along.answer() if recorded.along is None else recorded.along,
                ended=recorded.ended,
                batch=batch,
                now=now,
            )
        batch.run()
        if stage_of(person, now) is Stage.QUIZ:
            finish_quiz_if_done(participation=person, now=now)
    if _missed_too_much_gold(person):
        # In a transaction of its own: it locks many items, and this one held some already.
        with transaction.atomic():
            person = lock_participation(slug=slug, annotator=annotator)
            pause_for_gold(participation=person, now=now)
    return recorded.results, handed, person


def _may_work(person: Participation, now: datetime) -> bool:
    """True if items of work may be handed out, by what is known of the person so far."""
    return (
        person.campaign.state == CampaignState.OPEN
        and stage_of(person, now) is Stage.WORK
        and not _missed_too_much_gold(person)
    )


def _missed_too_much_gold(person: Participation) -> bool:
    campaign = person.campaign
    return person.paused_at is None and below_threshold(
        seen=person.gold_seen - person.gold_base,
        correct=person.gold_correct - person.gold_base_correct,
        minimum=campaign.gold_minimum,
        threshold=campaign.gold_threshold,
    )


def release_items(
    *, slug: str, annotator: User, assignments: Sequence[uuid.UUID], now: datetime
) -> int:
    """Take back leases that were never on the screen; they may come again. Returns how many."""
    with transaction.atomic():
        person = lock_participation(slug=slug, annotator=annotator)
        return give_back(person, assignments, now)


def skip_item(
    *,
    slug: str,
    annotator: User,
    assignment: uuid.UUID,
    reason: str,
    remark: str = "",
    now: datetime,
) -> Participation:
    """Free the place of an item that the person cannot judge; it never comes back to them.

    Saying it again changes nothing; an item that was answered stays answered. Raises
    `AnswerRefusedError` for an unknown reason or somebody else's lease.
    """
    if reason not in SKIP_REASONS:
        raise AnswerRefusedError(
            _("Give a reason: %(known)s.") % {"known": ", ".join(SKIP_REASONS)}
        )
    with transaction.atomic():
        person = lock_participation(slug=slug, annotator=annotator)
        leases = lock_leases(person, [assignment])
        if not leases:
            raise AnswerRefusedError(_("This item was not handed to you."))
        lease = leases[0]
        if lease.state in {AssignmentState.ANSWERED, AssignmentState.SKIPPED}:
            return person
        batch = WriteBatch()
        end_leases(leases, state=AssignmentState.SKIPPED, now=now, batch=batch)
        # A lease that had ended already keeps its end, but must not lead to another one.
        batch.update(
            Assignment,
            [lease.pk],
            state=AssignmentState.SKIPPED,
            skip_reason=reason,
            remark=remark[:1000],
        )
        batch.run()
        return person


def flag_item(
    *,
    slug: str,
    annotator: User,
    client_key: uuid.UUID,
    item_key: str,
    kind: str,
    remark: str = "",
    now: datetime,
) -> Flag:
    """Note a problem with an item that the person was handed. The same key again gives the same row."""
    with transaction.atomic():
        person = lock_participation(slug=slug, annotator=annotator)
        known = Flag.objects.filter(client_key=client_key, annotator=annotator).first()
        if known is not None:
            return known
        handed = Assignment.objects.filter(
            item__key=item_key, annotator=annotator, campaign=person.campaign
        ).first()
        if handed is None:
            raise AnswerRefusedError(_("This item was not handed to you."))
        return Flag.objects.create(
            item_id=handed.item_id,
            annotator=annotator,
            kind=kind,
            remark=remark[:1000],
            client_key=client_key,
            created_at=now,
        )


def record_one(*, item: Item, annotator: User, answer: Answer, now: datetime) -> Judgement:
    """Store one answer that came by another way than the page: a lease is made for it if it has none.

    Without a free place the answer is kept as surplus. Raises `AnswerRefusedError`.
    """
    with transaction.atomic():
        person = lock_participation(slug=item.campaign.slug, annotator=annotator)
        _lease_directly(person, item, now)
        batch = WriteBatch()
        recorded = record_answers(participation=person, answers=[answer], now=now, batch=batch)
        batch.run()
        [result] = recorded.results
        if result.status == "refused":
            raise AnswerRefusedError(result.message)
    return Judgement.objects.get(client_key=answer.client_key)


def _lease_directly(person: Participation, item: Item, now: datetime) -> None:
    mine = Assignment.objects.filter(item=item, annotator_id=person.annotator_id)
    if mine.exists():
        return
    fresh = Item.objects.select_for_update(no_key=True).get(pk=item.pk)
    free = fresh.purpose != Purpose.WORK or fresh.needed > fresh.leased
    if fresh.purpose == Purpose.WORK and free:
        Item.objects.filter(pk=item.pk).update(leased=fresh.leased + 1)
    Assignment.objects.create(
        item=item,
        annotator_id=person.annotator_id,
        campaign_id=person.campaign_id,
        purpose=fresh.purpose,
        state=AssignmentState.LEASED if free else AssignmentState.EXPIRED,
        created_at=now,
        expires_at=now,
    )
