"""Score a release with a metric: plan, decode ahead, score in batches, store, go on after a kill.

Each image is read, decoded and encoded once for all its texts. Every batch is stored before
the next one starts, so that a run that was killed goes on where it stopped.
"""

from __future__ import annotations

import time
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any

from django.core.files.storage import default_storage

from croc_annotate.benchmark.metric import ImageInput, MetricError, MetricMemoryError, Prepares
from croc_annotate.benchmark.services import ScoreRow, note_truncated, store_scores
from croc_annotate.lib.hashing import sha256_text
from croc_annotate.lib.imagefiles import BadImageError, rgb

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from croc_annotate.benchmark.batching import BatchSize
    from croc_annotate.benchmark.metric import Metric
    from croc_annotate.benchmark.models import MetricVersion
    from croc_annotate.benchmark.selectors import ImageTask

# Decoded images that wait beyond the next batch. One of 1024² pixels holds 3 MB.
_READ_AHEAD = 16


@dataclass
class Tally:
    """What happened so far."""

    images: int = 0
    scores: int = 0
    missing: int = 0
    truncated: set[str] = field(default_factory=set)
    reasons: set[str] = field(default_factory=set)
    batch_sizes: set[int] = field(default_factory=set)
    score_seconds: float = 0.0
    wait_seconds: float = 0.0
    """Time that the metric waited for decoded images."""


@dataclass(frozen=True)
class _Ready:
    task: ImageTask
    image: ImageInput | None
    reason: str = ""


def open_tasks(tasks: Sequence[ImageTask], stored: set[tuple[str, str]]) -> list[ImageTask]:
    """The images with a text that is not stored yet, each with only those texts."""
    hashes: dict[str, str] = {}
    wanted = []
    for task in tasks:
        texts = tuple(
            text
            for text in task.texts
            if (task.sha256, hashes.setdefault(text, sha256_text(text))) not in stored
        )
        if texts:
            wanted.append(type(task)(task.sha256, task.storage_name, texts))
    return wanted


def score_tasks(
    *,
    metric: Metric,
    version: MetricVersion,
    tasks: Sequence[ImageTask],
    batch: BatchSize,
    workers: int = 2,
    on_batch: Callable[[int], None] = lambda images: None,
) -> Tally:
    """Score and store all tasks; raises MetricError when the metric cannot go on."""
    tally = Tally()
    noted: set[str] = set()
    keep_missing = metric.describe().deterministic
    with ThreadPoolExecutor(max_workers=max(workers, 1)) as pool:
        # The next batch is decoded while this one is scored, also once batches have grown.
        ready = _decoded(
            metric, tasks, pool, ahead=lambda: batch.size + max(_READ_AHEAD, 2 * workers)
        )
        pending: deque[_Ready] = deque()
        for _ in iter(lambda: _fill(pending, ready, batch.size, tally), 0):
            chunk = [pending.popleft() for _ in range(min(batch.size, len(pending)))]
            rows = _score_chunk(metric, chunk, batch, pending, tally)
            if tally.truncated - noted:
                note_truncated(metric=version, texts=tally.truncated - noted)
                noted |= tally.truncated
            store_scores(metric=version, rows=rows, with_missing=keep_missing)
            tally.images += len({row.image_sha256 for row in rows})
            on_batch(len({row.image_sha256 for row in rows}))
    return tally


def _fill(pending: deque[_Ready], ready: Iterator[_Ready], size: int, tally: Tally) -> int:
    """Wait for decoded images until a batch is full or none is left; how many there are."""
    start = time.perf_counter()
    while len(pending) < size:
        item = next(ready, None)
        if item is None:
            break
        if item.image is None:
            # Not stored: a file that comes back is scored by the next run.
            tally.missing += len(item.task.texts)
            tally.reasons.add(item.reason)
        else:
            pending.append(item)
    tally.wait_seconds += time.perf_counter() - start
    return len(pending)


