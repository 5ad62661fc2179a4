"""Frozen releases: who is in, why, and on which judgements; exports made in the background."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from croc_annotate.annotation.models import Campaign, RuleName, TextRole
from croc_annotate.candidates.models import Candidate
from croc_annotate.prompts.models import ContrastPair

PUBLISHED = "published"


class ReleaseState(models.TextChoices):
    """A release is made whole or not at all; it can only be withdrawn."""

    FROZEN = "frozen", _("Frozen")
    WITHDRAWN = "withdrawn", _("Withdrawn")


class MemberReason(models.TextChoices):
    """Why a candidate is in or out. The counts of all reasons add up to all candidates."""

    VERIFIED = "verified", _("Verified")
    REJECTED = "rejected", _("Rejected")
    DISPUTED = "disputed", _("Disputed")
    TOO_FEW = "too_few", _("Too few judgements")
    OTHER_UNDECIDED = "other_undecided", _("Other text undecided")
    OTHER_UNJUDGED = "other_unjudged", _("Other text not judged")
    FAILED = "failed", _("Rendering failed")
    NOT_RENDERED = "not_rendered", _("Not rendered")
    INACTIVE = "inactive", _("Pair not in use")


class ReleaseQuerySet(models.QuerySet["Release"]):
    """Releases in domain words."""

    def frozen(self) -> ReleaseQuerySet:
        """Not withdrawn."""
        return self.filter(state=ReleaseState.FROZEN)

    def public(self) -> ReleaseQuerySet:
        """Shown to everybody. A withdrawn one stays visible: people who hold it must learn of it."""
        return self.filter(is_public=True)

    def newest_first(self) -> ReleaseQuerySet:
        """Newest first."""
        return self.order_by("-id")


class Release(models.Model):
    """A set of verified images with the numbers that it was published with.

    Written once: when ``sealed``, triggers (migration 0002) refuse every change of the row but
    its withdrawal and its visibility, and every change of its pairs, members and annotations.
    ``sha256`` covers all of them, so that what an export writes can be checked against it.
    """

    name = models.CharField(max_length=80)
    version = models.CharField(max_length=20, default="1.0.0")
    state = models.CharField(max_length=9, choices=ReleaseState, default=ReleaseState.FROZEN)
    sealed = models.BooleanField(default=False, editable=False)
    campaign = models.ForeignKey(
        Campaign, on_delete=models.PROTECT, null=True, blank=True, related_name="releases"
    )
    origin = models.CharField(
        max_length=10,
        choices=[("campaign", _("campaign")), (PUBLISHED, _("published"))],
        default="campaign",
    )
    rule = models.CharField(
        max_length=9, choices=[*RuleName.choices, (PUBLISHED, _("As published"))]
    )
    parameters = models.JSONField(default=dict)
    notes = models.TextField(blank=True)
    counts = models.JSONField(default=dict, help_text=_("Candidates by reason."))
    generators = models.JSONField(
        default=dict, help_text=_("Model, revision and licence of each, as they were.")
    )
    agreement = models.JSONField(default=dict)
    manifest = models.JSONField(default=dict)
    sha256 = models.CharField(max_length=64, blank=True)
    is_public = models.BooleanField(default=False)
    is_simulated = models.BooleanField(default=False)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="releases_made",
    )
    created_at = models.DateTimeField()
    withdrawn_at = models.DateTimeField(null=True, blank=True)
    withdrawn_note = models.TextField(blank=True)

    objects = ReleaseQuerySet.as_manager()

    class Meta:
        ordering = ["-id"]
        constraints = [
            # Two people who freeze at once must not make two releases of one name.
            models.UniqueConstraint(fields=["name", "version"], name="release_version_once"),
            models.CheckConstraint(
                condition=Q(sealed=False) | ~Q(sha256=""), name="release_sealed_has_hash"
            ),
            models.CheckConstraint(
                condition=~Q(state="withdrawn")
                | (Q(withdrawn_at__isnull=False) & ~Q(withdrawn_note="")),
                name="release_withdrawn_has_note",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} {self.version}"

    @property
    def is_withdrawn(self) -> bool:
        """Taken back; the note says why."""
        return self.state == ReleaseState.WITHDRAWN

    @property
    def n_verified(self) -> int:
        """Images in the release."""
        return int(self.counts.get(MemberReason.VERIFIED, 0))

    @property
    def exclusive(self) -> bool:
        """Whether people also had to reject the other text."""
        return bool(self.parameters.get("exclusive", False))


class ReleasePair(models.Model):
    """A pair of a release, in the order of its files; it may have no image."""

    release = models.ForeignKey(Release, on_delete=models.PROTECT, related_name="pairs")
    pair = models.ForeignKey(ContrastPair, on_delete=models.PROTECT, related_name="+")
    position = models.PositiveIntegerField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["release", "pair"], name="release_pair_once"),
            models.UniqueConstraint(fields=["release", "position"], name="release_pair_in_order"),
        ]

    def __str__(self) -> str:
        return f"pair {self.position} of release {self.release_id}"


class ReleaseMember(models.Model):
    """One candidate of a release: in it when ``reason`` is ``verified``, else why not.

    ``position`` is the order of the files. It was computed once, in Python, because databases
    sort texts differently.
    """

    # The constraints below are its index; a second one would only be written.
    release = models.ForeignKey(
        Release, on_delete=models.PROTECT, related_name="members", db_index=False
    )
    candidate = models.ForeignKey(Candidate, on_delete=models.PROTECT, related_name="memberships")
    position = models.PositiveIntegerField()
    reason = models.CharField(max_length=16, choices=MemberReason)
    verified_by = models.CharField(max_length=12, blank=True)
    n_accept = models.PositiveSmallIntegerField(null=True, blank=True)
    n_reject = models.PositiveSmallIntegerField(null=True, blank=True)
    n_unsure = models.PositiveSmallIntegerField(null=True, blank=True)
    posterior = models.FloatField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["release", "candidate"], name="release_member_once"),
            models.UniqueConstraint(fields=["release", "position"], name="release_member_in_order"),
            models.CheckConstraint(
                condition=~Q(reason="verified") | ~Q(verified_by=""),
                name="release_member_verified_by_something",
            ),
        ]
        indexes = [
            models.Index(fields=["release", "reason", "position"], name="release_member_by_reason")
        ]

    def __str__(self) -> str:
        return f"member {self.position} of release {self.release_id}"


class ReleaseAnnotation(models.Model):
    """A counted judgement as it was when the release was frozen, under a pseudonym.

    Written as a join with the members, whose keys the database checks: it does not check those
    of a quarter of a million judgements one by one again, which took longer than all the rest.
    """

    release = models.ForeignKey(
        Release, on_delete=models.PROTECT, related_name="annotations", db_index=False,
        db_constraint=False,
    )  # fmt: skip
    candidate = models.ForeignKey(
        Candidate, on_delete=models.PROTECT, related_name="+", db_constraint=False
    )
    position = models.PositiveIntegerField()
    text_role = models.CharField(max_length=5, choices=TextRole)
    annotator = models.CharField(max_length=32)
    verdict = models.CharField(max_length=6)
    mode = models.CharField(max_length=8, blank=True)
    guideline_version = models.CharField(max_length=40, blank=True)
    active_ms = models.PositiveIntegerField(null=True, blank=True)
    at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["release", "position"], name="release_annotation_in_order"
            ),
        ]

    def __str__(self) -> str:
        return f"annotation {self.position} of release {self.release_id}"


class JobState(models.TextChoices):
    """The life of something that was asked for on the page and is made in the background."""

    WAITING = "waiting", _("Waiting")
    RUNNING = "running", _("Running")
    DONE = "done", _("Done")
    FAILED = "failed", _("Failed")


ExportState = JobState
UNDER_WAY = (JobState.WAITING, JobState.RUNNING)


class ReleaseFreeze(models.Model):
    """A release that was asked for on the page, until it is there or refused."""

    name = models.CharField(max_length=80)
    version = models.CharField(max_length=20)
    campaign = models.ForeignKey(Campaign, on_delete=models.PROTECT, related_name="+")
    options = models.JSONField(default=dict, help_text=_("Rule, numbers, notes, visibility."))
    state = models.CharField(max_length=7, choices=JobState, default=JobState.WAITING)
    error = models.TextField(blank=True)
    release = models.OneToOneField(
        Release, on_delete=models.PROTECT, null=True, blank=True, related_name="freeze"
    )
    requested_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    created_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-id"]
        constraints = [
            # Two clicks on one button are one wish.
            models.UniqueConstraint(
                fields=["name", "version"],
                condition=Q(state__in=["waiting", "running"]),
                name="release_freeze_once",
            ),
            models.CheckConstraint(
                condition=~Q(state="done") | Q(release__isnull=False),
                name="release_freeze_done_has_release",
            ),
            models.CheckConstraint(
                condition=~Q(state="failed") | ~Q(error=""), name="release_freeze_failed_has_reason"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


class ReleaseExport(models.Model):
    """A release as one file to download, made in the background."""

    release = models.ForeignKey(Release, on_delete=models.PROTECT, related_name="exports")
    options = models.JSONField(default=dict)
    digest = models.CharField(max_length=64, help_text=_("Of the release and the options."))
    state = models.CharField(max_length=7, choices=JobState, default=JobState.WAITING)
    done = models.PositiveIntegerField(default=0)
    total = models.PositiveIntegerField(default=0)
    file = models.CharField(max_length=200, blank=True, help_text=_("Storage name."))
    size = models.PositiveBigIntegerField(default=0)
    sha256 = models.CharField(max_length=64, blank=True)
    error = models.TextField(blank=True)
    requested_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    created_at = models.DateTimeField()
    heartbeat_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-id"]
        constraints = [
            # Two clicks on one button must not write the same archive twice.
            models.UniqueConstraint(
                fields=["release", "digest"],
                condition=~Q(state="failed"),
                name="release_export_once",
            ),
            models.CheckConstraint(
                condition=~Q(state="done") | ~Q(file=""), name="release_export_done_has_file"
            ),
            models.CheckConstraint(
                condition=~Q(state="failed") | ~Q(error=""), name="release_export_failed_has_reason"
            ),
        ]

    def __str__(self) -> str:
        return f"export {self.pk} of release {self.release_id}"
