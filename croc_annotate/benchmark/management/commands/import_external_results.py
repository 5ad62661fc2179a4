"""manage.py import_external_results: numbers of papers and other boards."""

from __future__ import annotations

import time
from argparse import RawDescriptionHelpFormatter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.core.management.base import BaseCommand, CommandError

from croc_annotate.benchmark.external import ExternalResultError, import_external_results

if TYPE_CHECKING:
    from django.core.management.base import CommandParser


class Command(BaseCommand):
    """Import results from elsewhere."""

    help = """Keep results from elsewhere beside the leaderboard.

FILE is a CSV with board, metric, configuration, measure, value, unit, source and optionally
source_date (2024-05-31), higher_is_better (yes), reproduced (no). They are shown apart, with
their source, and never ranked with measured rows.

Example row:
  MS-COCO (Hard),SigLIP 400M,zero-shot,Recall@1,30.4,%,the board's page,,yes,no"""

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        """Keep the line breaks of the help text."""
        kwargs["formatter_class"] = RawDescriptionHelpFormatter
        return super().create_parser(prog_name, subcommand, **kwargs)

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments."""
        parser.add_argument("file", metavar="FILE", type=Path)

    def handle(self, *args: Any, **options: Any) -> None:
        """Run the command."""
        start = time.perf_counter()
        try:
            done = import_external_results(options["file"])
        except ExternalResultError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(
            f"Kept {done.created} new, {done.updated} changed and {done.unchanged} unchanged "
            f"results in {time.perf_counter() - start:.1f} s."
        )
