"""What the scheduler has done about images."""

from __future__ import annotations

import logging

from celery import shared_task
from django.utils import timezone

from croc_annotate.candidates.leftovers import sweep
from croc_annotate.candidates.storage import storage_errors

logger = logging.getLogger(__name__)


@shared_task(name="candidates.sweep_left_files")
def sweep_left_files() -> int:
    """Remove files and broken-off uploads that nobody needs; those of a store that is away wait."""
    try:
        return sweep(at=timezone.now())
    except storage_errors() as error:
        logger.warning("Left files wait for the file store: %s", error)
        return 0
