"""The statistics that pages show: the newest ones, renewed when they are old."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import connection
from django.utils import timezone
from kombu.exceptions import OperationalError

from croc_annotate.agreement.statistics import compute_statistics, fingerprint, newest, renew
from croc_annotate.agreement.tasks import renew_statistics
from croc_annotate.annotation.models import Judgement

if TYPE_CHECKING:
    from datetime import datetime

    from croc_annotate.agreement.models import StatisticsSnapshot
    from croc_annotate.annotation.models import Campaign

logger = logging.getLogger(__name__)

# Below this the numbers are computed while the visitor waits.
QUICK_SECONDS = 0.25
# So they are where nothing tells how long it takes, up to this many judgements.
FEW_JUDGEMENTS = 5_000
# A renewal may take at most this share of the time of one process.
DUTY = 0.05


class StatisticsPendingError(Exception):
    """The first statistics of a large campaign are being computed; ask again soon."""

    def __init__(self, campaign: Campaign) -> None:
        super().__init__(f"the first statistics of {campaign.slug} are being computed")
        self.campaign = campaign


def current_statistics(
    *,
    campaign: Campaign,
    kind: str,
    patience: float = 0.0,
    wait: bool = False,
    now: datetime | None = None,
) -> StatisticsSnapshot:
    """The newest snapshot; an old one is renewed first where that is quick, else behind.

    One that is younger than ``patience`` seconds is taken as it is. Where there is none yet and
    the campaign is large, raises StatisticsPendingError, or with ``wait`` computes it now.
    """
    now = now or timezone.now()
    found = newest(campaign, kind)
    if found is None:
        if wait or is_small(campaign):
            compute_statistics(campaign=campaign, now=now)
        else:
            _renew_behind(campaign)
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


def is_small(campaign: Campaign) -> bool:
    """Whether a pass over the campaign's judgements is quick enough to be waited for."""
    return Judgement.objects.filter(campaign=campaign)[: FEW_JUDGEMENTS + 1].count() <= (
        FEW_JUDGEMENTS
    )


def _renew_behind(campaign: Campaign) -> None:
    """Ask a worker; where the broker does not answer, what is there is shown as of its time."""
    if settings.CELERY_TASK_ALWAYS_EAGER and not is_small(campaign):
        # Without a broker the task would run here and now, and the visitor would wait for it.
        threading.Thread(
            target=_renew_in_thread, args=(campaign,), daemon=True, name=f"statistics-{campaign.pk}"
        ).start()
        return
    try:
        renew_statistics.apply_async((campaign.pk,), retry=False)
    except OperationalError:
        logger.warning("No broker: the statistics of %s are not renewed", campaign.slug)


def _renew_in_thread(campaign: Campaign) -> None:
    try:
        renew(campaign=campaign)
    except Exception:
        logger.exception("The statistics of %s could not be computed", campaign.slug)
    finally:
        connection.close()


def _required(campaign: Campaign, kind: str) -> StatisticsSnapshot:
    found = newest(campaign, kind)
    if found is None:
        raise StatisticsPendingError(campaign)
    return found
