"""Campaigns, what is judged in them, leases and judgements."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from croc_annotate.candidates.models import Candidate, random_key

if TYPE_CHECKING:
    from datetime import datetime

SHARE = [MinValueValidator(0.0), MaxValueValidator(1.0)]


class TextRole(models.TextChoices):
    """Which of the pair's texts an image is judged against."""

    OWN = "own", _("Own text")
    OTHER = "other", _("Other text")


class Verdict(models.TextChoices):
    """A person's answer. ``unsure`` uses a place but is no vote."""

    ACCEPT = "accept", _("Accept")
    REJECT = "reject", _("Reject")
    UNSURE = "unsure", _("Unsure")


class Purpose(models.TextChoices):
    """Why an answer was asked for. Only ``work`` enters the consensus."""

    WORK = "work", _("Work")
    GOLD = "gold", _("Gold")
    TRAINING = "training", _("Training")
    REFERENCE = "reference", _("Reference")


class RuleName(models.TextChoices):
    """How votes become a verdict."""

    MAJORITY = "majority", _("Majority")
    UNANIMOUS = "unanimous", _("Unanimous")
    POSTERIOR = "posterior", _("Posterior")


class Redundancy(models.TextChoices):
    """How many judgements an item gets."""

    FIXED = "fixed", _("Fixed")
    ADAPTIVE = "adaptive", _("Adaptive")


class Mode(models.TextChoices):
    """How items are shown."""

    FOCUS = "focus", _("One image at a time")
    GRID = "grid", _("The images of one text together")


class CampaignState(models.TextChoices):
    """Whether items are handed out."""

    DRAFT = "draft", _("Draft")
    OPEN = "open", _("Open")
    PAUSED = "paused", _("Paused")
    CLOSED = "closed", _("Closed")


class Guideline(models.Model):
    """What annotators are asked to do. A new text is a new version; old ones stay."""

    version = models.CharField(max_length=40, unique=True)
    title = models.CharField(max_length=120, default="Guideline")
    body = models.TextField(help_text=_("Markdown."))
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return self.version


class ConsentText(models.Model):
    """What a person agrees to before they take part."""

    version = models.CharField(max_length=40, unique=True)
    body = models.TextField(help_text=_("Markdown."))
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return self.version


class CampaignQuerySet(models.QuerySet["Campaign"]):
    """Campaigns in domain words."""

    def open(self) -> CampaignQuerySet:
        """Campaigns that hand out items."""
        return self.filter(state=CampaignState.OPEN)


class Campaign(models.Model):
    """A round of judging with one set of rules."""

    slug = models.SlugField(max_length=80, unique=True)
    title = models.CharField(max_length=120)
    state = models.CharField(max_length=6, choices=CampaignState, default=CampaignState.DRAFT)
    rule = models.CharField(max_length=9, choices=RuleName, default=RuleName.MAJORITY)
    posterior_threshold = models.FloatField(default=0.95, validators=SHARE)
    redundancy = models.CharField(max_length=8, choices=Redundancy, default=Redundancy.FIXED)
    min_judgements = models.PositiveSmallIntegerField(default=3)
    max_judgements = models.PositiveSmallIntegerField(default=5)
    cross_rate = models.FloatField(default=0.0, validators=SHARE)
    reference_rate = models.FloatField(
        default=0.0,
        validators=SHARE,
        help_text=_("Share of items that get one extra judgement kept out of the selection."),
    )
    categories = models.JSONField(default=list, blank=True, help_text=_("Slugs; empty: all."))
    generators = models.JSONField(default=list, blank=True, help_text=_("Slugs; empty: all."))
    banks = models.JSONField(default=list, blank=True, help_text=_("Prompt banks; empty: all."))
    guideline = models.ForeignKey(
        Guideline, on_delete=models.PROTECT, null=True, blank=True, related_name="campaigns"
    )
    consent_text = models.ForeignKey(
        ConsentText, on_delete=models.PROTECT, null=True, blank=True, related_name="campaigns"
    )
    mode = models.CharField(max_length=5, choices=Mode, default=Mode.FOCUS)
    mark_difference = models.BooleanField(default=True)
    order = models.CharField(
        max_length=5, choices=[("mixed", _("Mixed")), ("runs", _("In runs"))], default="mixed"
    )
    min_distance = models.PositiveSmallIntegerField(
        default=20, help_text=_("Items of one pair are this far apart for one person.")
    )
    seed = models.PositiveIntegerField(default=1)
    lease_seconds = models.PositiveIntegerField(default=600)
    gold_rate = models.FloatField(default=0.0, validators=SHARE)
    gold_spacing = models.PositiveSmallIntegerField(default=5)
    gold_threshold = models.FloatField(default=0.7, validators=SHARE)
    gold_minimum = models.PositiveSmallIntegerField(default=5)
    practice_items = models.PositiveSmallIntegerField(default=0)
    quiz_items = models.PositiveSmallIntegerField(default=0)
    quiz_pass_mark = models.FloatField(default=0.8, validators=SHARE)
    session_cap = models.PositiveIntegerField(
        null=True, blank=True, help_text=_("Most items a person judges; empty: no cap.")
    )
    invitation_only = models.BooleanField(default=False)
    is_simulated = models.BooleanField(default=False)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="campaigns_made",
    )
    created_at = models.DateTimeField(auto_now_add=True)

    objects = CampaignQuerySet.as_manager()

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.CheckConstraint(
                condition=Q(min_judgements__gte=1) & Q(max_judgements__gte=F("min_judgements")),
                name="campaign_judgements_in_order",
            ),
        ]

    def __str__(self) -> str:
        return self.title


