"""Handing out items: claims, leases, returns and expiry.

Open items stand in a partial index in the campaign's seeded order. A person reads it from
their own cursor on, so that a claim looks at a few dozen rows whatever the number of
candidates. Rows that another claim holds at that moment are stepped over (SKIP LOCKED); SQLite
has one writer at a time and needs no such step. docs/decisions has the reasons.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django.db.models import Exists, OuterRef, Q, Subquery

from croc_annotate.annotation.choosing import (
    ITEM_COLUMNS,
    SLACK,
    Draft,
    display,
    fill,
    gold_place,
    is_grid,
    not_touched,
    not_touched_by,
    root,
    window_of,
)
from croc_annotate.annotation.golds import next_gold
from croc_annotate.annotation.models import (
    Assignment,
    AssignmentState,
    Item,
    Mode,
    Purpose,
)
from croc_annotate.annotation.spacing import Seen
from croc_annotate.annotation.stages import quota
from croc_annotate.lib.hashing import stable_unit
from croc_annotate.lib.prepared import Question, padded, prepared, text, whole
from croc_annotate.lib.writebatch import Plus, WriteBatch

if TYPE_CHECKING:
    import uuid
    from collections.abc import Collection, Sequence
    from datetime import datetime

    from django.db.models import QuerySet

    from croc_annotate.annotation.models import Participation

MOST_HELD = 60
BUSY_RETRY = timedelta(seconds=2)


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
    batch = WriteBatch()
    rows = ask_held(participation, count).answer()
    held = next_items(participation=participation, count=count, held=rows, batch=batch, now=now)
    batch.run()
    if held:
        return Claim("items", held)
    return _why_nothing(participation, now)


def next_items(
    *,
    participation: Participation,
    count: int,
    held: Sequence[Any],
    ended: Collection[uuid.UUID] = (),
    batch: WriteBatch,
    now: datetime,
) -> list[Handed]:
    """Up to ``count`` items: of ``held`` (the answer to `ask_held`), then new ones.

    Leases that ``batch`` is about to end are passed over. What changes is added to it; the
    caller runs it in the same transaction.
    """
    mine, gold = _held_and_gold(held, now)
    mine = [handed for handed in mine if handed.assignment not in ended]
    wanted = _within_quota(participation, mine, count)
    if wanted > 0:
        if participation.handed_out + wanted < participation.gold_at:
            gold = None
        draft = Draft(participation, now, window_of(participation), gold=gold)
        fill(draft, wanted)
        mine += _lease(draft, batch)
    _renew(mine, participation, now, batch)
    return mine[:count]


def ask_held(person: Participation, count: int) -> Question[Any]:
    """What the person holds, and the next gold if one may come among ``count`` new ones: one query."""
    _plan_gold(person, person.handed_out)
    values = [person.annotator_id, person.campaign_id]
    if not person.gold_at or person.handed_out + count < person.gold_at:
        held = prepared("held", 2, _held)
        return Question(held, values)
    grid = person.campaign.mode == Mode.GRID
    pairs = padded([0, *{seen.pair for seen in window_of(person).last()}])
    categories = padded(person.categories) if person.categories else []
    rows = prepared(
        ("held and gold", grid, len(pairs), len(categories)),
        2 + len(pairs) + len(categories),
        lambda: _with_leases(
            _mine()
            .values("item_id")
            .union(
                _next_gold_item(
                    near=[whole(2 + i) for i in range(len(pairs))],
                    categories=[text(2 + len(pairs) + i) for i in range(len(categories))],
                    grid=grid,
                ),
                all=True,
            )
        ),
    )
    return Question(rows, [*values, *pairs, *categories])


def _mine() -> QuerySet[Assignment]:
    return Assignment.objects.filter(
        annotator_id=whole(0), campaign_id=whole(1), state=AssignmentState.LEASED
    ).exclude(purpose=Purpose.TRAINING)


def _held() -> QuerySet[Assignment]:
    return (
        _mine()
        .select_related("item__candidate", "item__pair__category")
        .only("expires_at", "created_at", *(f"item__{name}" for name in ITEM_COLUMNS))
        .order_by("created_at")[:MOST_HELD]
    )


def _with_leases(wanted: QuerySet[Any, Any]) -> QuerySet[Item]:
    """These items, each with the person's live lease where there is one."""
    lease = _mine().filter(item=OuterRef("pk"))
    return display(Item.objects.filter(pk__in=wanted)).annotate(
        lease=Subquery(lease.values("id")[:1]),
        lease_at=Subquery(lease.values("created_at")[:1]),
        lease_end=Subquery(lease.values("expires_at")[:1]),
    )


def _held_and_gold(rows: Sequence[Any], now: datetime) -> tuple[list[Handed], Item | None]:
    """The items in the person's hands, in the order of the screens, and the one that is not: gold."""
    if rows and isinstance(rows[0], Assignment):
        return [Handed(row.pk, row.item, row.expires_at) for row in rows], None
    held, gold = [], None
    for row in sorted(rows, key=lambda row: (row.lease_at or now, row.position)):
        if row.lease is None:
            gold = row
        else:
            held.append(Handed(row.lease, row, row.lease_end))
    return held[:MOST_HELD], gold


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


def _next_gold_item(*, near: list[int], categories: list[str], grid: bool) -> QuerySet[Any, Any]:
    """The first gold item, in the campaign's order, that may come to this person now.

    Gold keeps its distance from the other side of its pair as all items do. In a grid it comes
    with open images of its own text: alone on its screen it could be told apart.
    """
    golds = Item.objects.filter(campaign_id=whole(1), purpose=Purpose.GOLD).exclude(
        pair_id__in=near
    )
    if categories:
        golds = golds.filter(pair__category_id__in=categories)
    if grid:
        company = Item.objects.waiting().filter(campaign_id=whole(1), group=OuterRef("group"))
        golds = golds.filter(Exists(not_touched_by(company, whole(0))))
    first = not_touched_by(golds, whole(0)).order_by("position").values("id")[:1]
    return Item.objects.filter(pk=Subquery(first)).values("id")


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
        place = gold_place(draft)
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
    batch.update_one(
        person,
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
