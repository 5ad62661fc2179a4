"""Invitation links for colleagues."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from django.db import transaction
from django.db.models import F, Q
from django.utils.translation import gettext as _

from croc_annotate.accounts.services import record_audit
from croc_annotate.annotation.models import Invitation
from croc_annotate.annotation.people import join_campaign
from croc_annotate.lib.hashing import sha256_text

if TYPE_CHECKING:
    from datetime import datetime

    from croc_annotate.accounts.models import User
    from croc_annotate.annotation.models import Campaign, Participation


class InvitationError(Exception):
    """The link does not let anybody in (any more); the message says so."""


def create_invitation(
    *,
    campaign: Campaign,
    actor: User,
    label: str = "",
    max_uses: int = 1,
    expires_at: datetime | None = None,
) -> tuple[Invitation, str]:
    """A new link's row and its secret, which is shown once and not kept."""
    token = secrets.token_urlsafe(24)
    with transaction.atomic():
        row = Invitation.objects.create(
            campaign=campaign,
            label=label,
            sha256=sha256_text(token),
            max_uses=max_uses,
            expires_at=expires_at,
            created_by=actor,
        )
        record_audit(
            actor=actor,
            action="invitation.created",
            subject_type="campaign",
            subject_id=campaign.pk,
            details={"label": label, "max_uses": max_uses},
        )
    return row, token


def find_invitation(*, token: str, now: datetime) -> Invitation:
    """The invitation of a link that may be used now. Raises `InvitationError`."""
    row = (
        Invitation.objects.filter(sha256=sha256_text(token), revoked_at=None)
        .filter(Q(expires_at=None) | Q(expires_at__gt=now))
        .select_related("campaign")
        .first()
    )
    if row is None:
        raise InvitationError(_("This link is not valid any more. Please ask for a new one."))
    return row


def accept_invitation(*, invitation: Invitation, user: User) -> Participation:
    """Let a person in by a link. Who is in already uses up nothing. Raises `InvitationError`."""
    campaign = invitation.campaign
    known = campaign.participations.filter(annotator=user).first()
    if known is not None:
        return known
    with transaction.atomic():
        used = Invitation.objects.filter(pk=invitation.pk, uses__lt=F("max_uses"))
        if not used.update(uses=F("uses") + 1):
            raise InvitationError(_("This link has been used as often as it may be."))
        return join_campaign(campaign=campaign, annotator=user)


def revoke_invitation(*, invitation: Invitation, actor: User, now: datetime) -> None:
    """Let nobody in by this link any more."""
    with transaction.atomic():
        Invitation.objects.filter(pk=invitation.pk, revoked_at=None).update(revoked_at=now)
        record_audit(
            actor=actor,
            action="invitation.revoked",
            subject_type="campaign",
            subject_id=invitation.campaign_id,
            details={"invitation": invitation.pk},
        )