class ItemQuerySet(models.QuerySet["Item"]):
    """Items in domain words."""

    def own(self) -> ItemQuerySet:
        """Images beside the text that they were made for."""
        return self.filter(text_role=TextRole.OWN)

    def complete(self) -> ItemQuerySet:
        """Items that need no further judgement."""
        return self.filter(closed_at__isnull=False)

    def waiting(self) -> ItemQuerySet:
        """Items with a free place."""
        return self.filter(closed_at__isnull=True, places__gt=0)


class Item(models.Model):
    """A candidate with one of its pair's two texts, as judged in one campaign.

    ``places`` is the number of judgements that may still be handed out: wanted, less live
    leases, less current counted judgements. It is changed only in the transaction that changes
    those rows, and ``annotation.queue.check_places`` compares it with them.
    """

    campaign = models.ForeignKey(Campaign, on_delete=models.PROTECT, related_name="items")
    candidate = models.ForeignKey(Candidate, on_delete=models.PROTECT, related_name="items")
    text_role = models.CharField(max_length=5, choices=TextRole, default=TextRole.OWN)
    purpose = models.CharField(max_length=9, choices=Purpose, default=Purpose.WORK)
    known_verdict = models.CharField(max_length=6, blank=True)
    explanation = models.CharField(max_length=300, blank=True)
    key = models.CharField(max_length=32, unique=True, default=random_key, editable=False)
    group = models.CharField(max_length=64, db_index=True, help_text=_("Hash of the text."))
    position = models.PositiveBigIntegerField()
    places = models.PositiveSmallIntegerField(default=0)
    closed_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    objects = ItemQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["campaign", "candidate", "text_role"], name="item_once"
            ),
            # Two claims at once must not hand out a place that is not there.
            models.CheckConstraint(condition=Q(places__gte=0), name="item_places_not_negative"),
        ]
        indexes = [
            models.Index(
                fields=["campaign", "position"],
                condition=Q(places__gt=0, closed_at__isnull=True, purpose="work"),
                name="item_waiting",
            ),
            models.Index(fields=["campaign", "purpose"], name="item_by_purpose"),
        ]

    def __str__(self) -> str:
        return f"item {self.pk}"

    @property
    def text(self) -> str:
        """The text that the image is judged against."""
        pair, side = self.candidate.pair, self.candidate.side
        return pair.own_text(side) if self.text_role == TextRole.OWN else pair.other_text(side)


class AssignmentState(models.TextChoices):
    """The life of a lease."""

    LEASED = "leased", _("Held")
    ANSWERED = "answered", _("Answered")
    RETURNED = "returned", _("Given back")
    EXPIRED = "expired", _("Expired")
    SKIPPED = "skipped", _("Skipped")


class AssignmentQuerySet(models.QuerySet["Assignment"]):
    """Leases in domain words."""

    def live(self, at: datetime) -> AssignmentQuerySet:
        """Held at time ``at``."""
        return self.filter(state=AssignmentState.LEASED, expires_at__gt=at)

    def overdue(self, at: datetime) -> AssignmentQuerySet:
        """Held past their time."""
        return self.filter(state=AssignmentState.LEASED, expires_at__lte=at)


