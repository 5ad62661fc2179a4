"""What a person has to do next in a campaign: the order that the server enforces."""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING

from django.utils.translation import gettext_lazy as _

if TYPE_CHECKING:
    from datetime import datetime

    from django.utils.functional import _StrOrPromise as StrOrPromise

    from croc_annotate.annotation.models import Participation


class Stage(StrEnum):
    """In this order; ``paused`` and ``ended`` stop the work."""

    CONSENT = "consent"
    GUIDELINE = "guideline"
    PRACTICE = "practice"
    QUIZ = "quiz"
    WORK = "work"
    PAUSED = "paused"
    ENDED = "ended"

    @property
    def label(self) -> StrOrPromise:
        """The stage as a page calls it."""
        return _LABELS[self]


_LABELS = {
    Stage.CONSENT: _("consent"),
    Stage.GUIDELINE: _("guideline"),
    Stage.PRACTICE: _("practice"),
    Stage.QUIZ: _("quiz"),
    Stage.WORK: _("work"),
    Stage.PAUSED: _("paused"),
    Stage.ENDED: _("ended"),
}


def stage_of(participation: Participation, now: datetime) -> Stage:
    """The stage of one person at ``now``."""
    if has_ended(participation, now):
        return Stage.ENDED
    if participation.paused_at:
        return Stage.PAUSED
    return _open_step(participation)


def _open_step(participation: Participation) -> Stage:
    campaign = participation.campaign
    consent = campaign.consent_text
    guideline = campaign.guideline
    if consent and participation.consent_version != consent.version:
        return Stage.CONSENT
    # A new version of the guideline is shown to everybody again; training is not repeated.
    if guideline and participation.guideline_version != guideline.version:
        return Stage.GUIDELINE
    if participation.qualified_at is None:
        if participation.practised < campaign.practice_items:
            return Stage.PRACTICE
        if campaign.quiz_items:
            return Stage.QUIZ
    return Stage.WORK


def quota(participation: Participation) -> int | None:
    """Most items that this person judges; None without a cap."""
    caps = [participation.campaign.session_cap]
    study = participation.study
    if study and study.session_cap is not None:
        caps.append(participation.study_base + study.session_cap)
    return min((cap for cap in caps if cap is not None), default=None)


def time_is_over(participation: Participation, now: datetime) -> bool:
    """True if a study's time limit has passed since this person's first item."""
    study = participation.study
    if study is None or not study.time_limit_minutes or participation.started_at is None:
        return False
    return now >= participation.started_at + timedelta(minutes=study.time_limit_minutes)


def quota_is_reached(participation: Participation) -> bool:
    """True if this person has judged all that they may."""
    most = quota(participation)
    return most is not None and participation.answered >= most


def has_ended(participation: Participation, now: datetime) -> bool:
    """True if there is nothing more to do here for this person."""
    return bool(
        participation.declined_at
        or participation.failed_at
        or participation.ended_at
        or quota_is_reached(participation)
        or time_is_over(participation, now)
    )
