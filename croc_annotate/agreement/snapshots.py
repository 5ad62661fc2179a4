"""The statistics that pages show: the newest ones, renewed when they are old."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.utils import timezone

from croc_annotate.agreement.models import StatisticsSnapshot
from croc_annotate.agreement.statistics import compute_statistics, fingerprint, newest
from croc_annotate.agreement.tasks import renew_statistics

if TYPE_CHECKING:
    from datetime import datetime

    from croc_annotate.annotation.models import Campaign

# Below this the numbers are computed while the visitor waits.
QUICK_SECONDS = 0.25
# A renewal may take at most this share of the time of one process.
DUTY = 0.05


def current_statistics(
    *, campaign: Campaign, kind: str, now: datetime | None = None
) -> StatisticsSnapshot:
    """The newest snapshot; an old one is renewed first where that is quick, else behind."""
    now = now or timezone.now()
    found = newest(campaign, kind)
    if found is None:
        compute_statistics(campaign=campaign, now=now)
        return _required(campaign, kind)
    if found.parameters == fingerprint(campaign):
        return found
    if found.seconds <= QUICK_SECONDS:
        compute_statistics(campaign=campaign, now=now)
        return _required(campaign, kind)
    if (now - found.as_of).total_seconds() >= found.seconds / DUTY:
        renew_statistics.delay(campaign.pk)
        return _required(campaign, kind)
    return found


def _required(campaign: Campaign, kind: str) -> StatisticsSnapshot:
    found = newest(campaign, kind)
    if found is None:
        raise StatisticsSnapshot.DoesNotExist(f"no {kind} of {campaign.slug}")
    return found
