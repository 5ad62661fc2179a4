"""Plan, enqueue and render the candidates of a benchmark."""

from __future__ import annotations

import argparse
import json
import signal
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone
from kombu.exceptions import OperationalError

from croc_annotate.candidates.claims import Group, waiting_groups
from croc_annotate.candidates.models import Candidate, Generator
from croc_annotate.candidates.planning import plan_candidates, request_candidates
from croc_annotate.candidates.seeds import parse_seeds
from croc_annotate.candidates.services import retry_failed
from croc_annotate.candidates.tasks import sweep_left_files
from croc_annotate.lib.progress import progress
from croc_annotate.prompts.models import Category, ContrastPair
from generation.catalogue import find_generator
from generation.pipeline import PipelineError
from generation.status import generation_status, status_lines
from generation.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Iterator

    from croc_annotate.candidates.models import CandidateQuerySet
    from croc_annotate.candidates.planning import Plan

_MANUAL = """
Render what is missing: one image for each active pair, each of its two evaluated sides, each
generator and each seed. Safe to run twice, beside itself and after any crash: what is there
is never made again, and what is missing is found by looking, not by remembering.

    generate --dry-run                          how many there are and how many are missing
    generate --generator FLUX_1_dev --here      render on this machine, with a progress bar
    generate --queue                            leave it to the GPU workers (needs REDIS_URL)
    generate --retry-failed                     ask for the failed ones again as well

Without --here and --queue it is the queue where REDIS_URL is set, and here elsewhere.

Generators are rows of the database; those of the published benchmark (FLUX_1_dev,
stable_diffusion_3_5_large) and a few more are made when they are first named. Without
--generator all active generators that have a pipeline are used. A worker for --queue:

    celery -A croc_annotate worker -Q gpu -P solo --prefetch-multiplier 1

Models need the gpu extra: pip install 'croc-annotate[gpu]'. Ctrl-C finishes the images at hand.
"""


@dataclass(frozen=True)
class _Scope:
    pairs: list[ContrastPair]
    generators: list[Generator]
    seeds: list[int]

    def candidates(self) -> CandidateQuerySet:
        return Candidate.objects.filter(
            pair__in=[pair.pk for pair in self.pairs],
            generator__in=self.generators,
            seed__in=self.seeds,
        )


class Command(BaseCommand):
    """`manage.py generate`."""

    help = _MANUAL

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """What to render, and where."""
        parser.formatter_class = argparse.RawDescriptionHelpFormatter
        add = parser.add_argument
        add("--category", action="append", default=[], metavar="C", help="only this; repeatable")
        add("--generator", action="append", default=[], metavar="G", help="slug; repeatable")
        add("--bank", metavar="B", help="only pairs that were loaded from this bank")
        add("--pair", action="append", default=[], metavar="ID", help="only this pair; repeatable")
        add("--seeds", default="1-50", metavar="N-M", help="e.g. 1-50 (default) or 1,2,7-9")
        where = parser.add_mutually_exclusive_group()
        where.add_argument("--here", action="store_true", help="render in this process")
        where.add_argument("--queue", action="store_true", help="leave it to the workers")
        add("--dry-run", action="store_true", help="say what is missing; change nothing")
        add("--retry-failed", action="store_true", help="ask again for what failed")
        add("--json", action="store_true", dest="as_json", help="one JSON document on stdout")

    def handle(self, **options: Any) -> None:
        """Plan, ask for what is missing, render or enqueue, report."""
        started = time.monotonic()
        scope = _scope(options)
        plan = plan_candidates(pairs=scope.pairs, generators=scope.generators, seeds=scope.seeds)
        if options["dry_run"]:
            self._report(plan, options, started, {})
            return
        queue = options["queue"] or (not options["here"] and bool(settings.REDIS_URL))
        if queue and not settings.REDIS_URL:
            raise CommandError("--queue needs a broker: set REDIS_URL, or render with --here.")
        request_candidates(plan=plan)
        retried = retry_failed(candidates=scope.candidates()) if options["retry_failed"] else 0
        if queue:
            done = {"enqueued": self._enqueue(scope, plan, retried)}
        else:
            done = self._render(scope, quiet=options["as_json"])
        self._report(plan, options, started, {"retried": retried, **done})

    # -- where it is rendered ---------------------------------------------------------

    def _enqueue(self, scope: _Scope, plan: Plan, retried: int) -> int:
        from croc_annotate.lib.workqueue import queue_length
        from generation.tasks import QUEUE, enqueue

        try:
            # What waits already has its message, unless the broker forgot: then the queue is empty.
            if plan.missing or retried or queue_length(QUEUE) == 0:
                return enqueue(_groups(scope))
        except OperationalError as error:
            raise CommandError(
                f"The broker at REDIS_URL cannot be reached ({error}). The candidates are asked "
                "for; run this again when it is back, or start a worker: it looks by itself."
            ) from error
        return 0

    def _render(self, scope: _Scope, *, quiet: bool) -> dict[str, int]:
        groups = _groups(scope)
        waiting = scope.candidates().claimable(timezone.now()).count()
        worker = Worker(queue="here")
        worker.start()
        failed = 0
        try:
            with _finish_on_signal(worker):
                each = _results(worker, groups)
                shown = each if quiet else progress(each, total=waiting, label="Rendering")
                failed = sum(not rendered for rendered in shown)
        except PipelineError as error:
            raise CommandError(
                f"{error}\n{worker.heart.images_done:,} images were stored before; run the same "
                "again to go on."
            ) from error
        finally:
            worker.close()
        sweep_left_files()
        return {"rendered_now": worker.heart.images_done, "failed_now": failed}

    # -- what is said -----------------------------------------------------------------

    def _report(
        self,
        plan: Plan,
        options: dict[str, Any],
        started: float,
        done: dict[str, int],
    ) -> None:
        dry_run = options["dry_run"]
        seconds = round(time.monotonic() - started, 1)
        if options["as_json"]:
            counts = {
                "wanted": plan.wanted,
                "missing": plan.missing,
                "rendered": plan.rendered,
                "waiting": plan.waiting,
                "failed": plan.failed,
            }
            document = {**counts, **done, "dry_run": dry_run, "seconds": seconds}
            self.stdout.write(json.dumps(document))
            return
        if not dry_run:
            for line in status_lines(generation_status(at=timezone.now())):
                self.stdout.write(line)
        self.stdout.write(_last_line(plan, dry_run=dry_run, seconds=seconds, done=done))


