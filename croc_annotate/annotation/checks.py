"""Counters that the queue keeps, compared with the rows that they stand for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db.models import Exists, OuterRef

from croc_annotate.annotation.items import CHUNK, Counts, counts_by_rows
from croc_annotate.annotation.models import (
    Assignment,
    AssignmentState,
    Judgement,
    Participation,
    Purpose,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from croc_annotate.annotation.models import Campaign


def check_queue(campaign: Campaign) -> list[str]:
    """What is wrong with the items of a campaign, in words; an empty list when all is right."""
    return [
        *_check_items(campaign),
        *_check_participations(campaign),
        *_check_leases(campaign),
    ]


def _check_items(campaign: Campaign) -> Iterator[str]:
    items = list(campaign.items.filter(purpose=Purpose.WORK).order_by("pk"))
    for start in range(0, len(items), CHUNK):
        part = items[start : start + CHUNK]
        rows = counts_by_rows(campaign, part)
        for item in part:
            kept = Counts(item.needed, item.leased, item.reference_open)
            if kept != rows[item.pk]:
                yield f"{item}: kept {kept}, by the rows {rows[item.pk]}"
            if (item.closed_at is not None) != (item.needed == 0):
                yield f"{item}: closed_at and needed disagree"


def _check_leases(campaign: Campaign) -> Iterator[str]:
    """Answers that came by the page without a lease: the queue would hand the item out again."""
    lease = Assignment.objects.filter(
        item=OuterRef("item"), annotator=OuterRef("annotator"), state=AssignmentState.ANSWERED
    )
    rows = (
        Judgement.objects.current()
        .filter(~Exists(lease), campaign=campaign)
        .exclude(source="import")
    )
    for pk in rows.values_list("pk", flat=True):
        yield f"judgement {pk}: without a lease"


def _check_participations(campaign: Campaign) -> Iterator[str]:
    for person in Participation.objects.filter(campaign=campaign):
        mine = (
            Judgement.objects.current()
            .filter(campaign=campaign, annotator_id=person.annotator_id)
            .exclude(source="import")
        )
        answered = mine.exclude(purpose=Purpose.TRAINING).count()
        gold = mine.filter(purpose=Purpose.GOLD).select_related("item")
        right = sum(row.verdict == row.item.known_verdict for row in gold)
        for name, kept, rows in (
            ("answered", person.answered, answered),
            ("gold_seen", person.gold_seen, len(gold)),
            ("gold_correct", person.gold_correct, right),
        ):
            if kept != rows:
                yield f"{person}: {name} is {kept}, by the rows {rows}"
