"""Background work of this room: ids in, a service called."""

from __future__ import annotations

from celery import shared_task

from croc_annotate.releases.downloads import run_export
from croc_annotate.releases.freezes import run_freeze


@shared_task(name="releases.make_export")
def make_export(export_id: int) -> bool:
    """Make an export that was asked for on the page."""
    return run_export(export_id=export_id)


@shared_task(name="releases.freeze")
def freeze(freeze_id: int) -> bool:
    """Freeze a release that was asked for on the page."""
    return run_freeze(freeze_id=freeze_id)
