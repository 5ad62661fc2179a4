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

from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q, Subquery

from croc_annotate.annotation.batch import WriteBatch
from croc_annotate.annotation.golds import next_gold
from croc_annotate.annotation.models import (
    Assignment,
    AssignmentState,
    Item,
    Judgement,
    Mode,
    Purpose,
)
from croc_annotate.annotation.prepared import padded, prepared, whole
from croc_annotate.annotation.spacing import Seen, Window
from croc_annotate.annotation.stages import quota
from croc_annotate.lib.hashing import stable_unit

if TYPE_CHECKING:
    import uuid
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from django.db.models import QuerySet

    from croc_annotate.annotation.models import Participation

MOST_HELD = 60
# Two clocks and a slow transaction: what was opened this long before is looked at again.
SLACK = timedelta(seconds=60)
BUSY_RETRY = timedelta(seconds=2)
_ITEM_COLUMNS = (
    *("campaign_id", "purpose", "text_role", "key", "group", "position", "needed", "leased"),
    *("candidate__side", "candidate__key", "candidate__width", "candidate__height"),
    *("candidate__near_duplicate_of", "pair__prompt", "pair__contrast"),
    "pair__category__label",
)
_LEASE_COLUMNS = ("expires_at", "created_at", *(f"item__{name}" for name in _ITEM_COLUMNS))


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


@dataclass(slots=True)
class _Draft:
    """What one claim is about to hand out."""

    person: Participation
    now: datetime
    window: Window
    chosen: list[Item] = field(default_factory=list)
    gold: Item | None = None
    handed_out: int = 0

    @property
    def second(self) -> int:
        return int(self.now.timestamp())


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
        draft = _Draft(participation, now, window_of(participation), gold=gold)
        _fill(draft, wanted)
        held += _lease(draft, batch)
    _renew(held, participation, now, batch)
    batch.run()
    if held:
        return Claim("items", held[:count])
    return _why_nothing(participation, now)


def window_of(participation: Participation) -> Window:
    """The person's last screens."""
    return Window(
        participation.campaign.distance, [Seen.from_row(row) for row in participation.recent]
    )


