"""What the worker does for this room: ends leases, mirrors studies."""

from __future__ import annotations

from celery import shared_task
from django.conf import settings
from django.utils import timezone

from croc_annotate.annotation.leases import expire_leases
from croc_annotate.annotation.mirroring import mirror_studies
from croc_annotate.annotation.prolific import PlatformError


@shared_task(name="annotation.expire_leases")
def expire_leases_task() -> int:
    """Free the places of leases that are over. Claims that run dry do the same by themselves."""
    return expire_leases(now=timezone.now())


@shared_task(
    name="annotation.mirror_studies",
    autoretry_for=(PlatformError,),
    retry_backoff=30,
    max_retries=5,
)
def mirror_studies_task() -> int:
    """Note the platform's states; nothing without a key."""
    return mirror_studies()[2] if settings.PROLIFIC_API_TOKEN else 0
