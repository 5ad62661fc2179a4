"""Compare the queue's counters with the rows."""

from __future__ import annotations

import argparse
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from croc_annotate.annotation.checks import check_queue
from croc_annotate.annotation.leases import expire_leases
from croc_annotate.annotation.models import Campaign
from croc_annotate.annotation.services import recount_items

_MANUAL = """
Compare the counters that the queue keeps (how many judgements an item needs, how many leases it
has, what people have answered) with the rows that they stand for, campaign by campaign. Leases
that are over are ended first. With --repair the items' counters are set from the rows; judging
goes on meanwhile. Exit code 1 if something was wrong and not repaired.
"""


class Command(BaseCommand):
    """`manage.py check_queue [--campaign SLUG] [--repair]`."""

    help = _MANUAL

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Which campaign, and whether to repair."""
        parser.formatter_class = argparse.RawDescriptionHelpFormatter
        parser.add_argument("--campaign", metavar="SLUG", help="only this one")
        parser.add_argument("--repair", action="store_true", help="set counters from the rows")

    def handle(self, *, campaign: str | None, repair: bool, **_options: Any) -> None:
        """Check, repair if asked, say what was found."""
        rows = Campaign.objects.all()
        if campaign is not None:
            rows = rows.filter(slug=campaign)
            if not rows.exists():
                raise CommandError(f"There is no campaign {campaign}.")
        now = timezone.now()
        ended = expire_leases(now=now)
        wrong = repaired = 0
        for row in rows:
            faults = check_queue(row)
            wrong += len(faults)
            for fault in faults:
                self.stderr.write(f"{row.slug}: {fault}")
            if faults and repair:
                repaired += recount_items(campaign=row, now=now)
        self.stdout.write(
            f"{rows.count()} campaigns checked, {ended} leases ended, {wrong} counters wrong, "
            f"{repaired} items repaired."
        )
        if wrong and not repair:
            raise CommandError("Counters and rows differ. Run it again with --repair.")
