"""What is forgotten by itself, and when."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from axes.models import AccessAttempt, AccessFailureLog, AccessLog
from django.conf import settings
from django.contrib.admin.models import LogEntry
from django.contrib.sessions.models import Session
from django.db.models import Max, Q

from croc_annotate.accounts.models import PlatformIdentity, User
from croc_annotate.accounts.services import record_audit
from croc_annotate.annotation.models import Campaign, CampaignState, Judgement, Participation
from croc_annotate.operations.privacy import forget_platforms

if TYPE_CHECKING:
    from datetime import datetime

    from django.db.models import QuerySet


@dataclass(frozen=True)
class Forgotten:
    """Rows removed, by kind."""

    platform_ids: int
    sign_ins: int
    sessions: int
    admin_log: int

    def __str__(self) -> str:
        return (
            f"{self.platform_ids} platform ids, {self.sign_ins} sign-in records, "
            f"{self.sessions} expired sessions, {self.admin_log} lines of the admin site's log"
        )


def apply_retention(*, now: datetime, dry_run: bool = False) -> Forgotten:
    """Remove what the settings RETENTION_… no longer allow to keep; 0 days: for ever."""
    people = people_of_ended_studies(now=now)
    sign_ins = _older("attempt_time", settings.RETENTION_SIGN_IN_DAYS, now)
    log = _older("action_time", settings.RETENTION_ADMIN_LOG_DAYS, now)
    stale = [
        rows
        for model in (AccessAttempt, AccessLog, AccessFailureLog)
        for rows in [model.objects.filter(sign_ins)]
    ]
    sessions = Session.objects.filter(expire_date__lt=now)
    entries = LogEntry.objects.filter(log)
    found = Forgotten(
        platform_ids=PlatformIdentity.objects.filter(user__in=people).count(),
        sign_ins=sum(rows.count() for rows in stale),
        sessions=sessions.count(),
        admin_log=entries.count(),
    )
    if not dry_run:
        if found.platform_ids:
            forget_platforms(users=people)
            record_audit(
                actor=None,
                action="retention.platform_ids",
                subject_type="platform_identity",
                subject_id="",
                details={"removed": found.platform_ids},
            )
        for rows in (*stale, sessions, entries):
            rows.delete()
    return found


def _older(field: str, days: int, now: datetime) -> Q:
    """Rows that are older than so many days; none for 0."""
    return Q(**{f"{field}__lt": now - timedelta(days=days)}) if days else Q(pk__in=[])


def people_of_ended_studies(*, now: datetime) -> QuerySet[User]:
    """Participants whose campaigns are all closed, the last answer in each long enough ago."""
    days = settings.RETENTION_PLATFORM_ID_DAYS
    people: QuerySet[User] = User.objects.all()
    if not days:
        return people.none()
    cutoff = now - timedelta(days=days)
    last = dict(
        Judgement.objects.values_list("campaign_id").annotate(at=Max("created_at")).order_by()
    )
    ended = [
        campaign.pk
        for campaign in Campaign.objects.filter(state=CampaignState.CLOSED)
        if last.get(campaign.pk, campaign.created_at) < cutoff
    ]
    busy = Participation.objects.exclude(campaign__in=ended)
    return people.filter(
        pk__in=PlatformIdentity.objects.filter(created_at__lt=cutoff).values("user")
    ).exclude(pk__in=busy.values("annotator"))
