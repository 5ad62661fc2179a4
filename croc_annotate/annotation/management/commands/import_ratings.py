"""Bring judgements that were made elsewhere."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from croc_annotate.annotation.imports import DEFAULT_SLUG, import_ratings
from croc_annotate.annotation.models import Campaign
from croc_annotate.annotation.rating_files import RatingFileError, read_ratings

_MANUAL = f"""
Store ratings of imported images as judgements.

FILE is TSV or CSV with the columns
    file     the image's name as import_images read it (column "file" of its manifest)
    rater    any name; it is kept as a keyed hash only
    rating   a number
A rating of at least --accept-from is an accept, one of at most --reject-to a reject, what lies
between is unsure. All judgements go into a campaign of their own ("{DEFAULT_SLUG}", which hands
out nothing) unless --campaign names another.

A fault in any line (named with its number) leaves everything as it was. A second run of the
same file changes nothing; a changed rating corrects the earlier one, which is kept.
"""


class Command(BaseCommand):
    """`manage.py import_ratings FILE`."""

    help = _MANUAL

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """The file and how its numbers become verdicts."""
        parser.formatter_class = argparse.RawDescriptionHelpFormatter
        parser.add_argument("file", metavar="FILE", type=Path, help="file, rater, rating")
        parser.add_argument("--accept-from", type=float, default=4.0, metavar="N")
        parser.add_argument("--reject-to", type=float, default=2.0, metavar="N")
        parser.add_argument("--campaign", metavar="SLUG", help="a campaign that exists")

    def handle(
        self,
        *,
        file: Path,
        accept_from: float,
        reject_to: float,
        campaign: str | None,
        **_options: Any,
    ) -> None:
        """Read all, store all, say what was done."""
        started = time.monotonic()
        if accept_from <= reject_to:
            raise CommandError("--accept-from must be above --reject-to.", returncode=2)
        if not file.is_file():
            raise CommandError(f"{file} is not there.")
        try:
            report = import_ratings(
                rows=read_ratings(file),
                accept_from=accept_from,
                reject_to=reject_to,
                campaign=_campaign(campaign),
                now=timezone.now(),
            )
        except RatingFileError as error:
            raise CommandError(f"{error}\nNothing was stored.") from error
        self.stdout.write(
            f"Campaign {report.campaign}: {report.created:,} judgements of {report.items:,} images "
            f"by {report.raters} raters stored, {report.corrected:,} corrected, "
            f"{report.unchanged:,} were there already ({time.monotonic() - started:.1f} s)."
        )


def _campaign(slug: str | None) -> Campaign | None:
    if slug is None:
        return None
    found = Campaign.objects.filter(slug=slug).first()
    if found is None:
        raise CommandError(f"There is no campaign {slug}; make it first, or leave --campaign out.")
    return found
