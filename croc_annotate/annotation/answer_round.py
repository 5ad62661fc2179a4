"""What one request's answers are about: their items and leases, locked, and what is known of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from django.db.models import Q

from croc_annotate.annotation.models import Assignment, AssignmentState, Item, Judgement, Purpose
from croc_annotate.annotation.redundancy import Tally, needed
from croc_annotate.lib.prepared import Question, answers_of, key, padded, prepared, text, whole

if TYPE_CHECKING:
    import uuid
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from croc_annotate.annotation.answer_shapes import Answer
    from croc_annotate.annotation.models import Participation

_JUDGEMENT_COLUMNS = (
    *("item_id", "annotator_id", "verdict", "purpose", "surplus", "set_aside_at"),
    *("superseded_at", "client_key", "answered_at"),
)


@dataclass(slots=True)
class Place:
    """One item, locked, with what this request knows and changes about it."""

    item: Item
    leases: list[Assignment]
    tally: Tally = field(default_factory=Tally)
    current: Judgement | None = None
    leased: int = 0
    reference_open: bool = False

    def lease(self, wanted: uuid.UUID | None) -> Assignment:
        """The live lease, else the one that the answer names, else the latest."""
        return max(
            self.leases,
            key=lambda x: (x.state == AssignmentState.LEASED, x.pk == wanted, x.created_at),
        )


@dataclass(slots=True)
class Round:
    """The answers of one request that are about different items."""

    person: Participation
    now: datetime
    places: dict[str, Place]
    known: dict[uuid.UUID, Judgement] = field(default_factory=dict)
    along: list[Any] | None = None
    closing: list[int] = field(default_factory=list)
    adding: list[Judgement] = field(default_factory=list)
    answered: list[uuid.UUID] = field(default_factory=list)

    def wanted(self, place: Place) -> int:
        """Judgements that the item still needs, given the tally so far."""
        if place.item.closed_by_review:
            return 0
        return needed(self.person.campaign.policy.more(place.item.extra), place.tally)


def rounds(answers: Sequence[Answer]) -> Iterator[list[Answer]]:
    """Parts in which no item and no key comes twice: a correction needs the row it corrects."""
    rest = list(answers)
    while rest:
        items: set[str] = set()
        keys: set[uuid.UUID] = set()
        part: list[Answer] = []
        later: list[Answer] = []
        for answer in rest:
            fresh = answer.item_key not in items and answer.client_key not in keys
            (part if fresh else later).append(answer)
            items.add(answer.item_key)
            keys.add(answer.client_key)
        yield part
        rest = later


def open_round(
    person: Participation, answers: Sequence[Answer], now: datetime, along: Question[Any] | None
) -> Round:
    """Lock what the answers are about and read what is known of it; ``along`` is asked with it."""
    work = Round(person, now, _lock_places(person, answers))
    question = _ask_judgements(answers, work.places)
    if along is None:
        rows = question.answer()
    else:
        rows, work.along = answers_of(question, along)
    work.known = _sort_judgements(rows, person, answers, work.places)
    return work


def _lock_places(person: Participation, answers: Sequence[Answer]) -> dict[str, Place]:
    """Items that this person was ever handed, locked in one order, with their own leases.

    The leases are locked with them: a lease that expires while we wait must be seen as expired.
    """
    if not answers:
        return {}
    keys = padded([answer.item_key for answer in answers])
    rows = prepared(
        ("lock places", len(keys)),
        2 + len(keys),
        lambda: (
            Assignment.objects.filter(
                annotator_id=whole(0),
                campaign_id=whole(1),
                item__key__in=[text(2 + i) for i in range(len(keys))],
            )
            .select_related("item")
            .order_by("item_id", "created_at")
            .select_for_update(no_key=True, of=("self", "item"))
        ),
    )(person.annotator_id, person.campaign_id, *keys)
    places: dict[str, Place] = {}
    for lease in rows:
        place = places.setdefault(lease.item.key, Place(lease.item, []))
        place.leases.append(lease)
    for place in places.values():
        place.leased = place.item.leased
        place.reference_open = place.item.reference_open
    return places


def _ask_judgements(answers: Sequence[Answer], places: dict[str, Place]) -> Question[Judgement]:
    """Current answers about the items, and answers known by their client keys."""
    items = padded([place.item.pk for place in places.values()] or [0])
    ours = padded([answer.client_key for answer in answers])
    rows = prepared(
        ("judgements", len(items), len(ours)),
        len(items) + len(ours),
        lambda: Judgement.objects.filter(
            Q(
                item_id__in=[whole(i) for i in range(len(items))],
                superseded_at__isnull=True,
            )
            | Q(client_key__in=[key(len(items) + i) for i in range(len(ours))])
        ).only(*_JUDGEMENT_COLUMNS),
    )
    return Question(rows, [*items, *ours])


def _sort_judgements(
    rows: Sequence[Judgement],
    person: Participation,
    answers: Sequence[Answer],
    places: dict[str, Place],
) -> dict[uuid.UUID, Judgement]:
    """Tallies and own answers go to their places; known answers are returned by client key."""
    by_item = {place.item.pk: place for place in places.values()}
    keys = {answer.client_key for answer in answers}
    known = {}
    for row in rows:
        if row.client_key in keys:
            known[row.client_key] = row
        place = by_item.get(row.item_id)
        if place is None or row.superseded_at is not None:
            continue
        if row.annotator_id == person.annotator_id:
            place.current = row
        if counts(row):
            place.tally = place.tally.plus(row.verdict)
    return known


def counts(row: Judgement) -> bool:
    """True if the item's tally has this answer."""
    return row.purpose == Purpose.WORK and not row.surplus and row.set_aside_at is None
