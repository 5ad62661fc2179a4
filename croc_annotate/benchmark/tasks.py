"""Scoring over GPU workers: a task takes ids, and is safe to run twice."""

from __future__ import annotations

import json
from threading import Lock
from typing import TYPE_CHECKING

from celery import shared_task
from django.db import OperationalError

from croc_annotate.benchmark.benchmarking import (
    RunRequest,
    chunks_of,
    create_metric,
    open_ranges,
    score_range,
    wanted_tasks,
)
from croc_annotate.benchmark.boards import prepare
from croc_annotate.benchmark.holding import count_try, forget_tries, held, is_held
from croc_annotate.benchmark.metric import MetricError
from croc_annotate.benchmark.models import MetricRun, RunState
from croc_annotate.benchmark.services import fail_run
from croc_annotate.lib.workqueue import queue_length
from croc_annotate.releases.models import Release

if TYPE_CHECKING:
    from croc_annotate.benchmark.metric import Metric


QUEUE = "gpu"
_MOST_TRIES = 5


@shared_task(autoretry_for=(OperationalError,), retry_backoff=True, max_retries=5)
def score_run_range(run_id: int, start: int, stop: int) -> None:
    """Score a range of a run's images."""
    run = MetricRun.objects.select_related("metric", "release").get(pk=run_id)
    if run.state != RunState.RUNNING:
        return  # done by a message that came twice, or another worker found that it cannot work
    with held(run_id, start) as mine:
        if not mine:
            return
        if count_try(run_id, start) > _MOST_TRIES:
            reason = f"a worker died {_MOST_TRIES} times at images {start}–{stop - 1}; see its log."
            fail_run(run=run, reason=reason)
            return
        try:
            metric = _loaded(run.release_id, json.dumps(run.options, sort_keys=True))
            completed = score_range(
                run=run, metric=metric, start=start, stop=stop,
                on_batch=lambda _images: forget_tries(run_id, start),
            )  # fmt: skip
        except MetricError as error:
            fail_run(run=run, reason=str(error))
            return
        except OperationalError:
            raise  # the database is away: tried again
        except Exception as error:
            # Without an end the run would be taken up again for ever.
            fail_run(run=run, reason=f"{type(error).__name__}: {error}")
            raise
    if completed:
        prepare_board.delay(run.release_id)


@shared_task(name="benchmark.prepare_board")
def prepare_board(release_id: int) -> None:
    """Compute a release's leaderboard, so that no visitor has to wait for it."""
    prepare(Release.objects.get(pk=release_id))


@shared_task(name="benchmark.take_up_runs")
def take_up_runs() -> int:
    """Hand out again what killed workers and lost messages left of queued runs; how many ranges.

    Only when no message waits: until then somebody may still come to it.
    """
    waiting = MetricRun.objects.filter(state=RunState.RUNNING, options__queued=True)
    if not waiting.exists() or queue_length(QUEUE) > 0:
        return 0
    handed = 0
    for run in waiting.select_related("release", "metric"):
        for start, stop in open_ranges(run):
            if not is_held(run.pk, start):
                score_run_range.delay(run.pk, start, stop)
                handed += 1
    return handed


def enqueue_run(run: MetricRun) -> int:
    """Hand a run to the workers; returns the number of tasks."""
    request = RunRequest.from_json(run.options)
    run.options = {**run.options, "queued": True}
    run.save(update_fields=["options"])
    ranges = chunks_of(len(wanted_tasks(run.release, request.limit)))
    for start, stop in ranges:
        forget_tries(run.pk, start)
        score_run_range.delay(run.pk, start, stop)
    return len(ranges)


_held: dict[tuple[int, str], Metric] = {}
_lock = Lock()


def forget_loaded() -> None:
    """Close the metric that this process holds, so that its memory is free for another one."""
    for metric in _held.values():
        metric.close()
    _held.clear()


def _loaded(release_id: int, options: str) -> Metric:
    """The metric of a run, loaded once a process.

    Another run's metric is closed first: two models may not fit on one device.
    """
    key = (release_id, options)
    with _lock:
        if key not in _held:
            forget_loaded()
            request = RunRequest.from_json(json.loads(options))
            _held[key] = create_metric(request, Release.objects.get(pk=release_id))
        return _held[key]
