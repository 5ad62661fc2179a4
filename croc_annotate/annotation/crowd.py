"""Crowd workers: entering a study, one outcome, one code, the platform's states."""

from __future__ import annotations

import re
import secrets
from typing import TYPE_CHECKING

from django.db import IntegrityError, transaction
from django.utils.http import urlencode
from django.utils.translation import gettext as _

from croc_annotate.accounts.models import PlatformIdentity, User
from croc_annotate.annotation.leases import release_all
from croc_annotate.annotation.models import (
    CampaignState,
    Outcome,
    Participation,
    Study,
    Submission,
)
from croc_annotate.annotation.people import join_campaign
from croc_annotate.annotation.queue import nothing_is_left
from croc_annotate.annotation.stages import quota, quota_is_reached, time_is_over

if TYPE_CHECKING:
    from datetime import datetime

_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
# The platform has decided: a message that comes late must not turn these back.
FINAL_STATES = frozenset({"APPROVED", "REJECTED", "RETURNED", "TIMED-OUT", "SCREENED OUT"})
GONE_STATES = frozenset({"RETURNED", "TIMED-OUT"})


class EntryError(Exception):
    """The link cannot be followed; the message is for the person who followed it."""


def enter_study(
    *, participant_id: str, study_id: str, session_id: str, now: datetime
) -> Submission:
    """The submission of one participant in one study: made at the first visit, resumed at later ones.

    The person is the same in all studies of a campaign, so that nobody judges an item twice.
    Raises `EntryError` for ids that are none, an unknown or closed study, a blocked person.
    """
    if not all(_ID.fullmatch(value) for value in (participant_id, study_id, session_id)):
        raise EntryError(_("This link is not complete. Please open it again from the platform."))
    study = Study.objects.filter(study_id=study_id).select_related("campaign").first()
    if study is None:
        raise EntryError(_("This study is not known here. Please return your submission."))
    if not study.active or study.campaign.state == CampaignState.DRAFT:
        raise EntryError(
            _("This study does not take part any more. Please return your submission.")
        )
    user = _participant(study.platform, participant_id)
    if not user.is_active:
        raise EntryError(_("You cannot take part in this study. Please return your submission."))
    return _submission(study, user, session_id, now)


def _participant(platform: str, participant_id: str) -> User:
    user: User
    known = PlatformIdentity.objects.filter(platform=platform, external_id=participant_id)
    identity = known.select_related("user").first()
    if identity is not None:
        user = identity.user
        return user
    try:
        with transaction.atomic():
            # The name tells nothing: the platform's id stays in its own table.
            user = User.objects.create_user(f"worker-{secrets.token_hex(6)}")
            PlatformIdentity.objects.create(
                user=user, platform=platform, external_id=participant_id
            )
            return user
    except IntegrityError:  # two tabs at the first visit
        user = known.select_related("user").get().user
        return user


def _submission(study: Study, user: User, session_id: str, now: datetime) -> Submission:
    person = join_campaign(campaign=study.campaign, annotator=user)
    with transaction.atomic():
        person = Participation.objects.select_for_update().get(pk=person.pk)
        row, _made = Submission.objects.get_or_create(
            study=study, annotator=user, defaults={"session_id": session_id, "started_at": now}
        )
        if row.session_id != session_id:
            row.earlier_sessions = [*row.earlier_sessions, row.session_id]
            row.session_id = session_id
            row.platform_state, row.platform_state_at = "", None
            row.save()
        if person.study_id != study.pk:
            _begin(person, study)
        return row


def _begin(person: Participation, study: Study) -> None:
    """A further study of the same campaign has its own cap and clock; what was judged stays judged."""
    person.study, person.study_base = study, person.answered
    person.started_at = person.ended_at = person.declined_at = None
    person.save(update_fields=["study", "study_base", "started_at", "ended_at", "declined_at"])


def open_submission(*, participation: Participation) -> Submission | None:
    """The submission that a person is here for, if they came from a platform."""
    if participation.study_id is None:
        return None
    return (
        Submission.objects.filter(
            study=participation.study_id, annotator_id=participation.annotator_id
        )
        .select_related("study")
        .first()
    )


def end_submission(
    *, submission: Submission, participation: Participation, now: datetime
) -> Submission:
    """Give the submission its outcome if the server has seen one; an outcome is never overwritten."""
    if not submission.outcome:
        outcome = _outcome(participation, now)
        if outcome is None:
            return submission
        with transaction.atomic():
            # Compare and set: the return link opened twice ends the submission once.
            Submission.objects.filter(pk=submission.pk, outcome="").update(
                outcome=outcome, outcome_at=now
            )
            release_all(participation=participation, now=now)
    Submission.objects.filter(pk=submission.pk, code_shown_at=None).update(code_shown_at=now)
    submission.refresh_from_db()
    return submission


def _outcome(person: Participation, now: datetime) -> Outcome | None:
    if person.declined_at:
        return Outcome.NO_CONSENT
    if person.failed_at:
        return Outcome.SCREENED_OUT
    if quota_is_reached(person):
        return Outcome.COMPLETED
    if person.paused_at:
        return None
    if time_is_over(person, now):
        return Outcome.TIMED_OUT
    worked = person.answered > person.study_base
    stopped = person.ended_at is not None and quota(person) is None
    if worked and (stopped or nothing_is_left(participation=person)):
        return Outcome.COMPLETED
    return None


def return_link(submission: Submission) -> tuple[str, str]:
    """The code of the outcome and the link that takes it to the platform; empty where there is none."""
    code = submission.study.code(submission.outcome) if submission.outcome else ""
    if not code:
        return "", ""
    return code, f"{submission.study.return_url}?{urlencode({'cc': code})}"


def mirror_state(*, session_id: str, state: str, now: datetime) -> bool:
    """Note what the platform says about a submission; True if that was news.

    A final state stays; whoever gave the submission back holds no items any more.
    """
    with transaction.atomic():
        row = (
            Submission.objects.select_for_update(of=("self",))
            .select_related("study")
            .filter(session_id=session_id)
            .first()
        )
        if row is None or row.platform_state in FINAL_STATES or row.platform_state == state:
            return False
        row.platform_state, row.platform_state_at = state[:30], now
        row.save(update_fields=["platform_state", "platform_state_at"])
        if state in GONE_STATES:
            person = Participation.objects.select_for_update().filter(
                campaign=row.study.campaign, annotator=row.annotator
            )
            for participation in person:
                release_all(participation=participation, now=now)
        return True
