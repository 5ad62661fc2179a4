"""Show how far the annotators of a campaign agree."""

from __future__ import annotations

import json
import time
from argparse import ArgumentTypeError, RawDescriptionHelpFormatter
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from croc_annotate.agreement.arguments import campaign_named
from croc_annotate.agreement.plaintext import report_lines
from croc_annotate.agreement.reporting import DRAWS, SEED
from croc_annotate.agreement.services import BY, agreement_report

MANUAL = f"""\
Show how far the annotators of a campaign agree.

Counted are current judgements of work items: no gold, practice or reference
answers, none that came late (surplus) and none that were set aside. The coefficients
are over items with at least two votes (accept or reject; "cannot tell" is no vote)
against the text that the image stands for. In an adaptive campaign only the first two
votes of each item enter them, as stopping early would bias the rest.

  raw      mean over items of the share of equal pairs of votes
  alpha    Krippendorff's alpha, nominal
  AC1      Gwet's AC1, which stays readable when nearly all images match
  Fleiss   only where every item has equally many votes
  Cohen    only between two raters

Intervals are 95 % percentile bootstrap intervals over contrast pairs. A value that is
undefined is shown as a dash (null in JSON) with its reason in words.

--by takes one or more of: {", ".join(BY)}

Examples:
  manage.py agreement --campaign main
  manage.py agreement --by category,generator --json > agreement.json
"""


class Command(BaseCommand):
    """Print the agreement report as a table or as JSON."""

    help = MANUAL

    def create_parser(self, *args: Any, **kwargs: Any) -> CommandParser:
        """Keep the lines of the manual as they are."""
        kwargs.setdefault("formatter_class", RawDescriptionHelpFormatter)
        return super().create_parser(*args, **kwargs)

    def add_arguments(self, parser: CommandParser) -> None:
        """Which campaign, by what, in which form."""
        parser.add_argument("--campaign", help="Slug of the campaign (default: the only one).")
        parser.add_argument("--by", type=_dimensions, default=[], help="Comma-separated parts.")
        parser.add_argument(
            "--draws", type=int, default=DRAWS, help="Bootstrap draws (%(default)s)."
        )
        parser.add_argument("--seed", type=int, default=SEED, help="Seed of the draws.")
        parser.add_argument("--json", action="store_true", help="One JSON document on stdout.")

    def handle(self, *args: Any, **options: Any) -> None:
        """Compute and print."""
        started = time.perf_counter()
        if options["draws"] < 0:
            raise CommandError("--draws must not be negative", returncode=2)
        found = agreement_report(
            campaign=campaign_named(options["campaign"]),
            by=options["by"],
            draws=options["draws"],
            seed=options["seed"],
        )
        if options["json"]:
            self.stdout.write(json.dumps(found, indent=1, ensure_ascii=False, allow_nan=False))
            return
        for line in report_lines(found):
            self.stdout.write(line)
        row, seconds = found["all"], time.perf_counter() - started
        self.stdout.write(
            f"{found['campaign']}: {row['judgements']:,} judgements of {row['items']:,} items"
            f" by {row['raters']:,} people in {seconds:.1f} s"
        )


def _dimensions(value: str) -> list[str]:
    names = [name.strip() for name in value.split(",") if name.strip()]
    unknown = [name for name in names if name not in BY]
    if unknown:
        raise ArgumentTypeError(f"unknown part {unknown[0]!r}; use {', '.join(BY)}")
    return names
