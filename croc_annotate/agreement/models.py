"""Reviewers' decisions, and statistics as they were at a time."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from croc_annotate.annotation.models import Campaign, Item, TextRole, Verdict
from croc_annotate.candidates.models import Candidate


class AdjudicationQuerySet(models.QuerySet["Adjudication"]):
    """Decisions in domain words."""

    def current(self) -> AdjudicationQuerySet:
        """Not taken back or replaced."""
        return self.filter(superseded_at__isnull=True)

    def in_force(self) -> AdjudicationQuerySet:
        """Current and, where a second reviewer was wanted, confirmed."""
        return self.current().filter(Q(second_wanted=False) | Q(confirmed_by__isnull=False))

    def waiting_for_second(self) -> AdjudicationQuerySet:
        """Current, but another reviewer has still to agree."""
        return self.current().filter(second_wanted=True, confirmed_by__isnull=True)


class ReasonCode(models.TextChoices):
    """Why a reviewer decided as they did."""

    CLEAR = "clear", _("The image is clear; some judged wrongly")
    DETAIL = "detail", _("A detail settles it")
    GUIDELINE = "guideline", _("The guideline settles it")
    QUALITY = "quality", _("The image is too poor to show the text")
    AMBIGUOUS = "ambiguous", _("The text can be read in two ways")
    OTHER = "other", _("Other (see the note)")


class DefectCode(models.TextChoices):
    """What is wrong with a pair."""

    BOTH_TRUE = "both_true", _("Both texts can be true of one image")
    AMBIGUOUS = "ambiguous", _("A text can be read in two ways")
    MORE_THAN_ONE = "more_than_one", _("The texts differ in more than one property")
    OTHER = "other", _("Other (see the note)")


class Adjudication(models.Model):
    """A reviewer's decision on a candidate and a text. In force, it overrides the rule.

    Where a second reviewer is wanted, a decision is in force once another reviewer has
    decided the same; a different decision replaces it and waits in its turn.
    """

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
    reason = models.CharField(max_length=40, choices=ReasonCode)
    note = models.CharField(max_length=1000, blank=True)
    blind = models.BooleanField(default=True)
    second_wanted = models.BooleanField(default=False)
    confirmed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="confirmed_adjudications",
    )
    confirmed_at = models.DateTimeField(null=True, blank=True)
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
            # One person in two tabs must not be their own second reviewer.
            models.CheckConstraint(
                condition=Q(confirmed_by__isnull=True) | ~Q(confirmed_by=models.F("reviewer")),
                name="adjudication_second_is_another",
            ),
        ]

    def __str__(self) -> str:
        return f"adjudication {self.pk}"


class ReviewPolicy(models.Model):
    """How a campaign's disputes are settled."""

    campaign = models.OneToOneField(
        Campaign, on_delete=models.PROTECT, related_name="review_policy"
    )
    second_reviewer = models.BooleanField(
        default=False, help_text=_("A decision holds only when a second reviewer agrees.")
    )
    low_posterior = models.FloatField(
        default=0.8,
        help_text=_("Accepted images with a lower posterior than this are reviewed, too."),
    )

    class Meta:
        verbose_name_plural = "review policies"
        constraints = [
            models.CheckConstraint(
                condition=Q(low_posterior__gte=0.0) & Q(low_posterior__lte=1.0),
                name="review_policy_posterior_is_a_share",
            ),
        ]

    def __str__(self) -> str:
        return f"review of {self.campaign}"


class ConsensusState(models.TextChoices):
    """What the votes on an item come to."""

    PENDING = "pending", _("Pending")
    ACCEPTED = "accepted", _("Accepted")
    REJECTED = "rejected", _("Rejected")
    DISPUTED = "disputed", _("Disputed")


class ItemConsensusQuerySet(models.QuerySet["ItemConsensus"]):
    """States of items in domain words."""

    def to_review(self, low_posterior: float) -> ItemConsensusQuerySet:
        """Disputed, or accepted by votes with a lower posterior than asked for."""
        weak = Q(state=ConsensusState.ACCEPTED, posterior__lt=low_posterior)
        found = self.filter(Q(state=ConsensusState.DISPUTED) | weak)
        return found.exclude(verified_by="adjudicated")


class ItemConsensus(models.Model):
    """The state of an item when statistics were last computed, for filters and queues.

    Derived: ``agreement.statistics`` writes it from the judgements; a reviewer's act shows in it
    at once.
    """

    item = models.OneToOneField(
        Item, on_delete=models.CASCADE, primary_key=True, related_name="consensus"
    )
    campaign = models.ForeignKey(
        Campaign, on_delete=models.CASCADE, related_name="+", db_index=False
    )
    candidate = models.ForeignKey(Candidate, on_delete=models.CASCADE, related_name="consensus")
    text_role = models.CharField(max_length=5, choices=TextRole)
    state = models.CharField(max_length=8, choices=ConsensusState)
    verified_by = models.CharField(max_length=11, blank=True)
    n_accept = models.PositiveSmallIntegerField(default=0)
    n_reject = models.PositiveSmallIntegerField(default=0)
    n_unsure = models.PositiveSmallIntegerField(default=0)
    posterior = models.FloatField(null=True, blank=True)
    complete = models.BooleanField(default=False)
    # A reviewer's act changes the row at once; statistics that began before it must not undo that.
    reviewed_at = models.DateTimeField(null=True, blank=True)

    objects = ItemConsensusQuerySet.as_manager()

    class Meta:
        indexes = [
            models.Index(fields=["campaign", "state", "posterior"], name="consensus_by_state"),
        ]

    def __str__(self) -> str:
        return f"{self.state} item {self.item_id}"

    def waits_for_review(self, low_posterior: float) -> bool:
        """Whether a reviewer has still to look at it, blind; as ``to_review`` says it of many."""
        if self.verified_by == "adjudicated":
            return False
        weak = self.posterior is not None and self.posterior < low_posterior
        return self.state == ConsensusState.DISPUTED or (
            self.state == ConsensusState.ACCEPTED and weak
        )


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
