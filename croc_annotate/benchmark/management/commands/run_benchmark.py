"""manage.py run_benchmark: score a release's images with metrics."""

from __future__ import annotations

import json
import sys
import time
from argparse import RawDescriptionHelpFormatter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.core.management.base import BaseCommand, CommandError
from tqdm import tqdm

from croc_annotate.benchmark import registry
from croc_annotate.benchmark.benchmarking import RunRequest, plan_run, run_here
from croc_annotate.benchmark.boards import prepare
from croc_annotate.benchmark.flat_index import FAISS_FROM
from croc_annotate.benchmark.human_files import HumanFileError
from croc_annotate.benchmark.metric import MetricError, MetricOptions
from croc_annotate.benchmark.other_sets import SetFileError
from croc_annotate.benchmark.selectors import release_images
from croc_annotate.benchmark.set_running import BATCH, SETS, SetFiles, run_retrieval, run_set
from croc_annotate.benchmark.tasks import enqueue_run
from croc_annotate.releases.selectors import ReleaseNotFoundError, find_release

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.core.management.base import CommandParser

    from croc_annotate.benchmark.benchmarking import Plan
    from croc_annotate.benchmark.metric import Metric
    from croc_annotate.benchmark.models import MetricRun
    from croc_annotate.benchmark.selectors import ReleaseImages
    from croc_annotate.releases.models import Release


