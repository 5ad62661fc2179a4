"""``manage.py apply_retention``: forget what need not be kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.core.management.base import BaseCommand
from django.utils import timezone

from croc_annotate.operations.retention import apply_retention

if TYPE_CHECKING:
    from argparse import ArgumentParser


class Command(BaseCommand):
    """The same that the scheduler does each day."""

    help = (
        "Remove expired sessions, records of sign-ins, lines of the admin site's log, and the "
        "platform ids of participants whose studies have ended, each after the days that the "
        "settings RETENTION_… give. The scheduler does the same once a day."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument("--dry-run", action="store_true", help="only count")

    def handle(self, *args: Any, **options: Any) -> None:
        """Forget, and say how much."""
        found = apply_retention(now=timezone.now(), dry_run=options["dry_run"])
        self.stdout.write(f"{'Would remove' if options['dry_run'] else 'Removed'} {found}.")
