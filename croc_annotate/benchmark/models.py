"""Runs of metrics on releases, their scores, and results from elsewhere."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from croc_annotate.releases.models import Release


class RunState(models.TextChoices):
    """The life of a run."""

    RUNNING = "running", _("Running")
    PARTIAL = "partial", _("Partial")
    DONE = "done", _("Done")
    FAILED = "failed", _("Failed")
    REPLACED = "replaced", _("Replaced")


class MetricRunQuerySet(models.QuerySet["MetricRun"]):
    """Runs in domain words."""

    def on(self, release: Release) -> MetricRunQuerySet:
        """Of one release: runs on different releases are never compared."""
        return self.filter(release=release)

    def shown(self) -> MetricRunQuerySet:
        """Finished, neither a trial nor replaced by a later import, and not a replicate."""
        return self.filter(state=RunState.DONE, replicate="")

    def with_metric(self) -> MetricRunQuerySet:
        """With the metric's row and the last time that it was scored on any release, oldest first."""
        last = (
            MetricRun.objects.filter(metric=models.OuterRef("metric"))
            .order_by(models.F("finished_at").desc(nulls_last=True))
            .values("finished_at")[:1]
        )
        rows = self.select_related("metric").annotate(scored_at=models.Subquery(last))
        return rows.order_by("id")


class MetricVersion(models.Model):
    """A metric with everything that fixes its scores: equal fingerprint, equal scores."""

    fingerprint = models.CharField(max_length=64, unique=True)
    name = models.CharField(max_length=80, db_index=True)
    label = models.CharField(max_length=120)
    parts = models.JSONField(default=dict)
    is_reference = models.BooleanField(default=False)
    truncated = models.JSONField(
        default=list, help_text=_("Hashes of texts that the model reads only a part of.")
    )
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return self.label


class MetricRun(models.Model):
    """One metric scored on one release."""

    release = models.ForeignKey(Release, on_delete=models.PROTECT, related_name="runs")
    metric = models.ForeignKey(MetricVersion, on_delete=models.PROTECT, related_name="runs")
    state = models.CharField(max_length=8, choices=RunState, default=RunState.RUNNING)
    origin = models.CharField(max_length=10, default="computed")
    replicate = models.CharField(
        max_length=40, blank=True, help_text=_("A repetition that is compared, never ranked.")
    )
    options = models.JSONField(default=dict, help_text=_("What a worker needs to go on."))
    error = models.TextField(blank=True)
    reasons = models.JSONField(default=list, help_text=_("Why scores are missing, in words."))
    n_total = models.PositiveBigIntegerField(default=0)
    n_scores = models.PositiveBigIntegerField(default=0)
    n_reused = models.PositiveBigIntegerField(default=0)
    n_missing = models.PositiveBigIntegerField(default=0)
    n_truncated = models.PositiveBigIntegerField(default=0)
    timing = models.JSONField(default=dict)
    environment = models.JSONField(default=dict)
    started_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True, blank=True)

    objects = MetricRunQuerySet.as_manager()

    class Meta:
        ordering = ["-id"]
        constraints = [
            # Two runs of one metric on one release would be two rows of one leaderboard.
            models.UniqueConstraint(fields=["release", "metric"], name="run_once"),
            models.CheckConstraint(
                condition=~Q(state="failed") | ~Q(error=""), name="run_failed_has_reason"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.metric_id} on {self.release_id}"


class Score(models.Model):
    """The score of one text for one image. ``value`` is null when the metric can give none."""

    metric = models.ForeignKey(MetricVersion, on_delete=models.PROTECT, related_name="scores")
    image_sha256 = models.CharField(max_length=64)
    text_sha256 = models.CharField(max_length=64)
    value = models.FloatField(null=True, blank=True)
    reason = models.CharField(max_length=200, blank=True, help_text=_("Why there is no value."))

    class Meta:
        constraints = [
            # A chunk that runs twice must not store a second score of the same thing.
            models.UniqueConstraint(
                fields=["metric", "image_sha256", "text_sha256"], name="score_once"
            ),
        ]

    def __str__(self) -> str:
        return f"score {self.pk}"


class PreparedResult(models.Model):
    """Something that is computed once from a release and its scores, and kept (see `prepared`)."""

    release = models.ForeignKey(Release, on_delete=models.CASCADE, related_name="prepared")
    name = models.CharField(max_length=80)
    stamp = models.CharField(max_length=64, help_text=_("What it was made from, as a hash."))
    data = models.BinaryField()
    made_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["release", "name"], name="prepared_once"),
        ]

    def __str__(self) -> str:
        return f"{self.name} of {self.release_id}"


class ExternalResult(models.Model):
    """A number from a paper or another board: shown apart, never mixed with measured ones."""

    board = models.CharField(max_length=80)
    metric = models.CharField(max_length=120)
    configuration = models.CharField(max_length=120)
    measure = models.CharField(max_length=80)
    value = models.FloatField()
    unit = models.CharField(max_length=20)
    higher_is_better = models.BooleanField(default=True)
    source = models.CharField(max_length=300)
    source_date = models.DateField(null=True, blank=True)
    reproduced = models.BooleanField(default=False)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["board", "metric", "configuration", "measure"], name="external_once"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.board}: {self.metric}"
