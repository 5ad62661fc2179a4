"""Handing out items: claims, leases, returns and expiry.

Open items stand in a partial index in the campaign's seeded order. A person reads it from
their own cursor on, so that a claim looks at a few dozen rows whatever the number of
candidates. Rows that another claim holds at that moment are stepped over (SKIP LOCKED); SQLite
has one writer at a time and needs no such step. docs/decisions has the reasons.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from django.db.models import OuterRef, Q, Subquery

from croc_annotate.annotation.batch import Plus, WriteBatch
from croc_annotate.annotation.choosing import (
    ITEM_COLUMNS,
    SLACK,
    Draft,
    display,
    fill,
    is_grid,
    not_touched,
    root,
    window_of,
)
from croc_annotate.annotation.golds import next_gold
from croc_annotate.annotation.models import (
    Assignment,
    AssignmentState,
    Item,
    Purpose,
)
from croc_annotate.annotation.prepared import prepared, whole
from croc_annotate.annotation.spacing import Seen
from croc_annotate.annotation.stages import quota
from croc_annotate.lib.hashing import stable_unit

if TYPE_CHECKING:
    import uuid
    from collections.abc import Sequence
    from datetime import datetime

    from django.db.models import QuerySet

    from croc_annotate.annotation.models import Participation

MOST_HELD = 60
BUSY_RETRY = timedelta(seconds=2)
_LEASE_COLUMNS = ("expires_at", "created_at", *(f"item__{name}" for name in ITEM_COLUMNS))


@dataclass(slots=True)
class Handed:
    """One item in a person's hands."""

    assignment: uuid.UUID
    item: Item
    expires_at: datetime


@dataclass(slots=True)
class Claim:
    """What a claim brought: items, or why there are none."""

    state: str
    items: list[Handed] = field(default_factory=list)
    retry_at: datetime | None = None


def hand_out(*, participation: Participation, count: int, now: datetime) -> Claim:
    """Up to ``count`` items for the person whose row the caller holds locked.

    First what they hold already (a reload loses nothing), then new ones.
    """
    _plan_gold(participation, participation.handed_out)
    held, gold = _held_and_gold(participation, count, now)
    wanted = _within_quota(participation, held, count)
    batch = WriteBatch()
    if wanted > 0:
        if participation.handed_out + wanted < participation.gold_at:
            gold = None
        draft = Draft(participation, now, window_of(participation), gold=gold)
        fill(draft, wanted)
        held += _lease(draft, batch)
    _renew(held, participation, now, batch)
    batch.run()
    if held:
        return Claim("items", held[:count])
    return _why_nothing(participation, now)


def _held_and_gold(
    person: Participation, count: int, now: datetime
) -> tuple[list[Handed], Item | None]:
    """What the person holds, and the next gold if one may come in this claim: one query."""
    mine = Assignment.objects.filter(
        annotator_id=person.annotator_id,
        campaign_id=person.campaign_id,
        state=AssignmentState.LEASED,
    ).exclude(purpose=Purpose.TRAINING)
    if not person.gold_at or person.handed_out + count < person.gold_at:
        return _held(person), None
    wanted = mine.values("item_id").union(_next_gold_item(person).values("id"), all=True)
    lease = mine.filter(item=OuterRef("pk"))
    rows = display(Item.objects.filter(pk__in=wanted)).annotate(
        lease=Subquery(lease.values("id")[:1]),
        lease_at=Subquery(lease.values("created_at")[:1]),
        lease_end=Subquery(lease.values("expires_at")[:1]),
    )
    held, gold = [], None
    for row in sorted(rows, key=lambda row: (row.lease_at or now, row.position)):
        if row.lease is None:
            gold = row
        else:
            held.append(Handed(row.lease, row, row.lease_end))
    return held[:MOST_HELD], gold


def _held(person: Participation) -> list[Handed]:
    rows = prepared(
        "held",
        2,
        lambda: (
            Assignment.objects.filter(
                annotator_id=whole(0), campaign_id=whole(1), state=AssignmentState.LEASED
            )
            .exclude(purpose=Purpose.TRAINING)
            .select_related("item__candidate", "item__pair__category")
            .only(*_LEASE_COLUMNS)
            .order_by("created_at")[:MOST_HELD]
        ),
    )(person.annotator_id, person.campaign_id)
    return [Handed(row.pk, row.item, row.expires_at) for row in rows]


def _plan_gold(person: Participation, after: int) -> None:
    """Set when the next gold is due, if it is not set yet (or the rate was zero until now)."""
    campaign = person.campaign
    if campaign.gold_rate <= 0:
        person.gold_at = 0
    elif not person.gold_at:
        person.gold_at = next_gold(
            after=after,
            rate=campaign.gold_rate,
            spacing=campaign.gold_spacing,
            seed=campaign.seed,
            person=person.annotator_id,
        )


def _next_gold_item(person: Participation) -> QuerySet[Item]:
    """The first gold item, in the campaign's order, that this person was not asked yet."""
    golds = Item.objects.filter(campaign_id=person.campaign_id, purpose=Purpose.GOLD)
    if person.categories:
        golds = golds.filter(pair__category_id__in=person.categories)
    first = not_touched(golds, person).order_by("position").values("id")[:1]
    return Item.objects.filter(pk=Subquery(first))


def _within_quota(person: Participation, held: Sequence[Handed], count: int) -> int:
    wanted = min(count, MOST_HELD) - len(held)
    most = quota(person)
    if most is not None:
        wanted = min(wanted, most - person.answered - len(held))
    return wanted


