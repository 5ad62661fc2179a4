"""Scoring over GPU workers: a task takes ids, and is safe to run twice."""

from __future__ import annotations

import json
from functools import lru_cache
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
from croc_annotate.benchmark.metric import Metric, MetricError
from croc_annotate.benchmark.models import MetricRun, RunState
from croc_annotate.benchmark.services import fail_run
from croc_annotate.releases.models import Release

if TYPE_CHECKING:
    from typing import Any


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


@lru_cache(maxsize=1)
def _loaded(release_id: int, options: str) -> Metric:
    """The metric of a run, loaded once a process; another run's takes its place."""
    data: dict[str, Any] = json.loads(options)
    return create_metric(RunRequest.from_json(data), Release.objects.get(pk=release_id))