class Command(BaseCommand):
    """Run metrics on a release."""

    help = """Score every verified image of a release against both texts of its pair.

A score is stored under the metric's fingerprint, the image's hash and the text's hash, and
is never computed twice: a run that was killed goes on where it stopped, and images that two
releases share are scored once. Each image is read and encoded once for all its texts.

A score that is missing because a call failed is asked for again by the next run. One that the
metric cannot give (a text without a noun phrase, a result that is no number) is remembered with
its reason; --retry-missing asks for it again.

Metrics: see --list, or package.module:Class, or a name that an installed package declares
under the entry point group croc_annotate.metrics. `random` and `human` are reference rows.

--set runs on the files of another benchmark instead, --retrieval on retrieval over the
release; both print one JSON document a metric and store nothing.
  winoground: examples.jsonl · sugarcrepe: one JSON file or a folder of them · tifa,
  genai-bench: human grades · coco-5k, coco-1k, flickr30k: Karpathy's JSON · mscoco-fg,
  flickr30k-fg: {image: [captions]}, with --pool-file for further images

Examples:
  manage.py run_benchmark --metric clipscore --release CROChum
  manage.py run_benchmark --metric random --metric human
  manage.py run_benchmark --metric vqascore --model Qwen/Qwen2.5-VL-7B-Instruct --dtype bfloat16
  manage.py run_benchmark --metric clipscore --replicate bf16 --dtype bfloat16
  manage.py run_benchmark --metric clipscore --set winoground --file examples.jsonl --images images/
  manage.py run_benchmark --metric siglip --retrieval --pool pair --neighbours-by clipscore"""

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        """Keep the line breaks of the help text."""
        kwargs["formatter_class"] = RawDescriptionHelpFormatter
        return super().create_parser(prog_name, subcommand, **kwargs)

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments."""
        parser.add_argument("--metric", action="append", default=[], metavar="NAME")
        parser.add_argument("--list", action="store_true", help="list the metrics and stop")
        parser.add_argument("--release", default="", help="name or name@version (default: newest)")
        parser.add_argument("--model", help="model id or local folder")
        parser.add_argument("--revision", help="commit of the model")
        parser.add_argument("--device", help="cpu, cuda, cuda:1, mps (default: the best there is)")
        parser.add_argument("--dtype", choices=["float32", "bfloat16", "float16"])
        parser.add_argument("--prompt", help="the question's template, with {text}")
        parser.add_argument("--seed", type=int, default=0, help="of metrics that draw")
        parser.add_argument(
            "--option", action="append", default=[], metavar="KEY=VALUE", help="for the metric"
        )
        parser.add_argument(
            "--batch-size", default="auto", help="a number, or auto: found by doubling (default)"
        )
        parser.add_argument("--workers", type=int, default=2, help="threads that decode images")
        parser.add_argument("--limit", type=int, default=0, help="only N images: a trial")
        parser.add_argument(
            "--retry-missing", action="store_true",
            help="ask again for scores that the metric could not give before",
        )  # fmt: skip
        parser.add_argument(
            "--replicate", default="", metavar="LABEL",
            help="score again under this label, to compare with compare_runs; never ranked",
        )  # fmt: skip
        other = parser.add_argument_group("other benchmarks and retrieval")
        other.add_argument("--set", choices=SETS, help="run on this set's files")
        other.add_argument("--file", type=Path, help="the set's file")
        other.add_argument("--images", type=Path, metavar="DIR", help="the set's images")
        other.add_argument("--pool-file", type=Path, help="further images of the pool")
        other.add_argument("--retrieval", action="store_true", help="retrieval over the release")
        other.add_argument("--pool", choices=["full", "pair"], default="full")
        other.add_argument("--neighbours-by", metavar="METRIC", help="the frozen encoder of a pool")
        other.add_argument(
            "--index", choices=["auto", "exact", "faiss"], default="auto",
            help=f"the same ranks by matrix products or with FAISS; auto (default): FAISS where it "
            f"is installed and a pool has {FAISS_FROM:,} items or more",
        )  # fmt: skip
        where = parser.add_mutually_exclusive_group()
        where.add_argument("--here", action="store_true", help="in this process (default)")
        where.add_argument("--queue", action="store_true", help="over the gpu workers")

    def handle(self, *args: Any, **options: Any) -> None:
        """Run the command."""
        if options["list"]:
            self.stdout.write("\n".join(registry.names()))
            return
        if not options["metric"]:
            raise CommandError("name a metric with --metric; --list shows them.", returncode=2)
        if options["set"] or options["retrieval"]:
            _refuse_unheeded(options)
        if options["set"]:
            self._print(lambda metric: _run_set(metric, options), options)
            return
        try:
            release = find_release(options["release"])
        except ReleaseNotFoundError as error:
            raise CommandError(str(error)) from error
        if options["retrieval"]:
            images = release_images(release)
            self._print(lambda metric: _run_retrieval(metric, images, options), options)
            return
        start = time.perf_counter()
        failed = [m for m in options["metric"] if not self._one(release, m, options)]
        done = len(options["metric"]) - len(failed)
        if done and not options["queue"]:
            prepare(release)
        verb = "Queued" if options["queue"] else "Scored"
        self.stdout.write(
            f"{verb} “{release}” with {done} of {len(options['metric'])} metrics "
            f"in {time.perf_counter() - start:.1f} s."
        )
        if failed:
            raise CommandError(f"did not work: {', '.join(failed)} (reasons above).")

    def _print(self, call: Callable[[Metric], dict[str, Any]], options: dict[str, Any]) -> None:
        """One JSON line a metric."""
        for name in options["metric"]:
            try:
                metric = registry.create(name, options=_metric_options(_request(name, options)))
                try:
                    document = call(metric)
                finally:
                    metric.close()
            except (MetricError, SetFileError, HumanFileError) as error:
                raise CommandError(f"{name}: {error}") from error
            self.stdout.write(json.dumps(document, ensure_ascii=False, allow_nan=False))

    def _one(self, release: Release, metric: str, options: dict[str, Any]) -> bool:
        request = _request(metric, options)
        try:
            if options["queue"]:
                plan = plan_run(release=release, request=request)
                plan.metric.close()
                tasks = enqueue_run(plan.run)
                self.stdout.write(f"{metric}: {len(plan.tasks):,} images in {tasks} tasks")
                return True
            run = run_here(release=release, request=request, on_start=_progress)
        except MetricError as error:
            self.stderr.write(self.style.ERROR(f"{metric}: {error}"))
            return False
        self.stdout.write(_summary(metric, run))
        return True


def _request(metric: str, options: dict[str, Any]) -> RunRequest:
    extra = {}
    for item in options["option"]:
        key, equals, value = item.partition("=")
        if not equals:
            raise CommandError(f"--option {item}: write KEY=VALUE.", returncode=2)
        extra[key] = value
    size = options["batch_size"]
    if size != "auto" and not (str(size).isdigit() and int(size) > 0):
        raise CommandError(f"--batch-size {size}: a whole number, or auto.", returncode=2)
    return RunRequest(
        metric=metric,
        **{key: options[key] for key in ("model", "revision", "device", "dtype", "prompt")},
        **{key: options[key] for key in ("seed", "workers", "limit", "replicate", "retry_missing")},
        batch_size=0 if size == "auto" else int(size),
        extra=extra,
    )


def _metric_options(request: RunRequest) -> MetricOptions:
    return MetricOptions(
        model=request.model,
        revision=request.revision,
        device=request.device,
        dtype=request.dtype,
        prompt=request.prompt,
        seed=request.seed,
        extra=request.extra,
    )


def _refuse_unheeded(options: dict[str, Any]) -> None:
    """What only a run on a release heeds is refused beside --set and --retrieval, not passed over."""
    for name in ("queue", "limit", "replicate", "retry_missing"):
        if options[name]:
            kind = "--set" if options["set"] else "--retrieval"
            raise CommandError(
                f"--{name.replace('_', '-')} does not go with {kind}: nothing is stored there.",
                returncode=2,
            )


def _run_set(metric: Metric, options: dict[str, Any]) -> dict[str, Any]:
    if options["file"] is None or options["images"] is None:
        raise CommandError("--set needs --file and --images.", returncode=2)
    files = SetFiles(options["file"], options["images"], options["pool_file"])
    batch = _request("", options).batch_size or BATCH
    return run_set(metric, options["set"], files, batch=batch, index=options["index"])


def _run_retrieval(
    metric: Metric, images: ReleaseImages, options: dict[str, Any]
) -> dict[str, Any]:
    encoder = registry.create(options["neighbours_by"]) if options["neighbours_by"] else None
    try:
        document = run_retrieval(
            metric, images, pool=options["pool"], encoder=encoder, index=options["index"],
            batch=_request("", options).batch_size or BATCH,
        )  # fmt: skip
    finally:
        if encoder is not None:
            encoder.close()
    return {"metric": metric.describe().parts(), **document}


def _progress(plan: Plan) -> Callable[[int], None]:
    """A bar with images a second and the time that is left, on a terminal."""
    bar = tqdm(
        total=len(plan.tasks),
        desc=plan.request.metric,
        unit="image",
        file=sys.stderr,
        disable=not sys.stderr.isatty(),
        dynamic_ncols=True,
    )

    def advance(images: int) -> None:
        bar.update(images)
        if bar.n >= len(plan.tasks):
            bar.close()

    return advance


def _summary(metric: str, run: MetricRun) -> str:
    parts = [f"{run.n_scores:,} scores"]
    if run.n_reused:
        parts.append(f"{run.n_reused:,} were stored already")
    if run.n_missing:
        reasons = f" ({'; '.join(run.reasons)})" if run.reasons else ""
        parts.append(f"{run.n_missing:,} missing{reasons}")
        if run.metric.scores.filter(value__isnull=True).exists():
            parts.append("remembered (--retry-missing asks again)")
    if run.n_truncated:
        parts.append(f"{run.n_truncated:,} texts were longer than the model reads")
    if run.environment.get("spent_usd"):
        parts.append(f"${run.environment['spent_usd']:,.2f} spent")
    rate = run.timing.get("images_per_second")
    if rate:
        parts.append(f"{rate:,.1f} images/s")
    return f"{metric}: {', '.join(parts)}"
