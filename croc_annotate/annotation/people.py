"""A person's way through a campaign: entering, consent, guideline, pauses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import IntegrityError, transaction

from croc_annotate.accounts.services import record_audit
from croc_annotate.accounts.visitors import UnsureVisitorError, Visitor
from croc_annotate.annotation.leases import release_all
from croc_annotate.annotation.models import Campaign, CampaignState, Consent, Participation
from croc_annotate.lib.prepared import prepared, text, whole

if TYPE_CHECKING:
    from datetime import datetime

    from django.db.models import QuerySet

    from croc_annotate.accounts.models import User


class NotInvitedError(Exception):
    """The campaign is by invitation, and this person has none."""


def find_participation(*, slug: str, annotator: User) -> Participation:
    """The person's row, made at the first visit.

    Raises ``Campaign.DoesNotExist`` for an unknown campaign or a draft, ``NotInvitedError``.
    """
    try:
        return _with_texts().get(campaign__slug=slug, annotator=annotator)
    except Participation.DoesNotExist:
        campaign = Campaign.objects.exclude(state=CampaignState.DRAFT).get(slug=slug)
    if campaign.invitation_only and not annotator.may_review:
        raise NotInvitedError(campaign.title)
    join_campaign(campaign=campaign, annotator=annotator)
    return _with_texts().get(campaign=campaign, annotator=annotator)


def join_campaign(*, campaign: Campaign, annotator: User) -> Participation:
    """Let a person in; a second call changes nothing."""
    try:
        with transaction.atomic():
            return Participation.objects.create(campaign=campaign, annotator=annotator)
    except IntegrityError:  # they were in already, perhaps by another tab a moment ago
        return Participation.objects.get(campaign=campaign, annotator=annotator)


def lock_participation(*, slug: str, annotator: User | Visitor) -> Participation:
    """As `find_participation`, locked until the end of the caller's transaction.

    Raises `UnsureVisitorError` if ``annotator`` is a session's word that the rows do not confirm.
    """
    rows = prepared(
        "lock participation",
        2,
        lambda: (
            _with_texts()
            .select_related("annotator")
            .defer(*_NOT_OF_THE_PERSON)
            .select_for_update(no_key=True, of=("self",))
            .filter(campaign__slug=text(0), annotator_id=whole(1))
        ),
    )
    found = rows(slug, annotator.pk)
    if isinstance(annotator, Visitor):
        if not found or not annotator.is_still(found[0].annotator):
            raise UnsureVisitorError
    elif not found:
        find_participation(slug=slug, annotator=annotator)
        found = rows(slug, annotator.pk)
    return found[0]


_NOT_OF_THE_PERSON = tuple(
    f"annotator__{name}"
    for name in (
        *("username", "first_name", "last_name", "email", "is_staff", "is_superuser"),
        *("last_login", "date_joined", "display_name", "language", "timezone", "theme"),
        *("shortcuts", "pseudonymised_at"),
    )
)


def _with_texts() -> QuerySet[Participation]:
    """People with what every request looks at; long texts and what nobody asks for stay away."""
    return Participation.objects.select_related(
        "campaign__guideline", "campaign__consent_text", "study"
    ).defer(
        "pause_reason",
        "created_at",
        "campaign__categories",
        "campaign__generators",
        "campaign__banks",
        "campaign__rule",
        "campaign__posterior_threshold",
        "campaign__cross_rate",
        "campaign__reference_rate",
        "campaign__order",
        "campaign__min_distance",
        "campaign__created_by",
        "campaign__created_at",
        "campaign__guideline__body",
        "campaign__guideline__title",
        "campaign__guideline__created_at",
        "campaign__consent_text__body",
        "campaign__consent_text__created_at",
        "study__code_completed",
        "study__code_screened_out",
        "study__code_no_consent",
        "study__return_url",
        "study__created_at",
    )


def give_consent(*, participation: Participation, version: str, now: datetime) -> bool:
    """Store the agreement to the text that was shown; False if another version is current by now."""
    wanted = participation.campaign.consent_text
    if wanted is None or wanted.version != version:
        return False
    with transaction.atomic():
        Consent.objects.update_or_create(
            campaign=participation.campaign,
            annotator_id=participation.annotator_id,
            text=wanted,
            defaults={"given": True, "at": now},
        )
        Participation.objects.filter(pk=participation.pk).update(
            consent_version=wanted.version, declined_at=None
        )
    return True


def decline_consent(*, participation: Participation, now: datetime) -> None:
    """Store that the person does not take part. What they hold is given back."""
    shown = participation.campaign.consent_text
    with transaction.atomic():
        if shown is not None:
            Consent.objects.update_or_create(
                campaign=participation.campaign,
                annotator_id=participation.annotator_id,
                text=shown,
                defaults={"given": False, "at": now},
            )
        Participation.objects.filter(pk=participation.pk, declined_at=None).update(declined_at=now)
        release_all(participation=participation, now=now)


def read_guideline(*, participation: Participation, version: str, now: datetime) -> bool:
    """Store that the guideline was read; False if another version is current by now."""
    guideline = participation.campaign.guideline
    if guideline is None or guideline.version != version:
        return False
    Participation.objects.filter(pk=participation.pk).update(
        guideline_version=version, guideline_read_at=now
    )
    return True


def end_participation(*, participation: Participation, now: datetime) -> None:
    """Let a person stop for good. What they hold is given back; their answers stay."""
    with transaction.atomic():
        Participation.objects.filter(pk=participation.pk, ended_at=None).update(ended_at=now)
        release_all(participation=participation, now=now)


def reopen_participation(*, participation: Participation, actor: User) -> None:
    """Let a person who ended, declined or failed the quiz come back."""
    with transaction.atomic():
        Participation.objects.filter(pk=participation.pk).update(
            ended_at=None, declined_at=None, failed_at=None, exhausted_at=None, cursor=0
        )
        record_audit(
            actor=actor,
            action="participation.reopened",
            subject_type="participation",
            subject_id=participation.pk,
        )
