"""Reviewers' decisions, and statistics as they were at a time."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from croc_annotate.annotation.models import Campaign, TextRole, Verdict
from croc_annotate.candidates.models import Candidate


class AdjudicationQuerySet(models.QuerySet["Adjudication"]):
    """Decisions in domain words."""

    def current(self) -> AdjudicationQuerySet:
        """Not taken back or replaced."""
        return self.filter(superseded_at__isnull=True)


class Adjudication(models.Model):
    """A reviewer's decision on a candidate and a text. It overrides the rule."""

    campaign = models.ForeignKey(Campaign, on_delete=models.PROTECT, related_name="adjudications")
    candidate = models.ForeignKey(Candidate, on_delete=models.PROTECT, related_name="adjudications")
    text_role = models.CharField(max_length=5, choices=TextRole, default=TextRole.OWN)
    reviewer = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="adjudications"
    )
    verdict = models.CharField(
        max_length=6,
        choices=[(Verdict.ACCEPT.value, _("Accept")), (Verdict.REJECT.value, _("Reject"))],
    )
    reason = models.CharField(max_length=40)
    note = models.CharField(max_length=1000, blank=True)
    blind = models.BooleanField(default=True)
    created_at = models.DateTimeField()
    superseded_at = models.DateTimeField(null=True, blank=True)

    objects = AdjudicationQuerySet.as_manager()

    class Meta:
        constraints = [
            # Two reviewers who decide at once must leave one decision in force.
            models.UniqueConstraint(
                fields=["campaign", "candidate", "text_role"],
                condition=Q(superseded_at__isnull=True),
                name="adjudication_one_current",
            ),
            models.CheckConstraint(
                condition=Q(verdict__in=["accept", "reject"]), name="adjudication_decides"
            ),
        ]

    def __str__(self) -> str:
        return f"adjudication {self.pk}"


class StatisticsSnapshot(models.Model):
    """Numbers that take long to compute, with the time that they hold for."""

    campaign = models.ForeignKey(Campaign, on_delete=models.PROTECT, related_name="snapshots")
    kind = models.CharField(max_length=40)
    parameters = models.JSONField(default=dict)
    data = models.JSONField()
    as_of = models.DateTimeField()
    seconds = models.FloatField(default=0.0)

    class Meta:
        indexes = [models.Index(fields=["campaign", "kind", "-as_of"], name="snapshot_newest")]

    def __str__(self) -> str:
        return f"{self.kind} as of {self.as_of}"
