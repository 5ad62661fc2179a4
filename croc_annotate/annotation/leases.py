"""The ends of leases: given back unseen, run out, and how an end frees the place."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import transaction

from croc_annotate.annotation.choosing import window_of
from croc_annotate.annotation.models import (
    Assignment,
    AssignmentState,
    Item,
    Participation,
    Purpose,
)
from croc_annotate.lib.writebatch import Plus, WriteBatch

if TYPE_CHECKING:
    import uuid
    from collections.abc import Sequence
    from datetime import datetime


def end_leases(
    leases: Sequence[Assignment], *, state: str, now: datetime, batch: WriteBatch
) -> None:
    """End leases that are live (rows and their items locked by the caller); the places are free again."""
    live = [lease for lease in leases if lease.state == AssignmentState.LEASED]
    work = [lease.item_id for lease in live if lease.purpose == Purpose.WORK]
    extra = [lease.item_id for lease in live if lease.purpose == Purpose.REFERENCE]
    if work:
        batch.update(Item, work, leased=Plus(-1), opened_at=now)
    if extra:
        batch.update(Item, extra, reference_open=True, opened_at=now)
    if live:
        batch.update(
            Assignment,
            [lease.pk for lease in live],
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


def give_back(person: Participation, pks: Sequence[uuid.UUID], now: datetime) -> int:
    """Return the live ones of these leases. The caller holds the person's row locked."""
    live = [x for x in lock_leases(person, pks) if x.state == AssignmentState.LEASED]
    if not live:
        return 0
    batch = WriteBatch()
    window = window_of(person)
    positions = {lease.item.position for lease in live}
    window.forget(positions)
    person.recent = [seen.as_row() for seen in window.seen]
    person.cursor = min(person.cursor, *positions)
    person.handed_out = max(person.handed_out - len(live), 0)
    if any(lease.purpose == Purpose.GOLD for lease in live):
        person.gold_at = max(person.handed_out, 1)
    end_leases(live, state=AssignmentState.RETURNED, now=now, batch=batch)
    batch.update(
        Participation,
        [person.pk],
        recent=person.recent,
        cursor=person.cursor,
        handed_out=person.handed_out,
        gold_at=person.gold_at,
    )
    batch.run()
    return len(live)


def release_all(*, participation: Participation, now: datetime) -> int:
    """Return everything that a person holds. Needs a transaction."""
    held = Assignment.objects.filter(
        annotator_id=participation.annotator_id,
        campaign_id=participation.campaign_id,
        state=AssignmentState.LEASED,
    )
    return give_back(participation, list(held.values_list("pk", flat=True)), now)


def lock_leases(person: Participation, pks: Sequence[uuid.UUID]) -> list[Assignment]:
    """A person's leases with their items, locked in one order."""
    return list(
        Assignment.objects.filter(
            pk__in=pks, annotator_id=person.annotator_id, campaign_id=person.campaign_id
        )
        .select_related("item")
        .order_by("item_id", "created_at")
        .select_for_update(no_key=True, of=("self", "item"))
    )