def _display(items: QuerySet[Item]) -> QuerySet[Item]:
    """With what a judging page shows and the queue looks at, and nothing else."""
    return items.select_related("candidate", "pair__category").only(*_ITEM_COLUMNS)


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
    rows = _display(Item.objects.filter(pk__in=wanted)).annotate(
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
    first = _not_touched(golds, person).order_by("position").values("id")[:1]
    return Item.objects.filter(pk=Subquery(first))


def _not_touched(items: QuerySet[Item], person: Participation) -> QuerySet[Item]:
    """Without items that the person holds, answered or skipped."""
    return _not_touched_by(items, person.annotator_id)


def _not_touched_by(items: QuerySet[Item], annotator_id: int) -> QuerySet[Item]:
    leases = Assignment.objects.filter(
        item=OuterRef("pk"),
        annotator_id=annotator_id,
        state__in=[AssignmentState.LEASED, AssignmentState.ANSWERED, AssignmentState.SKIPPED],
    )
    answers = Judgement.objects.current().filter(item=OuterRef("pk"), annotator_id=annotator_id)
    return items.filter(~Exists(leases), ~Exists(answers))


def _within_quota(person: Participation, held: Sequence[Handed], count: int) -> int:
    wanted = min(count, MOST_HELD) - len(held)
    most = quota(person)
    if most is not None:
        wanted = min(wanted, most - person.answered - len(held))
    return wanted


# --- choosing --------------------------------------------------------------------------------


def _fill(draft: _Draft, wanted: int) -> None:
    """Choose up to ``wanted`` items, the gold that is due among them."""
    person, grid = draft.person, draft.person.campaign.mode == Mode.GRID
    if draft.gold is not None and not grid:
        wanted -= 1  # gold uses one place of the batch, not one more
    _search(draft, wanted, group=draft.gold.group if draft.gold and grid else None)
    if not draft.chosen and draft.gold is not None and grid:
        draft.gold = None  # alone in its grid it would be told apart; it comes with its text
        _search(draft, wanted, group=None)
    draft.handed_out = person.handed_out + len(draft.chosen) + (draft.gold is not None)


def _search(draft: _Draft, wanted: int, *, group: str | None) -> None:
    """From the cursor on, then what was passed over before it, then with the last distance."""
    if wanted <= 0:
        return
    person = draft.person
    if not (_is_grid(draft) or person.categories or person.exhausted_at):
        _take_from_cursor(draft, wanted)
        if len(draft.chosen) >= wanted:
            return
    for strict in (True, False):
        for part in _parts(draft.person):
            _take(draft, part, wanted - len(draft.chosen), group=group, strict=strict)
            if len(draft.chosen) >= wanted or (draft.chosen and _is_grid(draft)):
                return
        if draft.chosen:
            return


def _is_grid(draft: _Draft) -> bool:
    return draft.person.campaign.mode == Mode.GRID


def _parts(person: Participation) -> list[Q]:
    """The parts of the queue in the order in which they are read."""
    if person.exhausted_at:
        return [Q(opened_at__gte=person.exhausted_at - SLACK)]
    parts = [Q(position__gte=person.cursor)]
    if person.cursor:
        parts.append(Q(position__lt=person.cursor))
    return parts


def _open_for(draft: _Draft, part: Q, *, strict: bool) -> QuerySet[Item]:
    """Items of the part that may be given to this person now."""
    person, second = draft.person, draft.second
    rows = Item.objects.waiting().filter(part, campaign_id=person.campaign_id)
    if person.categories:
        rows = rows.filter(pair__category_id__in=person.categories)
    if strict:
        rows = rows.exclude(pair_id__in={seen.pair for seen in draft.window.near(second)})
    else:
        for seen in draft.window.nearest(second):
            rows = rows.exclude(Q(pair_id=seen.pair) & ~Q(group__startswith=seen.group))
    return _not_touched(rows, person).order_by("position")


def _take(draft: _Draft, part: Q, count: int, *, group: str | None, strict: bool) -> None:
    """Lock and choose up to ``count`` items of one part."""
    spare = 4  # some may turn out to be too near to one another
    rows = _open_for(draft, part, strict=strict)
    if group is not None:
        rows, spare = rows.filter(group=group), 0
    elif _is_grid(draft):
        rows, spare = rows.filter(group=Subquery(rows.values("group")[:1])), 0
    _choose(draft, _locked(rows)[: count + spare], count, strict=strict)


def _locked(rows: QuerySet[Item]) -> QuerySet[Item]:
    return _display(rows).select_for_update(skip_locked=True, no_key=True, of=("self",))


def _choose(draft: _Draft, items: Iterable[Item], count: int, *, strict: bool) -> None:
    """Take those that are not too near to what comes before them."""
    taken = {item.pk for item in draft.chosen}
    for item in items:
        if count <= 0:
            return
        if item.pk not in taken and (_is_grid(draft) or _fits(draft, item, strict=strict)):
            draft.chosen.append(item)
            count -= 1
            if not _is_grid(draft):
                draft.window.push(_seen(item, draft.second))


def _take_from_cursor(draft: _Draft, count: int) -> None:
    """`_take` for nearly every claim: one image at a time, all categories, from the cursor on."""
    person = draft.person
    pairs = padded([0, *{seen.pair for seen in draft.window.near(draft.second)}])
    rows = prepared(
        ("from cursor", len(pairs), count),
        3 + len(pairs),
        lambda: _locked(
            _not_touched_by(
                Item.objects.waiting()
                .filter(campaign_id=whole(0), position__gte=whole(2))
                .exclude(pair_id__in=[whole(3 + i) for i in range(len(pairs))]),
                whole(1),
            ).order_by("position")
        )[: count + 4],
    )(person.campaign_id, person.annotator_id, person.cursor, *pairs)
    _choose(draft, rows, count, strict=True)


def _fits(draft: _Draft, item: Item, *, strict: bool) -> bool:
    return draft.window.allows(
        pair=item.pair_id, group=item.group, image=_root(item), now=draft.second, strict=strict
    )


def _root(item: Item) -> int:
    """The image of which this one is a near-duplicate, or itself."""
    return item.candidate.near_duplicate_of_id or item.candidate_id


def _seen(item: Item, second: int) -> Seen:
    return Seen(item.position, item.pair_id, item.group, second, (_root(item),))


# --- leasing ---------------------------------------------------------------------------------


def _lease(draft: _Draft, batch: WriteBatch) -> list[Handed]:
    """Rows for what was chosen, and the person's new place in the queue."""
    person, campaign, now = draft.person, draft.person.campaign, draft.now
    if _is_grid(draft) and draft.chosen:
        first = draft.chosen[0]
        roots = tuple(_root(item) for item in draft.chosen)
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
        batch.update(Item.objects.filter(pk__in=[i.pk for i in work]), leased=F("leased") + 1)
    if extra:
        batch.update(Item.objects.filter(pk__in=[i.pk for i in extra]), reference_open=False)
    batch.insert(leases)
    _move_on(draft, batch)
    return [Handed(lease.pk, lease.item, end) for lease in leases]


def _with_gold(draft: _Draft) -> list[Item]:
    """The chosen items, the gold one among them at its seeded place."""
    items, gold, person = list(draft.chosen), draft.gold, draft.person
    if gold is None:
        return items
    if _is_grid(draft):
        place = int(stable_unit(person.campaign.seed, "grid", gold.pk, person.pk) * len(items))
    else:
        place = min(max(person.gold_at - person.handed_out - 1, 0), len(items))
    items.insert(place, gold)
    return items


def _move_on(draft: _Draft, batch: WriteBatch) -> None:
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
        type(person).objects.filter(pk=person.pk),
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
        leases = Assignment.objects.filter(pk__in=[handed.assignment for handed in late])
        batch.update(leases, expires_at=now + length)


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
    if _not_touched(waiting, person).exists():
        return Claim("held", retry_at=_moment_later(person, now))
    type(person).objects.filter(pk=person.pk).update(exhausted_at=now)
    # From the few live leases, not from the many items.
    ends = pending.filter(item__in=_not_touched(items, person)).order_by("expires_at")
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
    return not held.exists() and not _not_touched(items.incomplete(), person).exists()


def _moment_later(person: Participation, now: datetime) -> datetime:
    """Open items, but locked for a moment by another claim, or too near to the last ones."""
    free_at = window_of(person).free_at(int(now.timestamp()))
    wait = timedelta(seconds=free_at - int(now.timestamp())) if free_at else BUSY_RETRY
    return now + max(wait, BUSY_RETRY)


# --- giving back -----------------------------------------------------------------------------


def end_leases(
    leases: Sequence[Assignment], *, state: str, now: datetime, batch: WriteBatch
) -> None:
    """End leases that are live (rows and their items locked by the caller); the places are free again."""
    live = [lease for lease in leases if lease.state == AssignmentState.LEASED]
    work = [lease.item_id for lease in live if lease.purpose == Purpose.WORK]
    extra = [lease.item_id for lease in live if lease.purpose == Purpose.REFERENCE]
    if work:
        batch.update(Item.objects.filter(pk__in=work), leased=F("leased") - 1, opened_at=now)
    if extra:
        batch.update(Item.objects.filter(pk__in=extra), reference_open=True, opened_at=now)
    if live:
        batch.update(
            Assignment.objects.filter(pk__in=[lease.pk for lease in live]),
            state=state,
            ended_at=now,
        )
    for lease in live:
        lease.state = state


def expire_leases(*, now: datetime, campaign_id: int | None = None, most: int = 500) -> int:
    """Free the places of leases that are over. Returns how many.

    Rows that somebody is answering at this moment are stepped over: their answer decides.
    """
    overdue = Assignment.objects.overdue(now)
    if campaign_id is not None:
        overdue = overdue.filter(campaign_id=campaign_id)
    total = 0
    while True:
        with transaction.atomic():
            leases = list(
                overdue.select_related("item")
                .order_by("item_id")
                .select_for_update(skip_locked=True, no_key=True, of=("self", "item"))[:most]
            )
            # Several leases of one item can be over: one update each, or one would be lost.
            seen: set[int] = set()
            rest = [x for x in leases if x.item_id not in seen and not seen.add(x.item_id)]  # type: ignore[func-returns-value]
            batch = WriteBatch()
            end_leases(rest, state=AssignmentState.EXPIRED, now=now, batch=batch)
            batch.run()
        total += len(rest)
        if not rest:
            return total
