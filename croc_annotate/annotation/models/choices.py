"""Words that rows use: verdicts, purposes, states."""

from __future__ import annotations

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.utils.translation import gettext_lazy as _

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


class AssignmentState(models.TextChoices):
    """The life of a lease."""

    LEASED = "leased", _("Held")
    ANSWERED = "answered", _("Answered")
    RETURNED = "returned", _("Given back")
    EXPIRED = "expired", _("Expired")
    SKIPPED = "skipped", _("Skipped")


class FlagKind(models.TextChoices):
    """What a person may report about an item."""

    BROKEN_IMAGE = "broken_image", _("The image is broken")
    UNCLEAR_TEXT = "unclear_text", _("The text is unclear")
    OFFENSIVE = "offensive", _("Offensive")
