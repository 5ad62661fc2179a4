"""Storing answers: idempotent by client key, corrections supersede, the quota checked again."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext as _

from croc_annotate.annotation.answer_round import Place, Round, counts, open_round, rounds
from croc_annotate.annotation.answer_shapes import Answer, Result
from croc_annotate.annotation.models import (
    Assignment,
    AssignmentState,
    Item,
    Judgement,
    Purpose,
    Verdict,
)

if TYPE_CHECKING:
    import uuid
    from collections.abc import Sequence
    from datetime import datetime

    from croc_annotate.annotation.models import Participation
    from croc_annotate.lib.prepared import Question
    from croc_annotate.lib.writebatch import WriteBatch

# Beyond this an answer's time was not spent looking: it is cut, not believed.
LONGEST_MS = 30 * 60 * 1000
PACES = 31


@dataclass(slots=True)
class Recorded:
    """What became of the answers of one request."""

    results: list[Result]
    # Leases that were answered, and the rows of the question that was asked along.
    ended: set[uuid.UUID]
    along: list[Any] | None


def record_answers(
    *,
    participation: Participation,
    answers: Sequence[Answer],
    now: datetime,
    batch: WriteBatch,
    along: Question[Any] | None = None,
) -> Recorded:
    """Store what can be stored, in order, and say for each answer what became of it.

    The caller holds the participation's row locked in a transaction, and runs ``batch`` in it.
    Nothing is refused for being late: an answer without a free place is kept and marked
    surplus. ``along`` is a question that is asked in the same round trip as ours.
    """
    results: dict[uuid.UUID, Result] = {}
    recorded = Recorded([], set(), None)
    for part in rounds(answers):
        batch.run()  # a correction reads the answer that it corrects
        work = open_round(participation, part, now, along if recorded.along is None else None)
        results |= {answer.client_key: _settle(work, answer) for answer in part}
        _write(work, batch)
        recorded.ended.update(work.answered)
        recorded.along = work.along if recorded.along is None else recorded.along
    recorded.results = [results[answer.client_key] for answer in answers]
    return recorded


# --- one answer ------------------------------------------------------------------------------


def _settle(work: Round, answer: Answer) -> Result:
    stored = work.known.get(answer.client_key)
    if stored is not None:
        return _again(work, answer, stored)
    if answer.verdict not in Verdict.values:
        return Result(answer.client_key, "refused", _("Unknown verdict."))
    place = work.places.get(answer.item_key)
    if place is None:
        return Result(answer.client_key, "refused", _("This item was not handed to you."))
    if place.current is not None:
        return _correct(work, answer, place, place.current)
    return _add(work, answer, place)


def _again(work: Round, answer: Answer, stored: Judgement) -> Result:
    """The same key once more: the same reply, nothing new."""
    if stored.annotator_id != work.person.annotator_id:
        return Result(answer.client_key, "refused", _("This key belongs to another answer."))
    place = work.places.get(answer.item_key)
    result = Result(answer.client_key, "duplicate")
    return _with_feedback(result, stored, place.item) if place else result


def _add(work: Round, answer: Answer, place: Place) -> Result:
    lease = place.lease(answer.assignment)
    live = lease.state == AssignmentState.LEASED
    purpose = lease.purpose
    surplus = _use_place(work, place, purpose, live=live)
    row = _row(work, answer, place, purpose=purpose, surplus=surplus)
    if counts(row):
        place.tally = place.tally.plus(row.verdict)
    work.adding.append(row)
    work.answered.append(lease.pk)
    _count_person(work, row, place.item)
    return _with_feedback(Result(answer.client_key, "stored"), row, place.item)


def _use_place(work: Round, place: Place, purpose: str, *, live: bool) -> bool:
    """Take the place of an answer; True if there is none any more: the answer is surplus."""
    if purpose == Purpose.REFERENCE:
        if live:
            return False
        free, place.reference_open = place.reference_open, False
        return not free
    if purpose != Purpose.WORK:
        return False
    wanted = work.wanted(place)
    if live:
        place.leased -= 1
        return wanted < 1
    return wanted <= place.leased


def _row(work: Round, answer: Answer, place: Place, *, purpose: str, surplus: bool) -> Judgement:
    person = work.person
    active = None if answer.active_ms is None else min(max(answer.active_ms, 0), LONGEST_MS)
    return Judgement(
        campaign_id=person.campaign_id,
        item_id=place.item.pk,
        annotator_id=person.annotator_id,
        verdict=answer.verdict,
        reason=answer.reason[:40],
        remark=answer.remark[:1000],
        active_ms=active,
        mode=answer.mode,
        purpose=purpose,
        source=answer.source,
        surplus=surplus,
        # A paused person's late answers are kept, and wait for the decision about the others.
        set_aside_at=work.now if person.paused_at and purpose == Purpose.WORK else None,
        guideline_version=person.guideline_version,
        client_key=answer.client_key,
        answered_at=min(answer.answered_at or work.now, work.now),
        created_at=work.now,
    )


def _correct(work: Round, answer: Answer, place: Place, old: Judgement) -> Result:
    """A new answer about the same item closes the old one; an older one only enters the history."""
    row = _row(work, answer, place, purpose=old.purpose, surplus=old.surplus)
    row.set_aside_at = old.set_aside_at
    if old.purpose == Purpose.TRAINING:
        message = _("The first answer to a training item stands.")
        return _with_feedback(Result(answer.client_key, "conflict", message), old, place.item)
    if answer.answered_at and answer.answered_at < old.answered_at:
        row.superseded_at = work.now
        work.adding.append(row)
        return Result(answer.client_key, "conflict", _("A newer answer of yours stands."))
    row.supersedes = old
    work.closing.append(old.pk)
    work.adding.append(row)
    if counts(old):
        place.tally = place.tally.plus(old.verdict, -1).plus(row.verdict)
    lease = place.lease(answer.assignment)
    if lease.state == AssignmentState.LEASED:
        _use_place(work, place, lease.purpose, live=True)
        work.answered.append(lease.pk)
    _recount_gold(work, old, row, place.item)
    return Result(answer.client_key, "stored")


def _with_feedback(result: Result, row: Judgement, item: Item) -> Result:
    """Practice answers are told what was right; a quiz and gold tell nothing."""
    if row.purpose == Purpose.TRAINING and not item.is_quiz:
        result.correct = row.verdict == item.known_verdict
        result.explanation = item.explanation
    return result


# --- counts ----------------------------------------------------------------------------------


def _count_person(work: Round, row: Judgement, item: Item) -> None:
    person = work.person
    if row.purpose == Purpose.TRAINING:
        person.practised += not item.is_quiz
        return
    person.answered += 1
    if row.active_ms is not None:
        person.paces = [*person.paces, row.active_ms][-PACES:]
        person.active_ms += row.active_ms
    if row.purpose == Purpose.GOLD:
        person.gold_seen += 1
        person.gold_correct += row.verdict == item.known_verdict


def _recount_gold(work: Round, old: Judgement, row: Judgement, item: Item) -> None:
    if old.purpose == Purpose.GOLD:
        change = (row.verdict == item.known_verdict) - (old.verdict == item.known_verdict)
        work.person.gold_correct += change


# --- writing ---------------------------------------------------------------------------------


def _write(work: Round, batch: WriteBatch) -> None:
    if work.closing:
        # Before the new rows: one current answer per person and item.
        batch.update(Judgement, work.closing, superseded_at=work.now)
    batch.insert(work.adding)
    if work.answered:
        batch.update(
            Assignment,
            work.answered,
            state=AssignmentState.ANSWERED,
            ended_at=work.now,
        )
    _write_items(work, batch)
    if work.adding:
        _write_person(work.person, batch)


def _write_items(work: Round, batch: WriteBatch) -> None:
    """Items with equal new values in one statement."""
    groups: dict[tuple[int, int, bool, datetime, datetime | None], list[int]] = defaultdict(list)
    for place in work.places.values():
        item = place.item
        if item.purpose != Purpose.WORK:
            continue
        left = work.wanted(place)
        closed = None if left else (item.closed_at or work.now)
        # A free place more: whoever had come to the end of the queue looks here again.
        opened = work.now if left - place.leased > item.places else item.opened_at
        before = (item.needed, item.leased, item.reference_open, item.opened_at, item.closed_at)
        after = (left, place.leased, place.reference_open, opened, closed)
        if before != after:
            groups[after].append(item.pk)
    for (left, leased, extra, opened, closed), pks in groups.items():
        batch.update(
            Item,
            pks,
            needed=left,
            leased=leased,
            reference_open=extra,
            opened_at=opened,
            closed_at=closed,
        )


def _write_person(person: Participation, batch: WriteBatch) -> None:
    batch.update_one(
        person,
        answered=person.answered,
        paces=person.paces,
        active_ms=person.active_ms,
        gold_seen=person.gold_seen,
        gold_correct=person.gold_correct,
        practised=person.practised,
    )
