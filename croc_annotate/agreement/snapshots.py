"""The statistics that pages show: the newest ones, renewed when they are old."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from django.utils import timezone
from kombu.exceptions import OperationalError

from croc_annotate.agreement.models import StatisticsSnapshot
from croc_annotate.agreement.statistics import compute_statistics, fingerprint, newest
from croc_annotate.agreement.tasks import renew_statistics

if TYPE_CHECKING:
    from datetime import datetime

    from croc_annotate.annotation.models import Campaign

logger = logging.getLogger(__name__)

# Below this the numbers are computed while the visitor waits.
QUICK_SECONDS = 0.25
# A renewal may take at most this share of the time of one process.
DUTY = 0.05


def current_statistics(
    *, campaign: Campaign, kind: str, patience: float = 0.0, now: datetime | None = None
) -> StatisticsSnapshot:
    """The newest snapshot; an old one is renewed first where that is quick, else behind.

    One that is younger than ``patience`` seconds is taken as it is.
    """
    now = now or timezone.now()
    found = newest(campaign, kind)
    if found is None:
        compute_statistics(campaign=campaign, now=now)
        return _required(campaign, kind)
    age = (now - found.as_of).total_seconds()
    if age < patience or found.parameters == fingerprint(campaign):
        return found
    if found.seconds <= QUICK_SECONDS:
        compute_statistics(campaign=campaign, now=now)
        return _required(campaign, kind)
    if age >= found.seconds / DUTY:
        _renew_behind(campaign)
        return _required(campaign, kind)
    return found


def _renew_behind(campaign: Campaign) -> None:
    """Ask a worker; where the broker does not answer, what is there is shown as of its time."""
    try:
        renew_statistics.apply_async((campaign.pk,), retry=False)
    except OperationalError:
        logger.warning("No broker: the statistics of %s are not renewed", campaign.slug)


def _required(campaign: Campaign, kind: str) -> StatisticsSnapshot:
    found = newest(campaign, kind)
    if found is None:
        raise StatisticsSnapshot.DoesNotExist(f"no {kind} of {campaign.slug}")
    return found
