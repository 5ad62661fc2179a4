"""manage.py export_scores: stored scores as tables that the published scripts read."""

from __future__ import annotations

import time
from argparse import RawDescriptionHelpFormatter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.core.management.base import BaseCommand, CommandError

from croc_annotate.benchmark.exporting import export_source, write_parquet, write_tables
from croc_annotate.releases.selectors import ReleaseNotFoundError, find_release

if TYPE_CHECKING:
    from django.core.management.base import CommandParser


class Command(BaseCommand):
    """Export stored scores."""

    help = """Write the scores of a release's metrics.

tables:  DIR/CATEGORY_prompt_img_scores.tsv and …_contrast_img_scores.tsv, with the metric
         names and the spelling of the published files; evaluate_scores reads them.
parquet: DIR/scores.parquet with metric, pair_id, side, image_sha256, text_role, score.

Example:
  manage.py export_scores out/scores --release CROChum --format tables --gzip"""

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        """Keep the line breaks of the help text."""
        kwargs["formatter_class"] = RawDescriptionHelpFormatter
        return super().create_parser(prog_name, subcommand, **kwargs)

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments."""
        parser.add_argument("folder", metavar="DIR", type=Path)
        parser.add_argument("--release", default="", help="name or name@version (default: newest)")
        parser.add_argument("--metric", action="append", default=[], help="only this; repeatable")
        parser.add_argument("--format", choices=["tables", "parquet"], default="tables")
        parser.add_argument("--gzip", action="store_true", help="write .tsv.gz")
        parser.add_argument("--force", action="store_true", help="overwrite what is there")

    def handle(self, *args: Any, **options: Any) -> None:
        """Run the command."""
        start = time.perf_counter()
        out: Path = options["folder"]
        if out.is_file():
            raise CommandError(f"{out} is a file; give a folder.")
        if out.is_dir() and any(out.iterdir()) and not options["force"]:
            raise CommandError(f"{out} is not empty; choose another folder, or use --force.")
        try:
            release = find_release(options["release"])
        except ReleaseNotFoundError as error:
            raise CommandError(str(error)) from error
        source = export_source(release, metrics=options["metric"])
        if not source.scores:
            raise CommandError(f"“{release}” has no finished run of these metrics.")
        if options["format"] == "parquet":
            out.mkdir(parents=True, exist_ok=True)
            count, what = write_parquet(source, out / "scores.parquet"), "scores"
        else:
            count, what = len(write_tables(source, out, compress=options["gzip"])), "tables"
        self.stdout.write(
            f"Wrote {count:,} {what} of {len(source.scores)} metrics to {out} "
            f"in {time.perf_counter() - start:.1f} s."
        )