def _score_chunk(
    metric: Metric, chunk: list[_Ready], batch: BatchSize, pending: deque[_Ready], tally: Tally
) -> list[ScoreRow]:
    """Score one batch; when memory runs out, put half of it back and try again."""
    while True:
        start = time.perf_counter()
        try:
            result = metric.score(
                images=[item.image for item in chunk if item.image is not None],
                texts=[item.task.texts for item in chunk],
            )
        except MetricMemoryError as error:
            batch.size = min(batch.size, len(chunk))
            if not batch.shrink():
                raise MetricError(f"not even one image fits into memory: {error}") from error
            pending.extendleft(reversed(chunk[batch.size :]))
            chunk = chunk[: batch.size]
            continue
        break
    seconds = time.perf_counter() - start
    tally.score_seconds += seconds
    tally.batch_sizes.add(len(chunk))
    tally.truncated |= result.truncated
    tally.reasons |= set(result.reasons)
    batch.report(images=len(chunk), seconds=seconds)
    why = "; ".join(result.reasons)
    rows = [
        ScoreRow(item.task.sha256, sha256_text(text), value, why if value is None else "")
        for item, values in zip(chunk, result.scores, strict=True)
        for text, value in zip(item.task.texts, values, strict=True)
    ]
    tally.scores += sum(row.value is not None for row in rows)
    tally.missing += sum(row.value is None for row in rows)
    return rows


def _decoded(
    metric: Metric,
    tasks: Sequence[ImageTask],
    pool: ThreadPoolExecutor,
    *,
    ahead: Callable[[], int],
) -> Iterator[_Ready]:
    """Images in order, read and decoded ahead by the pool, never more than `ahead()` at once."""
    queue: deque[Future[_Ready]] = deque()
    source = iter(tasks)
    while True:
        for task in islice(source, max(0, ahead() - len(queue))):
            queue.append(pool.submit(_prepare, metric, task))
        if not queue:
            return
        yield queue.popleft().result()


def _prepare(metric: Metric, task: ImageTask) -> _Ready:
    """Read no more of a file than the metric needs."""
    if metric.needs == "hash":
        return _Ready(task, ImageInput(sha256=task.sha256))
    try:
        with default_storage.open(task.storage_name) as file:
            data = file.read()
        pixels = rgb(data) if metric.needs == "pixels" else None
    except (OSError, BadImageError) as error:
        return _Ready(task, None, f"image not readable: {type(error).__name__}")
    image = ImageInput(sha256=task.sha256, data=data, pixels=pixels)
    if isinstance(metric, Prepares):
        image = metric.prepare(image=image)
    return _Ready(task, image)


def noise_floor(
    metric: Metric, tasks: Sequence[ImageTask], stored: Mapping[tuple[str, str], float | None]
) -> float | None:
    """The largest change of a score when its image is scored again and alone; None without any.

    `stored` holds the scores of the run by (image hash, text hash). Two runs that differ by no
    more than this, or two scores, are not different on this device.
    """
    largest: float | None = None
    for task in tasks:
        item = _prepare(metric, task)
        if item.image is None:
            continue
        again = metric.score(images=[item.image], texts=[task.texts]).scores[0]
        for text, value in zip(task.texts, again, strict=True):
            before = stored.get((task.sha256, sha256_text(text)))
            if value is not None and before is not None:
                largest = max(largest or 0.0, abs(value - before))
    return largest


def timing_of(tally: Tally, seconds: float) -> dict[str, Any]:
    """What the run row says about speed."""
    return {
        "seconds": round(seconds, 3),
        "score_seconds": round(tally.score_seconds, 3),
        "wait_seconds": round(tally.wait_seconds, 3),
        "images": tally.images,
        "images_per_second": round(tally.images / seconds, 3) if seconds > 0 else None,
        "busy_share": round(tally.score_seconds / seconds, 4) if seconds > 0 else None,
        "batch_sizes": sorted(tally.batch_sizes),
    }
