"""Campaigns and the texts that people read before they judge."""

from __future__ import annotations

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from croc_annotate.annotation.models.choices import (
    SHARE,
    CampaignState,
    Mode,
    Redundancy,
    RuleName,
)
from croc_annotate.annotation.redundancy import Policy


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
    distance = models.PositiveSmallIntegerField(
        default=0,
        editable=False,
        help_text=_("The distance that can be held with the pairs there are (open_items)."),
    )
    grid_size = models.PositiveSmallIntegerField(
        default=12, validators=[MinValueValidator(2), MaxValueValidator(20)]
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

    @property
    def policy(self) -> Policy:
        """The redundancy as pure arithmetic sees it."""
        return Policy(
            adaptive=self.redundancy == Redundancy.ADAPTIVE,
            least=self.min_judgements,
            most=self.max_judgements,
        )
