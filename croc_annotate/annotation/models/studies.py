"""Studies on a crowd platform and people's submissions to them."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from croc_annotate.annotation.models.campaigns import Campaign


class Outcome(models.TextChoices):
    """How a submission ended here. One code on the platform belongs to each."""

    COMPLETED = "completed", _("Completed")
    SCREENED_OUT = "screened_out", _("Screened out")
    NO_CONSENT = "no_consent", _("No consent")
    TIMED_OUT = "timed_out", _("Time over")


class Study(models.Model):
    """A study on a crowd platform, bound to a campaign by an admin."""

    campaign = models.ForeignKey(Campaign, on_delete=models.PROTECT, related_name="studies")
    platform = models.CharField(max_length=20, default="prolific")
    study_id = models.CharField(max_length=64)
    code_completed = models.CharField(max_length=40)
    code_screened_out = models.CharField(max_length=40)
    code_no_consent = models.CharField(max_length=40)
    return_url = models.URLField(default="https://app.prolific.com/submissions/complete")
    reward_per_hour = models.DecimalField(max_digits=6, decimal_places=2, null=True, blank=True)
    reward_pence = models.PositiveIntegerField(null=True, blank=True)
    session_cap = models.PositiveIntegerField(null=True, blank=True)
    time_limit_minutes = models.PositiveIntegerField(null=True, blank=True)
    active = models.BooleanField(default=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name_plural = "studies"
        constraints = [
            models.UniqueConstraint(fields=["platform", "study_id"], name="study_once"),
        ]

    def __str__(self) -> str:
        return self.study_id

    def code(self, outcome: str) -> str:
        """The completion code of ``outcome``; empty when the platform has none for it."""
        codes = {
            Outcome.COMPLETED: self.code_completed,
            Outcome.SCREENED_OUT: self.code_screened_out,
            Outcome.NO_CONSENT: self.code_no_consent,
        }
        return codes.get(Outcome(outcome), "")


class Submission(models.Model):
    """One person's place in a study. Following the link again, with a new session, resumes it."""

    study = models.ForeignKey(Study, on_delete=models.PROTECT, related_name="submissions")
    annotator = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="submissions"
    )
    session_id = models.CharField(max_length=64)
    earlier_sessions = models.JSONField(default=list, blank=True)
    outcome = models.CharField(max_length=12, choices=Outcome, blank=True)
    outcome_at = models.DateTimeField(null=True, blank=True)
    code_shown_at = models.DateTimeField(null=True, blank=True)
    platform_state = models.CharField(max_length=30, blank=True)
    platform_state_at = models.DateTimeField(null=True, blank=True)
    started_at = models.DateTimeField()

    class Meta:
        constraints = [
            # The entry link opened in two tabs must not make two submissions of one person.
            models.UniqueConstraint(fields=["study", "annotator"], name="submission_once"),
            models.CheckConstraint(
                condition=Q(outcome="", outcome_at__isnull=True)
                | (~Q(outcome="") & Q(outcome_at__isnull=False)),
                name="submission_outcome_has_its_time",
            ),
        ]
        indexes = [models.Index(fields=["session_id"], name="submission_by_session")]

    def __str__(self) -> str:
        return f"submission {self.pk}"
