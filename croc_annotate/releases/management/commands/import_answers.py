"""``manage.py import_answers``: judgements that people gave in another annotation tool."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.core.management.base import CommandError
from django.utils import timezone

from croc_annotate.agreement.arguments import campaign_named
from croc_annotate.annotation.rating_files import RatingFileError
from croc_annotate.releases.handover.run import import_answers
from croc_annotate.releases.handover.tools import TOOLS, AnswerFileError
from croc_annotate.releases.management.common import ReleaseCommand, Watch

if TYPE_CHECKING:
    from argparse import ArgumentParser


class Command(ReleaseCommand):
    """Thin: calls the service, prints what came in."""

    help = "Bring the answers to export_tasks back from Label Studio, Argilla or Potato."
    manual = """
  label-studio  its JSON or JSON-MIN export
  argilla       the file of dataset.records.to_json
  potato        annotated_instances.jsonl, or the annotation_output folder with one for each person

People are kept as keyed hashes. Anything wrong leaves everything as it was; a second run of the same
file changes nothing; a changed answer corrects the earlier one, which is kept.

example
  manage.py import_answers export.json --tool label-studio --campaign main
"""

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Which file, from where, into what."""
        parser.add_argument("source", metavar="FILE", type=Path)
        parser.add_argument("--tool", required=True, choices=list(TOOLS))
        parser.add_argument("--campaign", default="", help="slug; default: the only one")
        self.add_json(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        """Read all, store all, report."""
        self.as_json = options["json"]
        watch = Watch()
        try:
            report = import_answers(
                campaign=campaign_named(options["campaign"]), tool=options["tool"],
                source=options["source"], now=timezone.now(),
            )  # fmt: skip
        except (AnswerFileError, RatingFileError) as error:
            raise CommandError(f"{error}. Nothing was stored.") from error
        self.answer(
            {"campaign": report.campaign, "created": report.created,
             "unchanged": report.unchanged, "corrected": report.corrected, "raters": report.raters,
             "images": report.items, "seconds": watch.seconds},
            f"Stored {report.created:,} judgements of {report.items:,} images by {report.raters}"
            f" people in {report.campaign}, {report.corrected:,} corrected, {report.unchanged:,} were"
            f" there already, in {watch}.",
        )  # fmt: skip
