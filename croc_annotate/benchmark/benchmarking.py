"""Run a metric on a release, here or over workers: the same plan, the same stored scores."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any

from django.db import transaction

from croc_annotate.benchmark import registry
from croc_annotate.benchmark.batching import BatchSize
from croc_annotate.benchmark.environment import describe_environment, gpu_name, peak_memory_mb
from croc_annotate.benchmark.metric import MetricError, MetricOptions
from croc_annotate.benchmark.models import MetricRun, RunState, Score
from croc_annotate.benchmark.runner import noise_floor, open_tasks, score_tasks, timing_of
from croc_annotate.benchmark.selectors import (
    ImageTask,
    image_tasks,
    reference_votes,
    release_images,
    stored_keys,
)
from croc_annotate.benchmark.services import (
    close_run,
    fail_run,
    forget_missing,
    open_run,
    register_metric,
)
from croc_annotate.lib.hashing import sha256_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from croc_annotate.benchmark.metric import Metric
    from croc_annotate.benchmark.runner import Tally
    from croc_annotate.releases.models import Release

CHUNK_IMAGES = 200
_FEWEST_IMAGES = 16
NOISE_IMAGES = 8


@dataclass(frozen=True)
class RunRequest:
    """What `run_benchmark` asks for; plain values, so that a worker can read it from the row."""

    metric: str
    model: str | None = None
    revision: str | None = None
    device: str | None = None
    dtype: str | None = None
    prompt: str | None = None
    seed: int = 0
    extra: dict[str, str] = field(default_factory=dict)
    batch_size: int = 0
    workers: int = 2
    limit: int = 0
    replicate: str = ""
    retry_missing: bool = False

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> RunRequest:
        """Read what `as_json` wrote."""
        known = {f.name for f in fields(cls)}
        return cls(**{key: value for key, value in data.items() if key in known})

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


@dataclass(frozen=True)
class Plan:
    """A run and the images that it still has to score."""

    run: MetricRun
    metric: Metric
    tasks: list[ImageTask]
    n_reused: int
    request: RunRequest


def create_metric(request: RunRequest, release: Release) -> Metric:
    """Build the metric that the request names; raises MetricError."""
    votes = reference_votes(release=release) if request.metric == "human" else None
    options = MetricOptions(
        model=request.model,
        revision=request.revision,
        device=request.device,
        dtype=request.dtype,
        prompt=request.prompt,
        seed=request.seed,
        reference_votes=votes,
        extra=request.extra,
    )
    return registry.create(request.metric, options=options)


def plan_run(*, release: Release, request: RunRequest) -> Plan:
    """Open (or take up again) the run and find what is not stored yet; raises MetricError."""
    metric = create_metric(request, release)
    version = register_metric(metric.describe(), replicate=request.replicate)
    tasks = wanted_tasks(release, request.limit)
    if not tasks:
        raise MetricError(f"“{release}” has no verified image of a scored side.")
    total = sum(len(task.texts) for task in tasks)
    run = open_run(
        release=release,
        metric=version,
        n_total=total,
        options=request.as_json(),
        replicate=request.replicate,
    )
    if request.retry_missing:
        forget_missing(metric=version)
    todo = open_tasks(tasks, stored_keys(version))
    return Plan(run, metric, todo, total - sum(len(t.texts) for t in todo), request)


def run_here(
    *, release: Release, request: RunRequest, on_start: Callable[[Plan], Callable[[int], None]]
) -> MetricRun:
    """Score everything in this process; what is stored survives a kill. Raises MetricError."""
    plan = plan_run(release=release, request=request)
    start = time.perf_counter()
    try:
        tally = score_tasks(
            metric=plan.metric,
            version=plan.run.metric,
            tasks=plan.tasks,
            batch=BatchSize(request.batch_size),
            workers=request.workers,
            on_batch=on_start(plan),
        )
        environment = _after(plan)
    except MetricError as error:
        fail_run(run=plan.run, reason=str(error))
        raise
    finally:
        plan.metric.close()
    return finish(
        run=plan.run,
        tasks=wanted_tasks(release, request.limit),
        state=RunState.PARTIAL if request.limit else RunState.DONE,
        n_reused=plan.n_reused,
        tally=tally,
        timing=timing_of(tally, time.perf_counter() - start) if plan.tasks else {},
        environment=environment,
    )


def chunks_of(n_images: int) -> list[tuple[int, int]]:
    """Ranges of images for one task each; small releases are cut finer, to occupy every worker."""
    size = min(CHUNK_IMAGES, max(_FEWEST_IMAGES, n_images // 16))
    return [(a, min(a + size, n_images)) for a in range(0, n_images, size)]


def score_range(
    *,
    run: MetricRun,
    metric: Metric,
    start: int,
    stop: int,
    on_batch: Callable[[int], None] = lambda images: None,
) -> bool:
    """Score images start…stop−1 of a run's plan; True when that completed the run.

    Safe to run twice: only what is not stored is scored.
    """
    request = RunRequest.from_json(run.options)
    tasks = wanted_tasks(run.release, request.limit)
    todo = open_tasks(tasks[start:stop], stored_keys(run.metric))
    begin, spent = time.perf_counter(), _spent(metric)
    tally = score_tasks(
        metric=metric,
        version=run.metric,
        tasks=todo,
        batch=BatchSize(request.batch_size),
        workers=request.workers,
        on_batch=on_batch,
    )
    seconds = time.perf_counter() - begin
    surroundings = {}
    if todo:
        plan = Plan(run, metric, todo, 0, request)
        # The machine that scored, not the one that asked for it.
        surroundings = {**describe_environment(), **_after(plan, noise=start == 0)}
        surroundings["spent_usd"] = _spent(metric) - spent
    done = _add_tally(run, tally, seconds, start=start, surroundings=surroundings)
    if done < {first for first, _ in chunks_of(len(tasks))}:
        return False
    run.refresh_from_db()
    state = RunState.PARTIAL if request.limit else RunState.DONE
    finish(run=run, tasks=tasks, state=state, reasons=run.reasons)
    return True


def open_ranges(run: MetricRun) -> list[tuple[int, int]]:
    """The ranges of a queued run that no worker has finished; the first one when all have been.

    (A worker that dies between its last range and the end of the run leaves it running.)
    """
    request = RunRequest.from_json(run.options)
    ranges = chunks_of(len(wanted_tasks(run.release, request.limit)))
    done = set(run.timing.get("ranges_done", []))
    return [r for r in ranges if r[0] not in done] or ranges[:1]


def finish(
    *,
    run: MetricRun,
    tasks: Sequence[ImageTask],
    state: RunState,
    n_reused: int = 0,
    tally: Tally | None = None,
    reasons: Sequence[str] = (),
    timing: dict[str, Any] | None = None,
    environment: dict[str, Any] | None = None,
) -> MetricRun:
    """Count what is stored for the run's images and close the run."""
    values = _stored_values(run)
    wanted = [(t.sha256, sha256_text(text)) for t in tasks for text in t.texts]
    scored = sum(values.get(key) is not None for key in wanted)
    run = MetricRun.objects.select_related("metric").get(pk=run.pk)
    found = {*reasons, *_missing_reasons(run), *(tally.reasons if tally is not None else ())}
    return close_run(
        run=run,
        state=state,
        n_scores=scored,
        n_missing=len(wanted) - scored,
        n_reused=n_reused,
        n_truncated=len({text for _, text in wanted} & set(run.metric.truncated)),
        reasons=sorted(found) if scored < len(wanted) else (),
        timing=timing,
        environment=environment,
    )