# --- leasing ---------------------------------------------------------------------------------


def _lease(draft: Draft, batch: WriteBatch) -> list[Handed]:
    """Rows for what was chosen, and the person's new place in the queue."""
    person, campaign, now = draft.person, draft.person.campaign, draft.now
    if is_grid(draft) and draft.chosen:
        first = draft.chosen[0]
        roots = tuple(root(item) for item in draft.chosen)
        draft.window.push(Seen(first.position, first.pair_id, first.group, draft.second, roots))
    work = [item for item in draft.chosen if item.needed > item.leased]
    extra = [item for item in draft.chosen if item.needed <= item.leased]
    items = _with_gold(draft)
    if not items:
        return []
    end = now + timedelta(seconds=campaign.lease_seconds)
    purposes = {item.pk: Purpose.REFERENCE for item in extra}
    leases = [
        Assignment(
            item=item,
            annotator_id=person.annotator_id,
            campaign_id=campaign.pk,
            purpose=purposes.get(item.pk, item.purpose),
            # In one claim the order of the rows is the order of the screens.
            created_at=now + timedelta(microseconds=index),
            expires_at=end,
        )
        for index, item in enumerate(items)
    ]
    if work:
        batch.update(Item, [i.pk for i in work], leased=Plus(1))
    if extra:
        batch.update(Item, [i.pk for i in extra], reference_open=False)
    batch.insert(leases)
    _move_on(draft, batch)
    return [Handed(lease.pk, lease.item, end) for lease in leases]


def _with_gold(draft: Draft) -> list[Item]:
    """The chosen items, the gold one among them at its seeded place."""
    items, gold, person = list(draft.chosen), draft.gold, draft.person
    if gold is None:
        return items
    if is_grid(draft):
        place = int(stable_unit(person.campaign.seed, "grid", gold.pk, person.pk) * len(items))
    else:
        place = min(max(person.gold_at - person.handed_out - 1, 0), len(items))
    items.insert(place, gold)
    return items


def _move_on(draft: Draft, batch: WriteBatch) -> None:
    person = draft.person
    person.handed_out = draft.handed_out
    person.recent = [seen.as_row() for seen in draft.window.seen]
    if not person.exhausted_at:
        person.cursor = draft.window.cursor(person.cursor)
    if draft.gold is not None:
        given_at, person.gold_at = person.gold_at, 0
        _plan_gold(person, given_at)
    person.started_at = person.started_at or draft.now
    batch.update(
        type(person),
        [person.pk],
        handed_out=person.handed_out,
        recent=person.recent,
        cursor=person.cursor,
        gold_at=person.gold_at,
        started_at=person.started_at,
    )


def _renew(held: list[Handed], person: Participation, now: datetime, batch: WriteBatch) -> None:
    """A person who is still here keeps what they hold: leases in their second half start anew."""
    length = timedelta(seconds=person.campaign.lease_seconds)
    late = [handed for handed in held if handed.expires_at - now < length / 2]
    if late:
        for handed in late:
            handed.expires_at = now + length
        keys = [handed.assignment for handed in late]
        batch.update(Assignment, keys, expires_at=now + length)


# --- when there is nothing -------------------------------------------------------------------


def _why_nothing(person: Participation, now: datetime) -> Claim:
    """Finished, nothing for this person, or held by others until a time."""
    items = Item.objects.filter(campaign_id=person.campaign_id)
    pending = Assignment.objects.filter(
        Q(purpose=Purpose.WORK, item__closed_at__isnull=True) | Q(purpose=Purpose.REFERENCE),
        campaign_id=person.campaign_id,
        state=AssignmentState.LEASED,
    )
    if not (items.incomplete().exists() or items.waiting().exists() or pending.exists()):
        return Claim("finished")
    if person.categories:
        items = items.filter(pair__category_id__in=person.categories)
    waiting = items.waiting()
    if person.exhausted_at:
        waiting = waiting.filter(opened_at__gte=person.exhausted_at - SLACK)
    if not_touched(waiting, person).exists():
        return Claim("held", retry_at=_moment_later(person, now))
    type(person).objects.filter(pk=person.pk).update(exhausted_at=now)
    # From the few live leases, not from the many items.
    ends = pending.filter(item__in=not_touched(items, person)).order_by("expires_at")
    end = ends.values_list("expires_at", flat=True).first()
    if end is not None:
        return Claim("held", retry_at=max(end, now + BUSY_RETRY))
    return Claim("nothing")


def nothing_is_left(*, participation: Participation) -> bool:
    """True if this person holds nothing, and neither now nor when leases end anything can come."""
    person = participation
    items = Item.objects.filter(campaign_id=person.campaign_id, purpose=Purpose.WORK)
    if person.categories:
        items = items.filter(pair__category_id__in=person.categories)
    held = Assignment.objects.filter(
        annotator_id=person.annotator_id,
        campaign_id=person.campaign_id,
        state=AssignmentState.LEASED,
    )
    return not held.exists() and not not_touched(items.incomplete(), person).exists()


def _moment_later(person: Participation, now: datetime) -> datetime:
    """Open items, but locked for a moment by another claim, or too near to the last ones."""
    free_at = window_of(person).free_at(int(now.timestamp()))
    wait = timedelta(seconds=free_at - int(now.timestamp())) if free_at else BUSY_RETRY
    return now + max(wait, BUSY_RETRY)
