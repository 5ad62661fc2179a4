"""Campaigns whose judgements are written down as letters: "aar" is two accepts and a reject."""

from __future__ import annotations

import itertools
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from croc_annotate.agreement.models import Adjudication
from croc_annotate.annotation.models import Item, Judgement
from croc_annotate.candidates.models import Candidate, Generator
from croc_annotate.prompts.models import ContrastPair
from tests.factories import make_campaign, make_generator, make_pair, make_user

VERDICTS = {"a": "accept", "r": "reject", "u": "unsure"}
START = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
_count = itertools.count(1)


@dataclass
class Judged:
    """A campaign with its items, people and judgements (a list per item)."""

    campaign: object
    items: list
    raters: list
    judgements: list[list]

    def correct(self, *, item: int, rater: int, verdict: str) -> None:
        """Supersede one person's answer, as undo does."""
        old = self.judgements[item][rater]
        later = old.created_at + timedelta(minutes=5)
        Judgement.objects.filter(pk=old.pk).update(superseded_at=later)
        self.judgements[item][rater] = Judgement.objects.create(
            campaign=self.campaign,
            item=self.items[item],
            annotator=old.annotator,
            verdict=verdict,
            supersedes=old,
            answered_at=later,
            created_at=later,
        )

    def adjudicate(self, *, item: int, verdict: str, reviewer=None) -> Adjudication:
        """Decide one item, past the services."""
        return Adjudication.objects.create(
            campaign=self.campaign,
            candidate=self.items[item].candidate,
            text_role=self.items[item].text_role,
            reviewer=reviewer or make_user("reviewer"),
            verdict=verdict,
            reason="clear",
            created_at=START,
        )


def rendered_candidate(pair: ContrastPair, side: str, generator: Generator) -> Candidate:
    """A row that looks rendered, without a file: statistics never open one."""
    return Candidate.objects.create(
        pair=pair,
        side=side,
        generator=generator,
        seed=next(_count),
        state="rendered",
        sha256=uuid.uuid4().hex * 2,
        image="original.png",
        display="display.png",
        preview="preview.webp",
        width=32,
        height=32,
    )


def judged_campaign(
    verdicts: list[str],
    *,
    categories: list[str] | None = None,
    roles: list[str] | None = None,
    same_candidate: bool = False,
    pairs: list | None = None,
    step: timedelta = timedelta(seconds=4),
    fields: dict | None = None,
    **campaign,
) -> Judged:
    """Make a campaign with one item per word; the k-th letter is the answer of person k.

    A ``.`` is no answer. ``fields`` are set on every judgement.
    """
    found = make_campaign(**campaign)
    people = max((len(word) for word in verdicts), default=0)
    raters = [make_user() for _ in range(people)]
    generator = Generator.objects.first() or make_generator("FLUX_1_dev")
    judged = Judged(found, [], raters, [])
    candidate = None
    for number, word in enumerate(verdicts):
        category = categories[number] if categories else "counting"
        if candidate is None or not same_candidate:
            pair = pairs[number] if pairs else make_pair(category)
            candidate = rendered_candidate(pair, "prompt", generator)
        role = roles[number] if roles else "own"
        item = Item.objects.create(
            campaign=found,
            candidate=candidate,
            pair=candidate.pair,
            text_role=role,
            group="g",
            position=number,
            opened_at=START,
        )
        judged.items.append(item)
        judged.judgements.append(_judge(judged, item, word, number, step, fields or {}))
    return judged


def _judge(judged, item, word, number, step, fields) -> list:
    given = []
    for k, letter in enumerate(word):
        if letter == ".":
            continue
        at = START + step * (number * len(judged.raters) + k)
        given.append(
            Judgement.objects.create(
                campaign=judged.campaign,
                item=item,
                annotator=judged.raters[k],
                verdict=VERDICTS[letter],
                **{"active_ms": 4000, "answered_at": at, "created_at": at, **fields},
            )
        )
    return given
