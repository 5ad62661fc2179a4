"""Generators and the images they made."""

from __future__ import annotations

import json
import secrets
from typing import TYPE_CHECKING

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from croc_annotate.prompts.models import ContrastPair, Side

if TYPE_CHECKING:
    from datetime import datetime


def random_key() -> str:
    """A name that tells nothing: 128 random bits."""
    return secrets.token_hex(16)


class Generator(models.Model):
    """A text-to-image model with fixed settings, or another source of images."""

    slug = models.CharField(max_length=80, unique=True)
    label = models.CharField(max_length=120)
    pipeline = models.CharField(
        max_length=120, blank=True, help_text=_("Registry name or dotted path; empty: imported.")
    )
    model_id = models.CharField(max_length=200, blank=True)
    revision = models.CharField(max_length=80, blank=True)
    settings = models.JSONField(default=dict, blank=True)
    licence = models.CharField(max_length=200, default="unknown")
    is_drawn = models.BooleanField(
        default=False, help_text=_("Drawn by a program with known truth; not a generative model.")
    )
    active = models.BooleanField(default=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["slug"]

    def __str__(self) -> str:
        return self.label


class CandidateState(models.TextChoices):
    """The life of a candidate."""

    REQUESTED = "requested", _("Waiting")
    RENDERED = "rendered", _("Rendered")
    FAILED = "failed", _("Failed")


class CandidateQuerySet(models.QuerySet["Candidate"]):
    """Candidates in domain words."""

    def requested(self) -> CandidateQuerySet:
        """Planned, no image yet."""
        return self.filter(state=CandidateState.REQUESTED)

    def rendered(self) -> CandidateQuerySet:
        """With an image."""
        return self.filter(state=CandidateState.RENDERED)

    def failed(self) -> CandidateQuerySet:
        """Given up, with a reason."""
        return self.filter(state=CandidateState.FAILED)

    def claimable(self, at: datetime) -> CandidateQuerySet:
        """Waiting and held by no living worker at time ``at``."""
        return self.requested().filter(Q(claimed_until__isnull=True) | Q(claimed_until__lt=at))

    def on_evaluated_sides(self) -> CandidateQuerySet:
        """On the two sides that metrics are scored on."""
        negation = Q(pair__category="negation")
        return self.filter(
            Q(side=Side.PROMPT)
            | (negation & Q(side=Side.ALT_CONTRAST))
            | (~negation & Q(side=Side.CONTRAST))
        )


class Candidate(models.Model):
    """One image (wanted, made or failed) of one side of a pair, by one generator with one seed."""

    # The foreign keys need no index of their own: other indexes begin with them, and each
    # further index slows the planning of 80,000 rows.
    pair = models.ForeignKey(
        ContrastPair, on_delete=models.PROTECT, related_name="candidates", db_index=False
    )
    side = models.CharField(max_length=12, choices=Side)
    generator = models.ForeignKey(
        Generator, on_delete=models.PROTECT, related_name="candidates", db_index=False
    )
    seed = models.PositiveBigIntegerField()
    state = models.CharField(max_length=9, choices=CandidateState, default=CandidateState.REQUESTED)
    key = models.CharField(max_length=32, default=random_key, editable=False)
    image = models.CharField(max_length=200, blank=True, help_text=_("Storage name: the original."))
    display = models.CharField(
        max_length=200, blank=True, help_text=_("Storage name: the stripped copy people judge.")
    )
    preview = models.CharField(max_length=200, blank=True, help_text=_("Storage name: thumbnail."))
    sha256 = models.CharField(max_length=64, blank=True)
    phash = models.BigIntegerField(null=True, blank=True)
    near_duplicate_of = models.ForeignKey(
        "self", on_delete=models.SET_NULL, null=True, blank=True, related_name="near_duplicates"
    )
    width = models.PositiveIntegerField(null=True, blank=True)
    height = models.PositiveIntegerField(null=True, blank=True)
    source_name = models.CharField(max_length=400, blank=True)
    provenance = models.JSONField(default=dict, blank=True)
    error = models.TextField(blank=True)
    claimed_by = models.CharField(max_length=120, blank=True)
    claimed_until = models.DateTimeField(null=True, blank=True)
    attempts = models.PositiveSmallIntegerField(default=0)
    created_at = models.DateTimeField(auto_now_add=True)
    rendered_at = models.DateTimeField(null=True, blank=True)

    objects = CandidateQuerySet.as_manager()

    class Meta:
        constraints = [
            # A task that is delivered twice must not make a second image of one seed.
            models.UniqueConstraint(
                fields=["pair", "side", "generator", "seed"], name="candidate_once"
            ),
            # Two images behind one address would show a person the wrong one.
            models.UniqueConstraint(fields=["key"], name="candidate_key_once"),
            # A worker that dies between file and row must not leave a row without its image.
            models.CheckConstraint(
                condition=~Q(state="rendered") | (~Q(sha256="") & ~Q(image="")),
                name="candidate_rendered_has_hash",
            ),
            models.CheckConstraint(
                condition=~Q(state="failed") | ~Q(error=""), name="candidate_failed_has_reason"
            ),
            models.CheckConstraint(
                condition=Q(side__in=Side.values), name="candidate_side_is_known"
            ),
        ]
        indexes = [
            models.Index(
                fields=["generator", "pair", "side", "seed"],
                condition=Q(state="requested"),
                name="candidate_waiting",
            ),
            models.Index(fields=["generator", "state"], name="candidate_by_state"),
            models.Index(fields=["sha256"], name="candidate_by_hash"),
            models.Index(fields=["source_name"], name="candidate_by_source"),
        ]

    def __str__(self) -> str:
        return f"{self.pair_id}/{self.side}/{self.generator_id}/{self.seed}"

    @property
    def own_text(self) -> str:
        """The text that the image is judged against."""
        return self.pair.own_text(self.side)

    @property
    def generation_text(self) -> str:
        """The text that the image is made from."""
        return self.pair.generation_text(self.side)

    @property
    def provenance_text(self) -> str:
        """The provenance for people to read."""
        return json.dumps(self.provenance, indent=2, ensure_ascii=False)


class LeftFile(models.Model):
    """A file that no candidate needs any more, remembered until it is surely gone.

    The store may be away when the file is to be deleted, and it may complete an upload long
    after the connection was lost. So each name that was ever announced stands either in its
    candidate's row or here.
    """

    name = models.CharField(max_length=200, unique=True)
    since = models.DateTimeField(db_index=True)

    def __str__(self) -> str:
        return self.name


class Worker(models.Model):
    """A process that renders or scores, as it last reported itself."""

    name = models.CharField(max_length=120, unique=True)
    queue = models.CharField(max_length=20, default="gpu")
    device = models.CharField(max_length=120, blank=True)
    doing = models.CharField(max_length=200, blank=True)
    images_done = models.PositiveBigIntegerField(default=0)
    started_at = models.DateTimeField()
    heartbeat_at = models.DateTimeField(db_index=True)
    stopped_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return self.name
