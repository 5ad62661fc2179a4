"""How far a person is in a campaign: consent, training, queue, pauses, invitations."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from croc_annotate.annotation.models.campaigns import Campaign, ConsentText


class Consent(models.Model):
    """A person's answer to a consent text, for one campaign."""

    campaign = models.ForeignKey(Campaign, on_delete=models.PROTECT, related_name="consents")
    annotator = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="consents"
    )
    text = models.ForeignKey(ConsentText, on_delete=models.PROTECT, related_name="answers")
    given = models.BooleanField()
    at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["campaign", "annotator", "text"], name="consent_once"),
        ]

    def __str__(self) -> str:
        return f"consent {self.pk}"


class Participation(models.Model):
    """How far one person is in one campaign, and where their queue stands.

    Its row is locked first by whatever a person does in a campaign, so that two tabs of one
    person wait for each other. The counts are compared with the rows by
    ``annotation.checks.check_participations``.
    """

    campaign = models.ForeignKey(Campaign, on_delete=models.PROTECT, related_name="participations")
    annotator = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="participations"
    )
    study = models.ForeignKey(
        "Study", on_delete=models.PROTECT, null=True, blank=True, related_name="participations"
    )
    study_base = models.PositiveIntegerField(
        default=0, help_text=_("Answers given before the present study.")
    )
    cursor = models.PositiveBigIntegerField(default=0)
    recent = models.JSONField(
        default=list, blank=True, help_text=_("Last items handed out: position, pair, text, time.")
    )
    exhausted_at = models.DateTimeField(
        null=True, blank=True, help_text=_("Nothing was left for this person then.")
    )
    handed_out = models.PositiveIntegerField(default=0)
    answered = models.PositiveIntegerField(default=0)
    paces = models.JSONField(default=list, blank=True, help_text=_("Last active milliseconds."))
    active_ms = models.PositiveBigIntegerField(default=0)
    gold_at = models.PositiveIntegerField(
        default=0, help_text=_("Number of items handed out at which the next gold is due.")
    )
    gold_seen = models.PositiveIntegerField(default=0)
    gold_correct = models.PositiveIntegerField(default=0)
    gold_base = models.PositiveIntegerField(
        default=0, help_text=_("Gold seen before an admin let the person go on.")
    )
    gold_base_correct = models.PositiveIntegerField(default=0)
    consent_version = models.CharField(max_length=40, blank=True)
    declined_at = models.DateTimeField(null=True, blank=True)
    guideline_read_at = models.DateTimeField(null=True, blank=True)
    guideline_version = models.CharField(max_length=40, blank=True)
    practised = models.PositiveSmallIntegerField(default=0)
    qualified_at = models.DateTimeField(null=True, blank=True)
    categories = models.JSONField(
        default=list, blank=True, help_text=_("Categories qualified for; empty: all.")
    )
    failed_at = models.DateTimeField(null=True, blank=True)
    paused_at = models.DateTimeField(null=True, blank=True)
    pause_reason = models.CharField(max_length=200, blank=True)
    started_at = models.DateTimeField(null=True, blank=True, help_text=_("First item of work."))
    ended_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            # Two first visits at once must not start two queues for one person.
            models.UniqueConstraint(fields=["campaign", "annotator"], name="participation_once"),
        ]

    def __str__(self) -> str:
        return f"participation {self.pk}"


class Qualification(models.Model):
    """The result of a quiz, for one person and category. The first result stands."""

    campaign = models.ForeignKey(Campaign, on_delete=models.PROTECT, related_name="qualifications")
    annotator = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="qualifications"
    )
    category = models.CharField(max_length=40)
    asked = models.PositiveSmallIntegerField()
    correct = models.PositiveSmallIntegerField()
    passed = models.BooleanField()
    at = models.DateTimeField()

    class Meta:
        constraints = [
            # A reload of the quiz's last page must not give a second try.
            models.UniqueConstraint(
                fields=["campaign", "annotator", "category"], name="qualification_once"
            ),
        ]

    def __str__(self) -> str:
        return f"qualification {self.pk}"


class Invitation(models.Model):
    """A link that lets colleagues join a campaign. Only the hash of its secret is kept."""

    campaign = models.ForeignKey(Campaign, on_delete=models.PROTECT, related_name="invitations")
    label = models.CharField(max_length=120, blank=True)
    sha256 = models.CharField(max_length=64, unique=True, editable=False)
    max_uses = models.PositiveIntegerField(default=1)
    uses = models.PositiveIntegerField(default=0, editable=False)
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="invitations_made"
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            # Two people who follow the last use at once must not both come in.
            models.CheckConstraint(
                condition=models.Q(uses__lte=models.F("max_uses")), name="invitation_not_overused"
            ),
        ]

    def __str__(self) -> str:
        return self.label or f"invitation {self.pk}"
