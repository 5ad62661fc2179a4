"""Practice and quiz: which items a person is asked, and what the quiz says."""

from __future__ import annotations

from collections import defaultdict
from datetime import timedelta
from typing import TYPE_CHECKING

from croc_annotate.annotation.models import (
    Assignment,
    AssignmentState,
    Item,
    Judgement,
    Participation,
    Purpose,
    Qualification,
)
from croc_annotate.annotation.queue import Claim, Handed
from croc_annotate.lib.hashing import stable_unit

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from django.db.models import QuerySet


def hand_out_training(
    *, participation: Participation, count: int, quiz: bool, now: datetime
) -> Claim:
    """The next practice or quiz items of a person. They look like any other item.

    A campaign that asks for more than there are is content with what there is.
    """
    asked = _asked(participation, quiz=quiz)
    done = set(_answers(participation, asked).values_list("item_id", flat=True))
    left = [item for item in asked if item.pk not in done]
    if not left:
        _finish(participation, quiz=quiz, now=now)
        return Claim("stage")
    leases = _leases(participation, left[:count], now)
    return Claim("items", [Handed(x.pk, x.item, x.expires_at) for x in leases])


def _asked(person: Participation, *, quiz: bool) -> list[Item]:
    """What this person is asked, in order: chosen by the seed, the same after every reload."""
    campaign = person.campaign
    pool = (
        campaign.items.filter(purpose=Purpose.TRAINING, is_quiz=quiz)
        .select_related("candidate", "pair__category")
        .order_by("position")
    )
    drawn = sorted(
        pool, key=lambda item: stable_unit(campaign.seed, "training", person.annotator_id, item.pk)
    )
    if not quiz:
        return drawn[: campaign.practice_items]
    by_category: dict[str, list[Item]] = defaultdict(list)
    for item in drawn:
        by_category[item.pair.category_id].append(item)
    chosen = [item for items in by_category.values() for item in items[: campaign.quiz_items]]
    return sorted(chosen, key=drawn.index)


def _answers(person: Participation, asked: Sequence[Item]) -> QuerySet[Judgement]:
    return Judgement.objects.current().filter(
        item_id__in=[item.pk for item in asked], annotator_id=person.annotator_id
    )


def _leases(person: Participation, items: Sequence[Item], now: datetime) -> list[Assignment]:
    """A lease for each, the one that there is or a new one. Training items have no quota."""
    end = now + timedelta(seconds=person.campaign.lease_seconds)
    held = {
        lease.item_id: lease
        for lease in Assignment.objects.filter(
            item__in=[item.pk for item in items],
            annotator_id=person.annotator_id,
            state=AssignmentState.LEASED,
        )
    }
    new = [
        Assignment(
            item=item,
            annotator_id=person.annotator_id,
            campaign_id=person.campaign_id,
            purpose=Purpose.TRAINING,
            created_at=now,
            expires_at=end,
        )
        for item in items
        if item.pk not in held
    ]
    Assignment.objects.bulk_create(new)
    leases = held | {lease.item_id: lease for lease in new}
    for item in items:
        leases[item.pk].item = item
    return [leases[item.pk] for item in items]


def finish_quiz_if_done(*, participation: Participation, now: datetime) -> bool:
    """Store the quiz's result once all its items are answered; True if it did."""
    asked = _asked(participation, quiz=True)
    if _answers(participation, asked).count() < len(asked):
        return False
    _finish(participation, quiz=True, now=now)
    return True


def _finish(person: Participation, *, quiz: bool, now: datetime) -> None:
    if not quiz:
        person.practised = person.campaign.practice_items
        Participation.objects.filter(pk=person.pk).update(practised=person.practised)
        return
    results = _results(person, now)
    Qualification.objects.bulk_create(results, ignore_conflicts=True)
    passed = [result.category for result in results if result.passed]
    failed = [result.category for result in results if not result.passed]
    if failed and not passed:
        person.failed_at = now
    else:
        person.qualified_at = now
        person.categories = _open_categories(person, failed) if failed else []
    Participation.objects.filter(pk=person.pk).update(
        failed_at=person.failed_at,
        qualified_at=person.qualified_at,
        categories=person.categories,
    )


def _results(person: Participation, now: datetime) -> list[Qualification]:
    asked = _asked(person, quiz=True)
    verdicts = dict(_answers(person, asked).values_list("item_id", "verdict"))
    by_category: dict[str, list[bool]] = defaultdict(list)
    for item in asked:
        by_category[item.pair.category_id].append(verdicts.get(item.pk) == item.known_verdict)
    mark = person.campaign.quiz_pass_mark
    return [
        Qualification(
            campaign=person.campaign,
            annotator_id=person.annotator_id,
            category=category,
            asked=len(right),
            correct=sum(right),
            passed=sum(right) >= mark * len(right) - 1e-9,
            at=now,
        )
        for category, right in sorted(by_category.items())
    ]


def _open_categories(person: Participation, failed: Sequence[str]) -> list[str]:
    """The campaign's categories without those that were failed. Untested ones stay open."""
    every = person.campaign.items.order_by().values_list("pair__category_id", flat=True).distinct()
    return sorted(set(every) - set(failed))
