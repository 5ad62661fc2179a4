"""manage.py compare_runs: two runs of one metric, e.g. in another dtype or on another device."""

from __future__ import annotations

import json
import time
from argparse import RawDescriptionHelpFormatter
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from django.core.management.base import BaseCommand, CommandError

from croc_annotate.benchmark.boards import cached_images, run_scores
from croc_annotate.benchmark.comparing import RunDifference, compare_scores
from croc_annotate.benchmark.models import MetricRun
from croc_annotate.benchmark.protocol import Policy, evaluate
from croc_annotate.benchmark.text_table import aligned, number

if TYPE_CHECKING:
    from django.core.management.base import CommandParser


class Command(BaseCommand):
    """Compare two runs."""

    help = """Compare the scores of two runs on one release, image by image.

Shows the largest and the median difference of a score, how many comparisons went another way
(right, tie, wrong), and the accuracy of both. Use it on a run and its replicate in another
dtype, batch size or on another device:

  manage.py run_benchmark --metric clipscore
  manage.py run_benchmark --metric clipscore --replicate bf16 --dtype bfloat16
  manage.py compare_runs --list
  manage.py compare_runs 12 15"""

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        """Keep the line breaks of the help text."""
        kwargs["formatter_class"] = RawDescriptionHelpFormatter
        return super().create_parser(prog_name, subcommand, **kwargs)

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments."""
        parser.add_argument("runs", nargs="*", type=int, metavar="RUN", help="two run numbers")
        parser.add_argument("--list", action="store_true", help="list the runs and stop")
        parser.add_argument("--margin", type=float, default=0.0, help="smaller differences tie")
        parser.add_argument("--json", action="store_true", help="print one JSON document")

    def handle(self, *args: Any, **options: Any) -> None:
        """Run the command."""
        start = time.perf_counter()
        if options["list"]:
            self.stdout.write(_listing())
            return
        if len(options["runs"]) != 2:
            raise CommandError("give two run numbers; --list shows them.", returncode=2)
        first, second = (_run(number) for number in options["runs"])
        if first.release_id != second.release_id:
            raise CommandError("the runs are on different releases; they cannot be compared.")
        found = _compare(first, second, options["margin"])
        if options["json"]:
            document = {**asdict(found), "changed_share": found.changed_share}
            self.stdout.write(json.dumps(document, allow_nan=False))
            return
        self.stdout.write(_text(found))
        self.stdout.write(
            f"Compared {found.compared:,} scores of runs {first.pk} and {second.pk} "
            f"in {time.perf_counter() - start:.1f} s."
        )


def _compare(first: MetricRun, second: MetricRun, margin: float) -> RunDifference:
    images = cached_images(first.release)
    a, b = run_scores(first, images), run_scores(second, images)
    policy = Policy(missing="skip", margin=margin)
    both = (
        evaluate(images.layout, a, policy=policy),
        evaluate(images.layout, b, policy=policy),
    )
    return compare_scores(images.layout, a, b, both, margin=margin)


def _run(pk: int) -> MetricRun:
    run = MetricRun.objects.with_metric().select_related("release").filter(pk=pk).first()
    if run is None:
        raise CommandError(f"there is no run {pk}; --list shows them.")
    return run


def _listing() -> str:
    rows = [["run", "metric", "release", "state", "replicate", "dtype", "finished"]]
    rows += [
        [
            str(run.pk),
            run.metric.label,
            str(run.release),
            run.state,
            run.replicate or "–",
            str(run.metric.parts.get("dtype") or "–"),
            f"{run.finished_at:%Y-%m-%d %H:%M}" if run.finished_at else "–",
        ]
        for run in MetricRun.objects.select_related("metric", "release").order_by("pk")
    ]
    return aligned(rows)


def _text(found: RunDifference) -> str:
    rows = [["direction", "first", "second", "other outcome", "of"]]
    for direction, (a, b) in found.values.items():
        rows.append([
            direction, number(a, 4), number(b, 4), f"{found.changed[direction]:,}",
            f"{found.comparisons[direction]:,}",
        ])  # fmt: skip
    return (
        f"{aligned(rows)}\nLargest difference of a score {found.largest:.3g}, "
        f"median {found.median:.3g}; {100 * found.changed_share:.3f} % of comparisons changed."
    )