class Assignment(models.Model):
    """A lease: one person holds one place of an item until they answer or the time is over."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    item = models.ForeignKey(Item, on_delete=models.PROTECT, related_name="assignments")
    annotator = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="assignments"
    )
    campaign = models.ForeignKey(Campaign, on_delete=models.PROTECT, related_name="assignments")
    purpose = models.CharField(max_length=9, choices=Purpose, default=Purpose.WORK)
    state = models.CharField(max_length=8, choices=AssignmentState, default=AssignmentState.LEASED)
    skip_reason = models.CharField(max_length=20, blank=True)
    remark = models.CharField(max_length=1000, blank=True)
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, blank=True)

    objects = AssignmentQuerySet.as_manager()

    class Meta:
        constraints = [
            # Two tabs that claim at once must not hold one item twice for one person.
            models.UniqueConstraint(
                fields=["item", "annotator"],
                condition=Q(state="leased"),
                name="assignment_one_live_lease",
            ),
        ]
        indexes = [
            models.Index(
                fields=["campaign", "expires_at"],
                condition=Q(state="leased"),
                name="assignment_live",
            ),
            models.Index(
                fields=["annotator", "campaign", "-created_at"], name="assignment_by_annotator"
            ),
        ]

    def __str__(self) -> str:
        return f"lease {self.pk}"


class JudgementQuerySet(models.QuerySet["Judgement"]):
    """Judgements in domain words."""

    def current(self) -> JudgementQuerySet:
        """Not corrected since."""
        return self.filter(superseded_at__isnull=True)

    def counted(self, campaign: Campaign) -> JudgementQuerySet:
        """What the consensus sees: current work judgements, neither surplus nor set aside."""
        return self.current().filter(
            campaign=campaign, purpose=Purpose.WORK, surplus=False, set_aside_at__isnull=True
        )

    def votes(self) -> JudgementQuerySet:
        """Accepts and rejects: ``unsure`` is no vote."""
        return self.exclude(verdict=Verdict.UNSURE)


class Judgement(models.Model):
    """One person's answer about one item. A correction is a new row that closes the old one."""

    campaign = models.ForeignKey(Campaign, on_delete=models.PROTECT, related_name="judgements")
    item = models.ForeignKey(Item, on_delete=models.PROTECT, related_name="judgements")
    annotator = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="judgements"
    )
    verdict = models.CharField(max_length=6, choices=Verdict)
    reason = models.CharField(max_length=40, blank=True)
    remark = models.CharField(max_length=1000, blank=True)
    active_ms = models.PositiveIntegerField(null=True, blank=True)
    mode = models.CharField(max_length=8, default=Mode.FOCUS)
    purpose = models.CharField(max_length=9, choices=Purpose, default=Purpose.WORK)
    source = models.CharField(max_length=20, default="web")
    surplus = models.BooleanField(default=False)
    set_aside_at = models.DateTimeField(null=True, blank=True)
    guideline_version = models.CharField(max_length=40, blank=True)
    client_key = models.UUIDField(unique=True, default=uuid.uuid4)
    supersedes = models.OneToOneField(
        "self", on_delete=models.PROTECT, null=True, blank=True, related_name="superseded_by"
    )
    superseded_at = models.DateTimeField(null=True, blank=True)
    answered_at = models.DateTimeField(help_text=_("When the person answered, by their clock."))
    created_at = models.DateTimeField(help_text=_("When the server stored it."))

    objects = JudgementQuerySet.as_manager()

    class Meta:
        constraints = [
            # The same answer sent from two devices must leave one current row.
            models.UniqueConstraint(
                fields=["item", "annotator"],
                condition=Q(superseded_at__isnull=True),
                name="judgement_one_current",
            ),
            models.CheckConstraint(
                condition=Q(verdict__in=Verdict.values), name="judgement_verdict_is_known"
            ),
        ]
        indexes = [
            models.Index(fields=["annotator", "campaign", "-id"], name="judgement_by_annotator"),
            models.Index(
                fields=["campaign", "item"],
                condition=Q(
                    superseded_at__isnull=True,
                    purpose="work",
                    surplus=False,
                    set_aside_at__isnull=True,
                ),
                name="judgement_counted",
            ),
        ]

    def __str__(self) -> str:
        return f"judgement {self.pk}"


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
    """How far one person is in one campaign, and where their queue stands."""

    campaign = models.ForeignKey(Campaign, on_delete=models.PROTECT, related_name="participations")
    annotator = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="participations"
    )
    cursor = models.PositiveBigIntegerField(default=0)
    guideline_read_at = models.DateTimeField(null=True, blank=True)
    guideline_version = models.CharField(max_length=40, blank=True)
    qualified_at = models.DateTimeField(null=True, blank=True)
    failed_at = models.DateTimeField(null=True, blank=True)
    paused_at = models.DateTimeField(null=True, blank=True)
    pause_reason = models.CharField(max_length=200, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["campaign", "annotator"], name="participation_once"),
        ]

    def __str__(self) -> str:
        return f"participation {self.pk}"


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
