"""What the pages of this room show."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from django.db.models import Count, Q

from croc_annotate.annotation.models import (
    Campaign,
    CampaignState,
    Item,
    Judgement,
    Outcome,
    Participation,
    Purpose,
    Verdict,
)
from croc_annotate.annotation.present import (
    image_addresses,
    judgement_json,
    marked_spans,
    pace_ms,
)
from croc_annotate.annotation.stages import Stage, stage_of

if TYPE_CHECKING:
    from datetime import datetime

    from croc_annotate.accounts.models import User

MOST_EXAMPLES = 24
LEAST_GOLD_SHOWN = 5


def campaigns_for(user: User) -> list[tuple[Campaign, Participation | None]]:
    """Campaigns that a person takes part in or may join, newest first."""
    mine = {
        person.campaign_id: person
        for person in Participation.objects.filter(annotator=user).select_related(
            "campaign__guideline", "campaign__consent_text", "study"
        )
    }
    rows = Campaign.objects.exclude(state=CampaignState.DRAFT).filter(
        Q(state=CampaignState.OPEN) | Q(pk__in=mine)
    )
    return [
        (mine[row.pk].campaign if row.pk in mine else row, mine.get(row.pk))
        for row in rows
        if row.pk in mine or not row.invitation_only or user.may_review
    ]


def training_examples(campaign: Campaign) -> list[dict[str, Any]]:
    """Practice items with an explanation, as examples beside the guideline; never quiz or gold."""
    items = (
        campaign.items.filter(purpose=Purpose.TRAINING, is_quiz=False)
        .exclude(explanation="")
        .select_related("candidate", "pair__category")
        .order_by("pair__category__position", "position")[:MOST_EXAMPLES]
    )
    return [_example(item) for item in items]


def _example(item: Item) -> dict[str, Any]:
    image, preview = image_addresses(item.candidate.key)
    return {
        "category": item.pair.category_id,
        "category_label": item.pair.category.title,
        "text": item.text,
        "spans": marked_spans(item.text, item.other_text),
        "image": image,
        "preview": preview,
        "verdict": item.known_verdict,
        "explanation": item.explanation,
    }


def own_judgements(person: Participation, *, limit: int) -> list[dict[str, Any]]:
    """A person's latest answers, newest first, each with a key for one correction."""
    rows = (
        Judgement.objects.current()
        .filter(campaign_id=person.campaign_id, annotator_id=person.annotator_id)
        .exclude(purpose=Purpose.TRAINING)
        .select_related("item__candidate", "item__pair__category")
        .order_by("-id")[:limit]
    )
    mark = person.campaign.mark_difference
    return [
        {**judgement_json(row, mark=mark), "answered_at": row.answered_at, "new_key": uuid.uuid4()}
        for row in rows
    ]


@dataclass(frozen=True, slots=True)
class CategoryCount:
    """A person's answers in one category."""

    label: str
    accept: int
    reject: int
    unsure: int

    @property
    def total(self) -> int:
        """All answers."""
        return self.accept + self.reject + self.unsure


def category_counts(person: Participation) -> list[CategoryCount]:
    """A person's own answers by category. Gold is among them: they cannot tell it apart here either."""
    rows = (
        Judgement.objects.current()
        .filter(campaign_id=person.campaign_id, annotator_id=person.annotator_id)
        .exclude(purpose=Purpose.TRAINING)
        .order_by("item__pair__category__position")
        .values("item__pair__category__label")
        .annotate(
            accept=Count("pk", filter=Q(verdict=Verdict.ACCEPT)),
            reject=Count("pk", filter=Q(verdict=Verdict.REJECT)),
            unsure=Count("pk", filter=Q(verdict=Verdict.UNSURE)),
        )
        .values_list("item__pair__category__label", "accept", "reject", "unsure")
    )
    return [CategoryCount(*row) for row in rows]


@dataclass(frozen=True, slots=True)
class WorkSummary:
    """A person's time, known answers and, in a paid study, what an hour comes to."""

    active_hours: float
    gold_seen: int
    gold_correct: int
    hourly_pay: Decimal | None

    @property
    def hours_text(self) -> str:
        """Hours and minutes."""
        minutes = round(self.active_hours * 60)
        return f"{minutes // 60} h {minutes % 60:02d} min"

    @property
    def gold_percent(self) -> int | None:
        """Known answers met, in per cent.

        None below five: with one or two a person could tell which of their items were known.
        """
        if self.gold_seen < LEAST_GOLD_SHOWN:
            return None
        return round(100 * self.gold_correct / self.gold_seen)


def work_summary(person: Participation) -> WorkSummary:
    """Sums of one person."""
    return WorkSummary(
        person.active_ms / 3_600_000,
        person.gold_seen,
        person.gold_correct,
        projected_hourly_pay(person),
    )


def projected_hourly_pay(person: Participation) -> Decimal | None:
    """What an hour comes to at this person's pace, in the reward's currency; None where it is not known.

    The reward of a study is for `session_cap` items: reward / (cap × mean active time).
    """
    study = person.study
    if study is None or not study.reward_pence or not study.session_cap or not person.answered:
        return None
    if not person.active_ms:
        return None
    hours = Decimal(person.active_ms) / person.answered * study.session_cap / 3_600_000
    return (Decimal(study.reward_pence) / 100 / hours).quantize(Decimal("0.01"))


@dataclass(frozen=True, slots=True)
class PersonRow:
    """One person of a campaign, as its admins see them."""

    participation: Participation
    stage: Stage
    pace_ms: int | None
    gold_share: float | None
    set_aside: int
    hourly_pay: Decimal | None

    @property
    def pace_seconds(self) -> float | None:
        """Median active seconds."""
        return None if self.pace_ms is None else self.pace_ms / 1000

    @property
    def gold_percent(self) -> int | None:
        """Known answers met, in per cent."""
        return None if self.gold_share is None else round(100 * self.gold_share)


def people_of(campaign: Campaign, *, now: datetime) -> list[PersonRow]:
    """Everybody in a campaign, those with most answers first."""
    people = (
        Participation.objects.filter(campaign=campaign)
        .select_related("annotator", "study", "campaign__guideline", "campaign__consent_text")
        .order_by("-answered", "pk")
    )
    aside = dict(
        Judgement.objects.current()
        .filter(campaign=campaign, set_aside_at__isnull=False)
        .order_by()
        .values_list("annotator_id")
        .annotate(Count("pk"))
    )
    return [
        PersonRow(
            participation=person,
            stage=stage_of(person, now),
            pace_ms=pace_ms(person),
            gold_share=person.gold_correct / person.gold_seen if person.gold_seen else None,
            set_aside=aside.get(person.annotator_id, 0),
            hourly_pay=projected_hourly_pay(person),
        )
        for person in people
    ]


def study_rows(campaign: Campaign) -> list[dict[str, Any]]:
    """Studies with how many submissions ended how, here and on the platform."""
    return [
        {
            "study": study,
            "submissions": study.submissions.count(),
            "outcomes": [
                (Outcome(outcome).label, n)
                for outcome, n in study.submissions.exclude(outcome="")
                .order_by("outcome")
                .values_list("outcome")
                .annotate(Count("pk"))
            ],
            "platform": list(
                study.submissions.exclude(platform_state="")
                .order_by("platform_state")
                .values_list("platform_state")
                .annotate(Count("pk"))
            ),
        }
        for study in campaign.studies.order_by("-id")
    ]