def _last_line(plan: Plan, *, dry_run: bool, seconds: float, done: dict[str, int]) -> str:
    there = f"{plan.rendered:,} rendered, {plan.waiting:,} waiting, {plan.failed:,} failed"
    if dry_run:
        return f"Of {plan.wanted:,} wanted: {there}, {plan.missing:,} not asked for ({seconds} s)."
    asked = f"Of {plan.wanted:,} wanted, {plan.missing:,} were new (before: {there})"
    if done.get("retried"):
        asked += f", {done['retried']:,} failed ones asked for again"
    if "enqueued" in done:
        return f"{asked}; {done['enqueued']:,} tasks enqueued ({seconds} s)."
    now = f"rendered {done['rendered_now']:,}, failed {done['failed_now']:,}"
    return f"{asked}; {now} ({seconds} s)."


def _scope(options: dict[str, Any]) -> _Scope:
    """What the arguments mean; raises CommandError with the remedy."""
    try:
        seeds = parse_seeds(options["seeds"])
    except ValueError as error:
        raise CommandError(f"--seeds: {error}.", returncode=2) from error
    return _Scope(_pairs(options), _generators(options["generator"]), seeds)


def _pairs(options: dict[str, Any]) -> list[ContrastPair]:
    pairs = ContrastPair.objects.active().in_order()
    known = set(Category.objects.values_list("slug", flat=True))
    unknown = sorted(set(options["category"]) - known)
    if unknown:
        raise CommandError(
            f"No category is called {', '.join(unknown)}. There are {', '.join(sorted(known))}.",
            returncode=2,
        )
    if options["category"]:
        pairs = pairs.filter(category__in=options["category"])
    if options["bank"]:
        pairs = pairs.in_bank(options["bank"])
    if options["pair"]:
        pairs = pairs.filter(slug__in=options["pair"])
    found = list(pairs)
    if not found:
        raise CommandError("No active pair fits. Load prompts first: manage.py load_prompts FILE.")
    return found


def _generators(slugs: list[str]) -> list[Generator]:
    if not slugs:
        found = list(Generator.objects.filter(active=True).exclude(pipeline=""))
        if not found:
            raise CommandError(
                "There is no generator yet. Name one, e.g. --generator FLUX_1_dev --generator "
                "stable_diffusion_3_5_large."
            )
        return found
    try:
        found = [find_generator(slug) for slug in dict.fromkeys(slugs)]
    except LookupError as error:
        raise CommandError(str(error), returncode=2) from error
    for generator in found:
        if not generator.pipeline:
            raise CommandError(
                f"The images of {generator.slug} were made elsewhere: it names no pipeline."
            )
        if not generator.active:
            raise CommandError(
                f"The generator {generator.slug} is switched off; switch it on again on the admin "
                "site (a paid one may have reached its max_spend)."
            )
    return found


def _results(worker: Worker, groups: list[Group]) -> Iterator[bool]:
    """Whether each image was rendered, as it happens, until a signal asks to stop."""
    for group in groups:
        for _, rendered in worker.results(group):
            yield rendered
        if worker.stop.is_set():
            return


def _groups(scope: _Scope) -> list[Group]:
    """Groups of the scope that wait, by generator and then by text."""
    pairs = {pair.pk for pair in scope.pairs}
    generators = {generator.pk for generator in scope.generators}
    return [
        group
        for group in waiting_groups(at=timezone.now())
        if group.pair_id in pairs and group.generator_id in generators
    ]


@contextmanager
def _finish_on_signal(worker: Worker) -> Iterator[None]:
    """The first Ctrl-C or SIGTERM finishes the images at hand; the second ends at once."""

    def stop(number: int, _frame: object) -> None:
        if worker.stop.is_set():
            raise KeyboardInterrupt
        worker.stop.set()

    try:
        before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    except ValueError:  # not the main thread: whoever started it looks after signals
        before = {}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
