"""The bell: Celery messages that tell GPU workers of work. The work itself stands in the rows."""

from __future__ import annotations

import logging
import os
import time
from typing import TYPE_CHECKING, Any

from celery import shared_task, signals
from celery.exceptions import WorkerShutdown
from django.utils import timezone
from kombu.exceptions import OperationalError

from croc_annotate.candidates.claims import Group, waiting_groups
from croc_annotate.celery import app
from croc_annotate.lib.workqueue import queue_length
from generation.pipeline import DeviceLost, PipelineError
from generation.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Iterable

logger = logging.getLogger(__name__)

QUEUE = "gpu"
_PAUSE_SECONDS = 60
_RING_AT_MOST = 500
_worker: Worker | None = None
_unusable: dict[int, float] = {}  # generator -> when this process tries it again


@shared_task(name="generation.tasks.render_group", acks_late=True)
def render_group(generator_id: int, pair_id: int, side: str) -> None:
    """Render what one pair's side still lacks from one generator. Safe to run twice or never."""
    if time.monotonic() < _unusable.get(generator_id, 0.0):
        return  # its candidates wait in the rows; we are rung again when the queue is empty
    group = Group(generator_id, pair_id, side)
    try:
        tally = worker().render_group(group)
    except DeviceLost as error:
        # The process cannot use the device again; its supervisor starts a fresh one.
        raise WorkerShutdown(str(error)) from error
    except PipelineError as error:
        # Without a new message: those of a source that is down would multiply.
        logger.error("Not before %d s from now: %s", _PAUSE_SECONDS, error)  # noqa: TRY400
        _unusable[generator_id] = time.monotonic() + _PAUSE_SECONDS
    else:
        if tally.stopped:
            _ring(group)


def enqueue(groups: Iterable[Group]) -> int:
    """Ring for groups, in their order; return how many. Raises kombu's OperationalError."""
    count = 0
    with app.producer_pool.acquire(block=True) as producer:
        for group in groups:
            _ring(group, producer=producer)
            count += 1
    return count


def ring_for_forgotten_work() -> None:
    """Ring again when the queue is empty and candidates wait: messages get lost, rows do not."""
    try:
        if queue_length(QUEUE) == 0:
            enqueue(waiting_groups(at=timezone.now())[:_RING_AT_MOST])
    except OperationalError as error:
        logger.warning("The broker cannot be reached: %s", error)


def worker() -> Worker:
    """This process's worker, started when it is first needed."""
    global _worker
    # Under the prefork pool a child finds its parent's worker, whose heart does not beat here.
    if _worker is None or _worker.pid != os.getpid():
        _worker = Worker(queue=QUEUE)
        _worker.heart.chores.append(ring_for_forgotten_work)
        _worker.start()
    return _worker


def _ring(group: Group, **options: Any) -> None:
    render_group.apply_async(args=(group.generator_id, group.pair_id, group.side), **options)


@signals.worker_ready.connect
def _be_seen(sender: Any = None, **_kwargs: Any) -> None:
    """A GPU worker shows itself, and rings for what was forgotten, before its first task."""
    if QUEUE in sender.app.amqp.queues.consume_from:
        worker()
        ring_for_forgotten_work()


@signals.worker_shutting_down.connect
def _finish_batch(**_kwargs: Any) -> None:
    """SIGTERM: the images at hand are finished and stored, the rest is left to others."""
    if _worker is not None:
        _worker.stop.set()


@signals.worker_shutdown.connect
def _say_goodbye(**_kwargs: Any) -> None:
    if _worker is not None:
        _worker.close()
