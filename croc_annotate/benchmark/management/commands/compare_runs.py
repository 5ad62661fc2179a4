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

Shows the largest and the median difference of a score, each run's noise floor (the largest
change of a score when an image is scored again, alone), how many comparisons went another way
(right, tie, wrong), and the accuracy of both. Use it on a run and its replicate in another
dtype, batch size or on another device. Runs of different metrics (name, model, revision or
prompt) or on different releases are not compared.

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
        _refuse(first, second)
        found = _compare(first, second, options["margin"])
        floors = {"first": _noise_floor(first), "second": _noise_floor(second)}
        if options["json"]:
            document = {
                **asdict(found),
                "changed_share": found.changed_share,
                "noise_floor": floors,
                "differ_in": _differing(first, second),
            }
            self.stdout.write(json.dumps(document, allow_nan=False))
            return
        self.stdout.write(_text(found))
        self.stdout.write(_about(first, second, floors))
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


# What makes two runs those of different metrics; the rest (dtype, backend …) is what one compares.
_SAME = ("name", "model", "revision", "prompt")


def _refuse(first: MetricRun, second: MetricRun) -> None:
    """A row whose release or metric differs is not compared."""
    if first.release_id != second.release_id:
        raise CommandError("the runs are on different releases; they cannot be compared.")
    for part in _SAME:
        a, b = (str(run.metric.parts.get(part) or "") for run in (first, second))
        if a != b:
            raise CommandError(
                f"the runs are of different metrics: {part} is {a or '–'} in run {first.pk} and "
                f"{b or '–'} in run {second.pk}; the page “compare” sets two metrics side by side."
            )


def _differing(first: MetricRun, second: MetricRun) -> dict[str, list[Any]]:
    """Parts of the fingerprint, device and batch sizes that are others: name → both values."""
    a, b = (
        {
            **run.metric.parts,
            "replicate": run.replicate,
            "device": run.environment.get("gpu") or run.environment.get("processor"),
            "batch_sizes": run.timing.get("batch_sizes"),
        }
        for run in (first, second)
    )
    return {key: [a.get(key), b.get(key)] for key in {**a, **b} if a.get(key) != b.get(key)}


def _noise_floor(run: MetricRun) -> float | None:
    floor = run.environment.get("noise_floor")
    return None if floor is None else float(floor)


def _about(first: MetricRun, second: MetricRun, floors: dict[str, float | None]) -> str:
    """What the two runs differ in, and which differences of a score say nothing."""
    words = [
        f"{key}: {_word(a)} and {_word(b)}" for key, (a, b) in _differing(first, second).items()
    ]
    known = [floor for floor in floors.values() if floor is not None]
    noise = " and ".join("not measured" if f is None else f"{f:.3g}" for f in floors.values())
    hint = f"; --margin {max(known):.3g} counts what lies below as ties" if any(known) else ""
    return (
        f"Noise floor of the runs: {noise}{hint}.\n"
        f"They differ in {'; '.join(words) if words else 'nothing that is recorded'}."
    )


def _word(value: Any) -> str:
    return str(value) if value or value == 0 else "–"


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
