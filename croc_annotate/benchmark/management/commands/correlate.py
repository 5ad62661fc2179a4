"""manage.py correlate: how well metrics follow graded human judgements."""

from __future__ import annotations

import json
import time
from argparse import RawDescriptionHelpFormatter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.core.management.base import BaseCommand, CommandError

from croc_annotate.benchmark import human_files
from croc_annotate.benchmark.correlate import DRAWS, correlate
from croc_annotate.benchmark.human_files import HumanFileError
from croc_annotate.benchmark.text_table import aligned, number

if TYPE_CHECKING:
    from django.core.management.base import CommandParser


class Command(BaseCommand):
    """Correlate metric scores with human grades."""

    help = """Correlate the scores of metrics with graded human judgements. No database is used.

FILE is one of
  TIFA:        {key: {"text", "human_avg" or "human_scores", and a number a metric}}
  GenAI-Bench: {id: {"prompt", "models": {generator: [grades]}}}, with --scores FILE
               {metric: {"id/generator": score}} and optionally --skills FILE {skill: [ids]}

Pearson, Spearman, Kendall τ-b and τ-c over all images, the mean within a prompt, pairwise
accuracy with calibrated ties; 95 % intervals by bootstrap over prompts.

Example:
  manage.py correlate human_annotations_with_scores.json --json"""
    requires_system_checks = []
    requires_migrations_checks = False

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        """Keep the line breaks of the help text."""
        kwargs["formatter_class"] = RawDescriptionHelpFormatter
        return super().create_parser(prog_name, subcommand, **kwargs)

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments."""
        parser.add_argument("file", metavar="FILE", type=Path)
        parser.add_argument("--scores", type=Path, metavar="FILE", help="scores in a file apart")
        parser.add_argument("--skills", type=Path, metavar="FILE", help="prompts by skill")
        parser.add_argument(
            "--draws", type=int, default=DRAWS, help=f"bootstrap draws (default {DRAWS}; 0: none)"
        )
        parser.add_argument("--json", action="store_true", help="print one JSON document")

    def handle(self, *args: Any, **options: Any) -> None:
        """Run the command."""
        start = time.perf_counter()
        try:
            graded = human_files.read(
                options["file"], scores=options["scores"], skills=options["skills"]
            )
        except HumanFileError as error:
            raise CommandError(str(error)) from error
        metrics = correlate(graded, draws=max(0, options["draws"]))
        if options["json"]:
            self.stdout.write(json.dumps({"metrics": metrics}, allow_nan=False))
            return
        names = ["pearson", "spearman", "kendall_tau_b", "kendall_tau_c"]
        rows = [["metric", "n", *names, "pairwise acc."]]
        for name, found in metrics.items():
            accuracy = found["pairwise_accuracy"]
            values = [_with_interval(found, key) for key in names]
            last = number(accuracy["value"] if accuracy else None)
            rows.append([name, str(found["n"]), *values, last])
        self.stdout.write(aligned(rows))
        seconds = time.perf_counter() - start
        self.stdout.write(
            f"Correlated {len(metrics)} metrics with people on {len(graded.keys)} images "
            f"in {seconds:.1f} s."
        )


def _with_interval(found: dict[str, Any], key: str) -> str:
    bounds = found.get("intervals", {}).get(key)
    if not bounds or bounds["low"] is None:
        return number(found[key])
    return f"{number(found[key])} [{number(bounds['low'], 2)}, {number(bounds['high'], 2)}]"
