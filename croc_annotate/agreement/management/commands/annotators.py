"""Show how each annotator of a campaign works, and whom to talk to first."""

from __future__ import annotations

import json
import time
from argparse import RawDescriptionHelpFormatter
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from croc_annotate.agreement.annotators import annotator_rows
from croc_annotate.agreement.arguments import campaign_named
from croc_annotate.agreement.modelling import fit_campaign
from croc_annotate.agreement.people_pages import named
from croc_annotate.agreement.plaintext import annotator_lines
from croc_annotate.agreement.reading import campaign_data, gold_votes

MANUAL = """\
Show how each annotator of a campaign works, and whom to talk to first.

People stand under the pseudonyms that they have in exported files (--names shows who
they are). The first ones have the weightiest reasons for a talk; the reasons follow
the table. A reason is a question to ask, not a verdict.

  judged   counted judgements of work items
  accepts  share of accepts; "others" is what the same items got from other people
  gold     share of right answers on items of known truth
  agrees   how often the vote equals the majority of the others (leave-one-out)
  sens     estimated share of matches that this person accepts (two-coin Dawid-Skene)
  spec     estimated share of non-matches that this person rejects
  median   visible, active seconds for one answer
  minute   most answers within one minute
  run      longest run of equal answers

Examples:
  manage.py annotators --campaign main
  manage.py annotators --json > annotators.json
"""


class Command(BaseCommand):
    """Print the annotators as a table or as JSON."""

    help = MANUAL

    def create_parser(self, *args: Any, **kwargs: Any) -> CommandParser:
        """Keep the lines of the manual as they are."""
        kwargs.setdefault("formatter_class", RawDescriptionHelpFormatter)
        return super().create_parser(*args, **kwargs)

    def add_arguments(self, parser: CommandParser) -> None:
        """Which campaign, in which form."""
        parser.add_argument("--campaign", help="Slug of the campaign (default: the only one).")
        parser.add_argument("--names", action="store_true", help="Show names, not pseudonyms.")
        parser.add_argument("--json", action="store_true", help="One JSON document on stdout.")

    def handle(self, *args: Any, **options: Any) -> None:
        """Compute and print."""
        started = time.perf_counter()
        campaign = campaign_named(options["campaign"])
        data, gold = campaign_data(campaign), gold_votes(campaign)
        model = fit_campaign(data, gold)
        rows = annotator_rows(data, gold, model)
        if options["names"]:
            rows = [{**row, "person": row["name"]} for row in named(rows)]
        if options["json"]:
            document = {"campaign": campaign.slug, "model": model.as_dict(), "annotators": rows}
            text = json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False)
            self.stdout.write(text)
            return
        for line in annotator_lines(rows):
            self.stdout.write(line)
        seconds = time.perf_counter() - started
        reasons = sum(bool(row["concerns"]) for row in rows)
        self.stdout.write(
            f"{campaign.slug}: {len(rows):,} people, {reasons} to talk to, in {seconds:.1f} s"
        )
