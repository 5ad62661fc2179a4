"""manage.py import_scores: put metrics that were computed elsewhere on the leaderboard."""

from __future__ import annotations

import time
from argparse import RawDescriptionHelpFormatter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.core.management.base import BaseCommand, CommandError

from croc_annotate.benchmark import parquet_scores, score_tables
from croc_annotate.benchmark.boards import prepare
from croc_annotate.benchmark.importing import (
    ScoreImportError,
    import_scores,
    scores_of_tables,
)
from croc_annotate.benchmark.selectors import release_images
from croc_annotate.benchmark.table_errors import ScoreTableError
from croc_annotate.releases.selectors import ReleaseNotFoundError, find_release

if TYPE_CHECKING:
    from django.core.management.base import CommandParser

    from croc_annotate.releases.models import Release


class Command(BaseCommand):
    """Import score tables."""

    help = """Import the scores of metrics that were computed elsewhere.

DIR holds score tables as evaluate_scores reads them, or DIR is one Parquet file with the
columns metric, pair_id, side, image_sha256, text_role, score. Rows of tables are matched to
the release's images by the last three parts of their path, rows of Parquet by image hash.
Every metric becomes a run on the release. Nothing is stored when a row is wrong.
Importing the same scores again changes nothing.

Examples:
  manage.py import_scores scores/ --release CROChum
  manage.py import_scores scores/ --metric VQAScore --replace"""

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        """Keep the line breaks of the help text."""
        kwargs["formatter_class"] = RawDescriptionHelpFormatter
        return super().create_parser(prog_name, subcommand, **kwargs)

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments."""
        parser.add_argument("folder", metavar="DIR", type=Path)
        parser.add_argument("--release", default="", help="name or name@version (default: newest)")
        parser.add_argument(
            "--metric", action="append", default=[], help="only this metric; may be repeated"
        )
        parser.add_argument(
            "--ignore-unknown",
            action="store_true",
            help="leave out rows about images that the release does not score",
        )
        parser.add_argument(
            "--replace",
            action="store_true",
            help="show these scores instead of those imported before under the same name",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Run the command."""
        start = time.perf_counter()
        try:
            release = find_release(options["release"])
            scores, unknown = _read(options["folder"], release, options)
            done = import_scores(
                release=release,
                scores=_chosen(scores, options["metric"]),
                replace=options["replace"],
            )
        except (ScoreTableError, ScoreImportError, ReleaseNotFoundError) as error:
            raise CommandError(str(error)) from error
        prepare(release)
        for run in done.runs:
            note = " (imported before, unchanged)" if run.metric.name in done.unchanged else ""
            self.stdout.write(
                f"{run.metric.name}: {run.n_scores:,} scores, {run.n_missing:,} missing{note}"
            )
        if unknown:
            self.stdout.write(f"{unknown:,} rows about unknown images left out")
        if done.images_without_scores:
            self.stdout.write(f"{done.images_without_scores:,} images of the release have no score")
        self.stdout.write(
            f"Imported {len(done.runs)} metrics into “{release}” "
            f"in {time.perf_counter() - start:.1f} s."
        )


def _read(
    path: Path, release: Release, options: dict[str, Any]
) -> tuple[dict[str, dict[tuple[str, str], float]], int]:
    if path.is_file():
        return parquet_scores.read(path, release_images(release)), 0
    return scores_of_tables(
        score_tables.read(path), release=release, allow_unknown=options["ignore_unknown"]
    )


def _chosen(
    scores: dict[str, dict[tuple[str, str], float]], names: list[str]
) -> dict[str, dict[tuple[str, str], float]]:
    unknown = [name for name in names if name not in scores]
    if unknown:
        raise CommandError(f"no metric {unknown[0]!r} here; there are {', '.join(scores)}.")
    return {name: scores[name] for name in names or scores}