def wanted_tasks(release: Release, limit: int) -> list[ImageTask]:
    """All images of the release, or `limit` of them spread over all pairs."""
    tasks = image_tasks(release_images(release))
    if not limit or limit >= len(tasks):
        return tasks
    # By hash: the same images every time, from all categories.
    chosen = {t.sha256 for t in sorted(tasks, key=lambda t: t.sha256)[:limit]}
    return [task for task in tasks if task.sha256 in chosen]


def _after(plan: Plan, *, noise: bool = True) -> dict[str, Any]:
    """Device, memory and noise floor, known only once the metric has worked."""
    facts = plan.metric.describe()
    environment: dict[str, Any] = {
        "gpu": gpu_name(),
        "device": plan.request.device or "",
        "peak_memory_mb": peak_memory_mb(),
        "decoding_workers": plan.request.workers,
    }
    if facts.parameters:
        environment["parameters"] = facts.parameters
    if hasattr(plan.metric, "spent_usd"):
        environment["spent_usd"] = _spent(plan.metric)
    if noise and plan.metric.needs == "pixels" and plan.tasks:
        floor = noise_floor(plan.metric, plan.tasks[:NOISE_IMAGES], _stored_values(plan.run))
        environment["noise_floor"] = floor
    return environment


def _spent(metric: Metric) -> float:
    """What a metric that pays for its calls has spent so far."""
    return round(float(getattr(metric, "spent_usd", 0.0)), 4)


def _stored_values(run: MetricRun) -> dict[tuple[str, str], float | None]:
    rows = Score.objects.filter(metric=run.metric, value__isnull=False)
    return {
        (image, text): value
        for image, text, value in rows.values_list("image_sha256", "text_sha256", "value")
    }


def _missing_reasons(run: MetricRun) -> set[str]:
    """Why scores are missing that no run asks for any more."""
    rows = Score.objects.filter(metric=run.metric, value__isnull=True).exclude(reason="")
    return set(rows.values_list("reason", flat=True).distinct())


@transaction.atomic
def _add_tally(
    run: MetricRun, tally: Tally, seconds: float, *, start: int, surroundings: dict[str, Any]
) -> set[int]:
    """Add one task's share to the run; the starts of all ranges that are done so far.

    Several workers write to one run, hence the lock.
    """
    locked = MetricRun.objects.select_for_update().get(pk=run.pk)
    now = timing_of(tally, seconds)
    old = locked.timing
    for key in ("seconds", "score_seconds", "wait_seconds", "images"):
        now[key] = round(now[key] + old.get(key, 0), 3)
    busy = now["score_seconds"] / now["seconds"] if now["seconds"] else None
    now["busy_share"] = busy
    now["images_per_second"] = now["images"] / now["seconds"] if now["seconds"] else None
    now["batch_sizes"] = sorted({*now["batch_sizes"], *old.get("batch_sizes", [])})
    done = {start, *old.get("ranges_done", [])}
    now["ranges_done"] = sorted(done)
    locked.timing = now
    if surroundings:
        paid = round(locked.environment.get("spent_usd", 0.0) + surroundings.pop("spent_usd"), 4)
        locked.environment |= {**surroundings, **({"spent_usd": paid} if paid else {})}
    locked.reasons = sorted({*locked.reasons, *tally.reasons})[:20]
    locked.save(update_fields=["timing", "environment", "reasons"])
    return done
