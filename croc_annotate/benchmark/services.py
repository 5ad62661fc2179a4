"""Acts that write: metrics, runs, scores, and results from elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.db import transaction
from django.utils import timezone

from croc_annotate.benchmark.environment import describe_environment
from croc_annotate.benchmark.metric import fingerprint
from croc_annotate.benchmark.models import MetricRun, MetricVersion, RunState, Score
from croc_annotate.lib.hashing import canonical_json, sha256_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from croc_annotate.benchmark.metric import MetricFacts
    from croc_annotate.releases.models import Release

REFERENCE_METRICS = frozenset({"random", "human"})
_BATCH = 2_000


@dataclass(frozen=True)
class ScoreRow:
    """A score to store; None, with the reason, when the metric gave none."""

    image_sha256: str
    text_sha256: str
    value: float | None
    reason: str = ""


def register_metric(facts: MetricFacts, *, replicate: str = "") -> MetricVersion:
    """The row of this metric; a new one unless its fingerprint is known.

    A replicate is a repetition under its own fingerprint, so that nothing is reused.
    """
    parts = facts.parts()
    digest = fingerprint(facts)
    if replicate:
        parts["replicate"] = replicate
        digest = sha256_text(canonical_json(parts))
    parts["ties"] = facts.ties
    version, _ = MetricVersion.objects.get_or_create(
        fingerprint=digest,
        defaults={
            "name": facts.name,
            "label": facts.label or facts.name,
            "parts": parts,
            "is_reference": facts.name in REFERENCE_METRICS,
        },
    )
    return version


@transaction.atomic
def open_run(
    *,
    release: Release,
    metric: MetricVersion,
    n_total: int,
    options: Mapping[str, Any] | None = None,
    origin: str = "computed",
    replicate: str = "",
) -> MetricRun:
    """The run of a metric on a release, new or taken up again."""
    run, created = MetricRun.objects.select_for_update().get_or_create(
        release=release,
        metric=metric,
        defaults={
            "started_at": timezone.now(),
            "origin": origin,
            "replicate": replicate,
            "options": dict(options or {}),
            "n_total": n_total,
            "environment": describe_environment(),
        },
    )
    if not created:
        run.state, run.error, run.n_total = RunState.RUNNING, "", n_total
        # Ranges that workers finished belong to the earlier try.
        run.timing.pop("ranges_done", None)
        run.options = dict(options or run.options)
        run.environment = describe_environment()
        run.save(update_fields=["state", "error", "n_total", "options", "environment", "timing"])
    return run


def store_scores(
    *, metric: MetricVersion, rows: Iterable[ScoreRow], with_missing: bool = False
) -> None:
    """Store scores; what is stored already stays as it is.

    `with_missing` stores missing scores too, with their reason, so that no later run asks for
    them: a text without a noun phrase will have none tomorrow. A failed call may not fail again,
    so the scores that it left missing are not stored.
    """
    Score.objects.bulk_create(
        [
            Score(
                metric=metric,
                image_sha256=r.image_sha256,
                text_sha256=r.text_sha256,
                value=r.value,
                reason=r.reason[:200],
            )
            for r in rows
            if r.value is not None or with_missing
        ],
        ignore_conflicts=True,
        batch_size=_BATCH,
    )


@transaction.atomic
def note_truncated(*, metric: MetricVersion, texts: Iterable[str]) -> None:
    """Remember texts that the metric's model reads only a part of."""
    locked = MetricVersion.objects.select_for_update().get(pk=metric.pk)
    known = set(locked.truncated)
    known |= {sha256_text(text) for text in texts}
    if len(known) > len(locked.truncated):
        locked.truncated = sorted(known)
        locked.save(update_fields=["truncated"])


def forget_missing(*, metric: MetricVersion) -> int:
    """Forget which scores are missing, so that the next run asks for them; how many there were."""
    forgotten, _ = Score.objects.filter(metric=metric, value__isnull=True).delete()
    return forgotten


@transaction.atomic
def close_run(
    *,
    run: MetricRun,
    state: RunState,
    n_scores: int,
    n_missing: int,
    n_reused: int = 0,
    n_truncated: int = 0,
    reasons: Sequence[str] = (),
    timing: Mapping[str, Any] | None = None,
    environment: Mapping[str, Any] | None = None,
) -> MetricRun:
    """Write what a run came to."""
    run = MetricRun.objects.select_for_update().get(pk=run.pk)
    run.state, run.error = state, ""
    run.n_scores, run.n_missing = n_scores, n_missing
    run.n_reused, run.n_truncated = n_reused, n_truncated
    run.reasons = sorted(set(reasons))[:20]
    run.timing = {**run.timing, **(timing or {})}
    run.environment = {**run.environment, **(environment or {})}
    run.finished_at = timezone.now()
    run.save()
    return run


def fail_run(*, run: MetricRun, reason: str) -> None:
    """Mark a run as failed, with the reason; its stored scores stay for the next try."""
    MetricRun.objects.filter(pk=run.pk).update(
        state=RunState.FAILED, error=reason or "unknown reason", finished_at=timezone.now()
    )
