"""What is judged, who holds it, and what they answered."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from croc_annotate.annotation.models.campaigns import Campaign
from croc_annotate.annotation.models.choices import (
    AssignmentState,
    FlagKind,
    Mode,
    Purpose,
    TextRole,
    Verdict,
)
from croc_annotate.candidates.models import Candidate, random_key
from croc_annotate.prompts.models import ContrastPair

if TYPE_CHECKING:
    from datetime import datetime

# What the queue's indexes hold: items of which something may be handed out.
WAITING = Q(needed__gt=F("leased")) | Q(reference_open=True)


class ItemQuerySet(models.QuerySet["Item"]):
    """Items in domain words."""

    def work(self) -> ItemQuerySet:
        """Items of the job itself, without gold and training."""
        return self.filter(purpose=Purpose.WORK)

    def own(self) -> ItemQuerySet:
        """Images beside the text that they were made for."""
        return self.filter(text_role=TextRole.OWN)

    def complete(self) -> ItemQuerySet:
        """Items that need no further judgement."""
        return self.filter(closed_at__isnull=False)

    def incomplete(self) -> ItemQuerySet:
        """Items of the job that need further judgements, handed out or not."""
        return self.work().filter(closed_at__isnull=True)

    def waiting(self) -> ItemQuerySet:
        """Items with a free place."""
        return self.filter(WAITING)


class Item(models.Model):
    """A candidate with one of its pair's two texts, as judged in one campaign.

    ``needed`` is the number of judgements still needed given the counted ones, ``leased`` the
    number of live leases. Both change only in the transaction that changes those rows, and
    ``annotation.checks.check_queue`` compares them with the rows.
    """

    campaign = models.ForeignKey(
        Campaign, on_delete=models.PROTECT, related_name="items", db_index=False
    )
    candidate = models.ForeignKey(Candidate, on_delete=models.PROTECT, related_name="items")
    pair = models.ForeignKey(
        ContrastPair, on_delete=models.PROTECT, related_name="items", db_index=False
    )
    text_role = models.CharField(max_length=5, choices=TextRole, default=TextRole.OWN)
    purpose = models.CharField(max_length=9, choices=Purpose, default=Purpose.WORK)
    known_verdict = models.CharField(max_length=6, blank=True)
    explanation = models.CharField(max_length=300, blank=True)
    is_quiz = models.BooleanField(
        default=False, help_text=_("Training items: asked in the quiz, not in practice.")
    )
    key = models.CharField(max_length=32, unique=True, default=random_key, editable=False)
    group = models.CharField(max_length=64, help_text=_("Hash of the text."))
    position = models.PositiveBigIntegerField()
    needed = models.PositiveSmallIntegerField(default=0)
    leased = models.PositiveSmallIntegerField(default=0)
    extra = models.PositiveSmallIntegerField(
        default=0, help_text=_("Judgements beyond the campaign's, asked for by a reviewer.")
    )
    reference = models.BooleanField(
        default=False, help_text=_("Gets one extra judgement that is kept out of the selection.")
    )
    reference_open = models.BooleanField(default=False)
    opened_at = models.DateTimeField(help_text=_("When a place last became free."))
    closed_at = models.DateTimeField(null=True, blank=True)
    closed_by_review = models.BooleanField(default=False)
    created_at = models.DateTimeField(auto_now_add=True)

    objects = ItemQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["campaign", "candidate", "text_role"], name="item_once"
            ),
            # A lease that ends twice (answered here, expired there) must not count twice.
            models.CheckConstraint(condition=Q(leased__gte=0), name="item_leased_not_negative"),
            models.CheckConstraint(
                condition=~Q(purpose__in=["gold", "training"]) | ~Q(known_verdict=""),
                name="item_gold_has_its_answer",
            ),
        ]
        indexes = [
            # Partial: their size is that of the work left, not of the campaign.
            models.Index(fields=["campaign", "position"], condition=WAITING, name="item_waiting"),
            models.Index(
                fields=["campaign", "group", "position"], condition=WAITING, name="item_group"
            ),
            models.Index(fields=["campaign", "opened_at"], condition=WAITING, name="item_reopened"),
            models.Index(fields=["campaign", "closed_at"], name="item_progress"),
            models.Index(
                fields=["campaign", "purpose", "position"],
                condition=~Q(purpose="work"),
                name="item_known",
            ),
        ]

    def __str__(self) -> str:
        return f"item {self.pk}"

    @property
    def places(self) -> int:
        """Judgements that may be handed out now."""
        return max(self.needed - self.leased, 0)

    @property
    def text(self) -> str:
        """The text that the image is judged against."""
        return self._text(TextRole.OWN)

    @property
    def other_text(self) -> str:
        """The pair's text that it is not judged against."""
        return self._text(TextRole.OTHER)

    def _text(self, same: str) -> str:
        pair, side = self.pair, self.candidate.side
        return pair.own_text(side) if self.text_role == same else pair.other_text(side)


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
        settings.AUTH_USER_MODEL,
        on_delete=models.PROTECT,
        related_name="assignments",
        db_index=False,
    )
    campaign = models.ForeignKey(
        Campaign, on_delete=models.PROTECT, related_name="assignments", db_index=False
    )
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
            # Partial: what a person holds is a handful, what they held grows with their work.
            models.Index(
                fields=["annotator", "campaign", "created_at"],
                condition=Q(state="leased"),
                name="assignment_held",
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

    campaign = models.ForeignKey(
        Campaign, on_delete=models.PROTECT, related_name="judgements", db_index=False
    )
    item = models.ForeignKey(Item, on_delete=models.PROTECT, related_name="judgements")
    annotator = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.PROTECT,
        related_name="judgements",
        db_index=False,
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


class Flag(models.Model):
    """A problem that a person reported about an item. It changes nothing by itself."""

    item = models.ForeignKey(Item, on_delete=models.PROTECT, related_name="flags")
    annotator = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="flags"
    )
    kind = models.CharField(max_length=20, choices=FlagKind)
    remark = models.CharField(max_length=1000, blank=True)
    client_key = models.UUIDField(unique=True)
    created_at = models.DateTimeField()
    resolved_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"flag {self.pk}"
