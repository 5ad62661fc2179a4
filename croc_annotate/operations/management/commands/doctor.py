"""``manage.py doctor``: is this installation sound, and what to do where it is not."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from django.core.management.base import BaseCommand

from croc_annotate.operations.health import ADVISED, ERROR, NEEDED, OK, WARNING, examine

if TYPE_CHECKING:
    from argparse import ArgumentParser

SIGNS = {OK: "✓", WARNING: "!", ERROR: "✕"}


class Command(BaseCommand):
    """Examine database, migrations, broker, storage, disk, workers, secrets, clock and queue."""

    help = (
        "Examine this installation: database, migrations, broker, storage, disk, workers, "
        "secrets, clock and queue. Each finding comes with what to do. "
        "Exit code 1 when something does not work; warnings alone give 0."
    )
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument("--json", action="store_true", help="one JSON document on stdout")

    def handle(self, *args: Any, **options: Any) -> None:
        """Print the findings."""
        findings = examine(checks=[*NEEDED, *ADVISED])
        if options["json"]:
            self.stdout.write(json.dumps([asdict(finding) for finding in findings]))
        else:
            for finding in findings:
                self.stdout.write(f"{SIGNS[finding.level]} {finding.name}: {finding.seen}")
                if finding.remedy:
                    self.stdout.write(f"    → {finding.remedy}")
        bad = sum(finding.level == ERROR for finding in findings)
        if bad:
            self.stderr.write(f"{bad} of {len(findings)} checks failed.")
            sys.exit(1)
