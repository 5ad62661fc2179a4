"""What the scheduler does for this room."""

from __future__ import annotations

from celery import shared_task
from django.utils import timezone

from croc_annotate.operations.retention import apply_retention


@shared_task(name="operations.apply_retention")
def apply_retention_task() -> str:
    """Forget what need not be kept, once a day."""
    return str(apply_retention(now=timezone.now()))
