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
    score_range,
    wanted_tasks,
)
from croc_annotate.benchmark.metric import MetricError
from croc_annotate.benchmark.models import MetricRun, RunState
from croc_annotate.benchmark.services import fail_run
from croc_annotate.releases.models import Release

if TYPE_CHECKING:
    from croc_annotate.benchmark.metric import Metric


@shared_task(autoretry_for=(OperationalError,), retry_backoff=True, max_retries=5)
def score_run_range(run_id: int, start: int, stop: int) -> None:
    """Score a range of a run's images."""
    run = MetricRun.objects.select_related("metric", "release").get(pk=run_id)
    if run.state == RunState.FAILED:
        return  # another worker found that the metric cannot work; do not try again
    try:
        metric = _loaded(run.release_id, json.dumps(run.options, sort_keys=True))
        score_range(run=run, metric=metric, start=start, stop=stop)
    except MetricError as error:
        fail_run(run=run, reason=str(error))


def enqueue_run(run: MetricRun) -> int:
    """Hand a run to the workers; returns the number of tasks."""
    request = RunRequest.from_json(run.options)
    ranges = chunks_of(len(wanted_tasks(run.release, request.limit)))
    for start, stop in ranges:
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
