"""Leases given back unseen: their places are free again, and they may come back to the same person."""

from __future__ import annotations

from typing import TYPE_CHECKING

from croc_annotate.annotation.batch import WriteBatch
from croc_annotate.annotation.models import (
    Assignment,
    AssignmentState,
    Participation,
    Purpose,
)
from croc_annotate.annotation.queue import end_leases, window_of

if TYPE_CHECKING:
    import uuid
    from collections.abc import Sequence
    from datetime import datetime


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
        Participation.objects.filter(pk=person.pk),
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
