"""manage.py leaderboard: the ranking of a release's metrics, in six formats."""

from __future__ import annotations

import json
import time
from argparse import RawDescriptionHelpFormatter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.core.management.base import BaseCommand, CommandError

from croc_annotate.benchmark.boards import (
    EmptyBoardError,
    View,
    board_names,
    cached_images,
    narrow,
    release_board,
    run_scores,
)
from croc_annotate.benchmark.intervals import DRAWS, SEED
from croc_annotate.benchmark.protocol import MissingScoresError, Policy
from croc_annotate.benchmark.results import FACETS, by_facet
from croc_annotate.benchmark.selectors import shown_runs
from croc_annotate.benchmark.writing import board_document, write_board
from croc_annotate.lib.atomic import write_atomically
from croc_annotate.releases.selectors import ReleaseNotFoundError, find_release

if TYPE_CHECKING:
    from django.core.management.base import CommandParser

    from croc_annotate.benchmark.board import Board
    from croc_annotate.releases.models import Release

FORMATS = ("table", "csv", "json", "latex", "png", "pdf")


class Command(BaseCommand):
    """Print or draw the leaderboard."""

    help = """The leaderboard of a release: ranks, groups, intervals, both heat maps.

Metrics are ranked by the mean of the four directions, averaged over categories. Metrics that
share a letter cannot be told apart (paired bootstrap over contrast pairs, Holm's correction).
A row that misses a category is marked and not ranked; `random` and `human` are reference rows.

table, csv and json go to standard output, latex too (booktabs); png and pdf need --out.

Examples:
  manage.py leaderboard
  manage.py leaderboard --release CROChum --missing loss --format json
  manage.py leaderboard --format pdf --out leaderboard.pdf"""

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        """Keep the line breaks of the help text."""
        kwargs["formatter_class"] = RawDescriptionHelpFormatter
        return super().create_parser(prog_name, subcommand, **kwargs)

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments."""
        parser.add_argument("--release", default="", help="name or name@version (default: newest)")
        parser.add_argument("--missing", choices=["error", "skip", "loss"], default="error")
        parser.add_argument("--ties", choices=["loss", "half"], default="loss")
        parser.add_argument("--margin", type=float, default=0.0, help="smaller differences tie")
        parser.add_argument("--generator", default="", help="only this generator's images")
        parser.add_argument("--category", action="append", default=[], help="only this; repeatable")
        parser.add_argument(
            "--on-human", action="store_true", help="only images that the human row has votes on"
        )
        parser.add_argument(
            "--by", action="append", default=[], choices=FACETS,
            help="json only: add cells by this grouping; repeatable",
        )  # fmt: skip
        parser.add_argument("--draws", type=int, default=DRAWS, help="of the bootstrap")
        parser.add_argument("--seed", type=int, default=SEED, help="of the bootstrap")
        parser.add_argument("--format", choices=FORMATS, default="table")
        parser.add_argument("--out", type=Path, metavar="FILE", help="write here")
        parser.add_argument("--force", action="store_true", help="overwrite FILE")

    def handle(self, *args: Any, **options: Any) -> None:
        """Run the command."""
        start = time.perf_counter()
        out: Path | None = options["out"]
        if options["format"] in {"png", "pdf"} and out is None:
            raise CommandError(f"--format {options['format']} needs --out FILE.", returncode=2)
        if out is not None and out.exists() and not options["force"]:
            raise CommandError(f"{out} is there already; use --force to overwrite it.")
        try:
            release = find_release(options["release"])
            view = _view(options)
            board = release_board(release, view)
            data = self._render(release, board, view, options)
        except MissingScoresError as error:
            raise CommandError(f"{error} (--missing skip, --missing loss)") from error
        except (ReleaseNotFoundError, EmptyBoardError) as error:
            raise CommandError(str(error)) from error
        if out is not None:
            write_atomically(out, data, force=options["force"])
            self.stdout.write(
                f"Wrote {len(board.entries)} metrics to {out} "
                f"in {time.perf_counter() - start:.1f} s."
            )
            return
        self.stdout.write(data.decode())
        if options["format"] == "table":
            self.stdout.write(
                f"{len(board.entries)} metrics on “{release}” "
                f"in {time.perf_counter() - start:.1f} s."
            )

    def _render(self, release: Release, board: Board, view: View, options: dict[str, Any]) -> bytes:
        if not options["by"]:
            return write_board(release, board, options["format"])
        if options["format"] != "json":
            raise CommandError("--by goes with --format json.", returncode=2)
        document = board_document(release, board)
        document["by"] = _facets(release, board, view, options["by"])
        return json.dumps(document, ensure_ascii=False, allow_nan=False, indent=1).encode()


def _facets(
    release: Release, board: Board, view: View, facets: list[str]
) -> dict[str, dict[str, Any]]:
    """Metric → facet → value → cells."""
    images = cached_images(release)
    runs = shown_runs(release)
    names = board_names(runs)
    scores = {names[run.pk]: run_scores(run, images) for run in runs}
    _, narrowed, _, _ = narrow(images, scores, view)
    return {
        e.name: {facet: by_facet(facet, e.evaluation, narrowed[e.name]) for facet in facets}
        for e in board.entries
    }


def _view(options: dict[str, Any]) -> View:
    return View(
        policy=Policy(ties=options["ties"], missing=options["missing"], margin=options["margin"]),
        generator=options["generator"],
        categories=tuple(options["category"]),
        voted_only=options["on_human"],
        draws=options["draws"],
        seed=options["seed"],
    )
