"""Fetch the states of submissions from the crowd platform."""

from __future__ import annotations

import argparse
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from croc_annotate.annotation.mirroring import NotConfiguredError, mirror_studies
from croc_annotate.annotation.prolific import PlatformError

_MANUAL = """
Read the states of all submissions of the active studies from the platform's API and note them
beside our own outcomes. A final state is never overwritten; whoever gave a submission back on
the platform holds no items here any more. The key is PROLIFIC_API_TOKEN in the environment.
The worker does the same every few minutes; the platform's messages (study/webhook/) are quicker.
"""


class Command(BaseCommand):
    """`manage.py mirror_studies [--study ID]`."""

    help = _MANUAL

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Which study."""
        parser.formatter_class = argparse.RawDescriptionHelpFormatter
        parser.add_argument("--study", metavar="ID", help="only this one")

    def handle(self, *, study: str | None, **_options: Any) -> None:
        """Fetch, note, say how many were news."""
        try:
            studies, seen, news = mirror_studies(study_id=study)
        except (PlatformError, NotConfiguredError) as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"{studies} studies, {seen} submissions read, {news} states were news.")
