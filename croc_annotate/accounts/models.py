"""People: annotators, reviewers and admins, their platform identities, the audit log."""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib.auth.models import AbstractUser
from django.contrib.auth.models import UserManager as DjangoUserManager
from django.db import models
from django.utils.translation import gettext_lazy as _


class Role(models.TextChoices):
    """What a person may do. Each role may do all that the one before it may."""

    ANNOTATOR = "annotator", _("Annotator")
    REVIEWER = "reviewer", _("Reviewer")
    ADMIN = "admin", _("Admin")


class UserQuerySet(models.QuerySet["User"]):
    """People in domain words."""

    def active(self) -> UserQuerySet:
        """People who may sign in."""
        return self.filter(is_active=True)

    def real(self) -> UserQuerySet:
        """People, without the simulated annotators of a demo."""
        return self.filter(is_simulated=False)


class UserManager(DjangoUserManager["User"].from_queryset(UserQuerySet)):  # type: ignore[misc]
    """Makes superusers admins, so that the first account can use the site at once."""

    def create_superuser(
        self,
        username: str,
        email: str | None = None,
        password: str | None = None,
        **extra_fields: Any,
    ) -> User:
        """Create an admin who may also use Django's own admin site."""
        extra_fields.setdefault("role", Role.ADMIN)
        user: User = super().create_superuser(username, email, password, **extra_fields)
        return user


class User(AbstractUser):
    """One person. Never deleted while work of theirs exists (PROTECT): deactivated, pseudonymised."""

    role = models.CharField(max_length=12, choices=Role, default=Role.ANNOTATOR)
    display_name = models.CharField(max_length=120, blank=True)
    language = models.CharField(max_length=10, blank=True)
    timezone = models.CharField(max_length=64, blank=True)
    theme = models.CharField(
        max_length=6, choices=[("", "system"), ("light", "light"), ("dark", "dark")], blank=True
    )
    shortcuts = models.JSONField(default=dict, blank=True)
    is_simulated = models.BooleanField(default=False)
    pseudonymised_at = models.DateTimeField(null=True, blank=True)

    objects: ClassVar[UserManager] = UserManager()

    class Meta:
        constraints = [
            # A typing error in a role would silently lock a person out of every page.
            models.CheckConstraint(
                condition=models.Q(role__in=Role.values), name="user_role_is_known"
            ),
        ]

    def __str__(self) -> str:
        return self.display_name or self.username

    @property
    def may_review(self) -> bool:
        """Reviewers and admins."""
        return self.role in {Role.REVIEWER, Role.ADMIN}

    @property
    def may_administer(self) -> bool:
        """Admins only."""
        return self.role == Role.ADMIN


class PlatformIdentity(models.Model):
    """Who a person is on a crowd platform. Never leaves in exports, logs or file names."""

    user = models.ForeignKey(User, on_delete=models.PROTECT, related_name="identities")
    platform = models.CharField(max_length=20, default="prolific")
    external_id = models.CharField(max_length=64)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            # Two first visits at once must not make two people of one participant.
            models.UniqueConstraint(
                fields=["platform", "external_id"], name="platform_identity_once"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.platform} identity {self.pk}"


class OidcIdentity(models.Model):
    """Who a person is at the organisation's sign-in service. Never leaves in exports or logs."""

    user = models.ForeignKey(User, on_delete=models.PROTECT, related_name="oidc_identities")
    issuer = models.CharField(max_length=255)
    subject = models.CharField(max_length=255)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name = "OpenID Connect identity"
        verbose_name_plural = "OpenID Connect identities"
        constraints = [
            # A subject is unique at its issuer only; two first visits at once must not make two
            # people of one.
            models.UniqueConstraint(fields=["issuer", "subject"], name="oidc_identity_once"),
        ]

    def __str__(self) -> str:
        return f"OpenID Connect identity {self.pk}"


class ApiToken(models.Model):
    """A key for scripts: only its hash is kept."""

    user = models.ForeignKey(User, on_delete=models.PROTECT, related_name="api_tokens")
    name = models.CharField(max_length=80)
    prefix = models.CharField(max_length=12)
    sha256 = models.CharField(max_length=64)
    scopes = models.JSONField(default=list)
    created_at = models.DateTimeField(auto_now_add=True)
    last_used_at = models.DateTimeField(null=True, blank=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["sha256"], name="api_token_hash_once"),
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"


class AuditEvent(models.Model):
    """One act that somebody may be asked about later. Rows are only ever added (a trigger sees to it)."""

    actor = models.ForeignKey(
        User, on_delete=models.PROTECT, null=True, blank=True, related_name="audit_events"
    )
    action = models.CharField(max_length=60)
    subject_type = models.CharField(max_length=40)
    subject_id = models.CharField(max_length=64)
    details = models.JSONField(default=dict)
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-id"]
        indexes = [
            models.Index(fields=["subject_type", "subject_id"], name="audit_by_subject"),
            models.Index(fields=["action", "-at"], name="audit_by_action"),
        ]

    def __str__(self) -> str:
        return f"{self.action} {self.subject_type} {self.subject_id}"
