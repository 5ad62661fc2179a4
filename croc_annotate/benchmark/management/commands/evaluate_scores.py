"""manage.py evaluate_scores: the scoring protocol on score tables, without a database."""

from __future__ import annotations

import json
import time
from argparse import RawDescriptionHelpFormatter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.core.management.base import BaseCommand, CommandError

from croc_annotate.benchmark import crocsyn_tables, score_tables
from croc_annotate.benchmark.board import board_json, build_board
from croc_annotate.benchmark.protocol import MissingScoresError, Policy
from croc_annotate.benchmark.results import evaluate_all, metric_result
from croc_annotate.benchmark.table_errors import ScoreTableError
from croc_annotate.benchmark.text_table import aligned, averages, by_category, number

if TYPE_CHECKING:
    from django.core.management.base import CommandParser


class Command(BaseCommand):
    """Evaluate a folder of score tables."""

    help = """Evaluate score tables by the scoring protocol. No database is used.

DIR holds, for each category, CATEGORY_prompt_img_scores.tsv and
CATEGORY_contrast_img_scores.tsv (or .tsv.gz) with the columns id, prompt, contrast,
prompt_paths (contrast_paths in the second file) and two columns a metric.
--mode crocsyn reads part*_scores.tsv instead, in any depth below DIR.

A metric is right when the score of the verified text (or image) is strictly higher.
Values are means over contrast pairs, then over categories, in 0…1.

Examples:
  manage.py evaluate_scores scores/
  manage.py evaluate_scores scores/ --missing loss --json > results.json
  manage.py evaluate_scores scores/ --intervals --by-category"""
    requires_system_checks = []
    requires_migrations_checks = False

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        """Keep the line breaks of the help text."""
        kwargs["formatter_class"] = RawDescriptionHelpFormatter
        return super().create_parser(prog_name, subcommand, **kwargs)

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments."""
        parser.add_argument("folder", metavar="DIR", type=Path)
        parser.add_argument("--mode", choices=["crochum", "crocsyn"], default="crochum")
        parser.add_argument(
            "--missing",
            choices=["error", "skip", "loss"],
            default="error",
            help="a missing score is an error (default), left out, or a loss (as published)",
        )
        parser.add_argument(
            "--ties",
            choices=["loss", "half"],
            default="loss",
            help="a tie counts nothing (default, as published) or half",
        )
        parser.add_argument(
            "--margin", type=float, default=0.0, help="scores that differ by at most this tie"
        )
        parser.add_argument(
            "--intervals", action="store_true", help="add 95%% intervals, ranks and groups"
        )
        parser.add_argument("--by-category", action="store_true", help="print each category too")
        parser.add_argument("--json", action="store_true", help="print one JSON document")

    def handle(self, *args: Any, **options: Any) -> None:
        """Run the command."""
        start = time.perf_counter()
        try:
            crocsyn = options["mode"] == "crocsyn"
            document = _crocsyn(options) if crocsyn else _crochum(options)
        except (ScoreTableError, MissingScoresError) as error:
            raise CommandError(str(error)) from error
        if options["json"]:
            self.stdout.write(json.dumps(document, ensure_ascii=False, allow_nan=False))
            return
        if crocsyn:
            self.stdout.write(_crocsyn_text(document))
        else:
            self.stdout.write(averages(document["metrics"]))
            if options["by_category"]:
                self.stdout.write("\n" + by_category(document["metrics"]))
        seconds = time.perf_counter() - start
        self.stdout.write(f"Evaluated {len(document['metrics'])} metrics in {seconds:.2f} s.")


def _crochum(options: dict[str, Any]) -> dict[str, Any]:
    tables = score_tables.read(options["folder"])
    layout = tables.layout()
    scores = {metric: tables.scores(metric) for metric in tables.metrics}
    policy = Policy(ties=options["ties"], missing=options["missing"], margin=options["margin"])
    if options["intervals"]:
        return {**board_json(build_board(layout, scores, policy=policy)), "absent": tables.absent}
    evaluations = evaluate_all(layout, scores, policy=policy)
    return {
        "missing": policy.missing,
        "ties": policy.ties,
        "pairs": layout.n_pairs,
        "images": len(layout.prompt) + len(layout.contrast),
        "absent": tables.absent,
        "metrics": {
            name: metric_result(name, evaluation, scores=scores[name]).as_json()
            for name, evaluation in evaluations.items()
        },
    }


def _crocsyn(options: dict[str, Any]) -> dict[str, Any]:
    if options["ties"] != "loss" or options["missing"] == "skip" or options["margin"]:
        raise CommandError(
            "CROCsyn mode has its own rules: ties are losses, a missing own score is dropped, "
            "a missing contrast score is a loss. Leave --ties, --missing and --margin out."
        )
    return crocsyn_tables.evaluate(crocsyn_tables.read(options["folder"]))


def _crocsyn_text(document: dict[str, Any]) -> str:
    directions = list(document["chance"])
    rows = [["metric", "mode", *directions, "(scaled: chance 0)"]]
    for name, metric in document["metrics"].items():
        for mode, cell in [*metric["categories"].items(), ("AVG", metric["average"])]:
            values = [f"{number(cell[d])} ({number(cell[f'scaled_{d}'])})" for d in directions]
            rows.append([name, mode, *values, ""])
    chance = ", ".join(f"{d} {level:.3f}" for d, level in document["chance"].items())
    return f"{aligned(rows)}\nChance for independent scores: {chance}."
