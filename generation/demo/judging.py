"""Simulated annotators at work: through the same queue and answers as people's, marked as simulated."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import TYPE_CHECKING

from croc_annotate.agreement.models import Adjudication
from croc_annotate.agreement.reviewing import adjudicate
from croc_annotate.agreement.selectors import campaign_consensus
from croc_annotate.annotation.answer_shapes import Answer
from croc_annotate.annotation.models import Item, Judgement, Purpose
from croc_annotate.annotation.people import find_participation, give_consent, read_guideline
from croc_annotate.annotation.services import claim_items, store_answers
from croc_annotate.candidates.models import Candidate
from generation.demo.cast import CAST, Sight, Simulated, answer
from generation.demo.texts import CONSENT_VERSION, GUIDELINE_VERSION
from generation.scenes.grammar import shows

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from croc_annotate.accounts.models import User
    from croc_annotate.annotation.models import Campaign

SHARE = 0.8
SITTING = 12  # a claim brings at most one gold item
SOURCE = "simulated"


def wanted_judgements(campaign: Campaign) -> int:
    """How many judgements the simulated annotators give in all."""
    items = campaign.items.filter(purpose=Purpose.WORK).count()
    return round(SHARE * items * campaign.min_judgements)


def given_judgements(campaign: Campaign) -> int:
    """How many judgements count by now."""
    return Judgement.objects.counted(campaign).count()


def judge(
    *, campaign: Campaign, users: list[User], since: datetime, until: datetime
) -> Iterator[int]:
    """Let everybody judge in turn until their share of the work is done; yields each sitting's answers.

    The sittings are spread evenly over the time from ``since`` to ``until``. A demo that was
    stopped goes on where it was.
    """
    people = {person.username: person for person in CAST}
    wanted = wanted_judgements(campaign)
    working = list(users)
    while working and (given := given_judgements(campaign)) < wanted:
        user = _least_advanced(campaign, working)
        moment = since + (until - since) * (given / wanted)
        done = _sitting(campaign, user, people[user.username], moment)
        if not done:  # paused by gold, or nothing left for this person
            working.remove(user)
        yield done


def _least_advanced(campaign: Campaign, users: list[User]) -> User:
    """Who is least far in the queue: so items are finished rather than many begun."""
    rows = campaign.participations.values_list("annotator_id", "cursor")
    cursors = dict(rows)
    return min(users, key=lambda user: (cursors.get(user.pk, 0), user.pk))


def _sitting(campaign: Campaign, user: User, person: Simulated, now: datetime) -> int:
    """One claim and its answers; returns how many."""
    _enter(campaign, user, now)
    claim, _ = claim_items(slug=campaign.slug, annotator=user, count=SITTING, now=now)
    if claim.state == "stage":  # practice is over: the next claim is the first of the work
        claim, _ = claim_items(slug=campaign.slug, annotator=user, count=SITTING, now=now)
    answers = []
    sights = _sights([handed.item for handed in claim.items])
    for handed, sight in zip(claim.items, sights, strict=True):
        verdict, active_ms = answer(person, sight)
        now += timedelta(milliseconds=active_ms + 400)
        answers.append(
            Answer(
                client_key=uuid.uuid5(handed.assignment, "answer"),
                item_key=handed.item.key,
                assignment=handed.assignment,
                verdict=verdict,
                active_ms=active_ms,
                source=SOURCE,
                answered_at=now,
            )
        )
    if answers:
        store_answers(slug=campaign.slug, annotator=user, answers=answers, now=now)
    return len(answers)


def _enter(campaign: Campaign, user: User, now: datetime) -> None:
    participation = find_participation(slug=campaign.slug, annotator=user)
    if not participation.consent_version:
        give_consent(participation=participation, version=CONSENT_VERSION, now=now)
        read_guideline(participation=participation, version=GUIDELINE_VERSION, now=now)


def settle_disputes(*, campaign: Campaign, reviewer: User, share: float) -> int:
    """Let the simulated reviewer decide a share of the disputed items rightly; returns how many.

    The others stay for the visitor. Items that were decided before are not decided again.
    """
    decided = Adjudication.objects.current().filter(campaign=campaign).exists()
    table = campaign_consensus(campaign=campaign)
    rows = zip(table.item_id, table.state, strict=True)
    disputed = [int(pk) for pk, state in rows if state == "disputed"]
    if decided:
        return 0
    wanted = disputed[: round(share * len(disputed))]
    items = list(Item.objects.filter(pk__in=wanted).select_related("pair", "candidate"))
    for item, sight in zip(items, _sights(items), strict=True):
        adjudicate(
            item=item,
            reviewer=reviewer,
            verdict="accept" if sight.truth else "reject",
            reason="clear",
            note="Decided by a simulated reviewer.",
        )
    return len(items)


def _sights(items: list[Item]) -> list[Sight]:
    """What a simulated annotator knows of items: the renderer's own word for what it drew."""
    candidates = Candidate.objects.select_related("generator", "pair").in_bulk(
        [item.candidate_id for item in items]
    )
    return [_sight(item, candidates[item.candidate_id]) for item in items]


def _sight(item: Item, candidate: Candidate) -> Sight:
    return Sight(
        pair=candidate.pair.slug,
        side=candidate.side,
        generator=candidate.generator.slug,
        seed=candidate.seed,
        text_role=item.text_role,
        plain=item.purpose != Purpose.WORK,
        truth=shows(candidate.provenance["image"]["drawn"], item.text),
    )
