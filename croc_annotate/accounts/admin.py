"""Raw data of accounts for admins. People are deactivated here, never deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import admin
from django.contrib.auth.admin import UserAdmin

from croc_annotate.accounts.models import (
    ApiToken,
    AuditEvent,
    OidcIdentity,
    PlatformIdentity,
    User,
)

if TYPE_CHECKING:
    from django.http import HttpRequest

    # Generic for the type checker only: at run time the class takes no parameter.
    PersonUserAdmin = UserAdmin[User]
    PlatformIdentityModelAdmin = admin.ModelAdmin[PlatformIdentity]
    OidcIdentityModelAdmin = admin.ModelAdmin[OidcIdentity]
    ApiTokenModelAdmin = admin.ModelAdmin[ApiToken]
    AuditEventModelAdmin = admin.ModelAdmin[AuditEvent]
else:
    PersonUserAdmin = UserAdmin
    PlatformIdentityModelAdmin = OidcIdentityModelAdmin = admin.ModelAdmin
    ApiTokenModelAdmin = AuditEventModelAdmin = admin.ModelAdmin


@admin.register(User)
class PersonAdmin(PersonUserAdmin):
    """Accounts and roles."""

    list_display = ["username", "display_name", "role", "is_active", "is_simulated", "last_login"]
    list_filter = ["role", "is_active", "is_simulated"]
    search_fields = ["username", "display_name", "email"]
    fieldsets = [
        (None, {"fields": ["username", "password"]}),
        ("Person", {"fields": ["display_name", "email", "language", "timezone", "theme"]}),
        ("Rights", {"fields": ["role", "is_active", "is_staff", "is_superuser"]}),
        ("Kind", {"fields": ["is_simulated", "pseudonymised_at", "last_login", "date_joined"]}),
    ]
    add_fieldsets = [(None, {"fields": ["username", "role", "password1", "password2"]})]
    readonly_fields = ["last_login", "date_joined", "pseudonymised_at"]

    def has_delete_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        """Nobody is deleted: their judgements would go with them."""
        return False


@admin.register(PlatformIdentity)
class PlatformIdentityAdmin(PlatformIdentityModelAdmin):
    """Which account belongs to which participant."""

    list_display = ["user", "platform", "created_at"]
    search_fields = ["external_id"]
    readonly_fields = ["user", "platform", "external_id", "created_at"]


@admin.register(OidcIdentity)
class OidcIdentityAdmin(OidcIdentityModelAdmin):
    """Which account belongs to whom at the organisation's sign-in service.

    One may be added by hand, for an account that must not link itself, and taken away.
    """

    list_display = ["user", "issuer", "created_at"]
    search_fields = ["user__username", "subject"]
    raw_id_fields = ["user"]

    def has_change_permission(self, request: HttpRequest, obj: OidcIdentity | None = None) -> bool:
        """An identity moved to another account would take that person's work along."""
        return False


@admin.register(ApiToken)
class ApiTokenAdmin(ApiTokenModelAdmin):
    """Keys of scripts: they can be revoked here, not read."""

    list_display = ["name", "user", "prefix", "created_at", "last_used_at", "revoked_at"]
    readonly_fields = ["user", "name", "prefix", "sha256", "scopes", "created_at", "last_used_at"]

    def has_add_permission(self, request: HttpRequest) -> bool:
        """A key is shown once, where it is made; here it could not be."""
        return False


@admin.register(AuditEvent)
class AuditEventAdmin(AuditEventModelAdmin):
    """The audit log, to be read only."""

    list_display = ["at", "actor", "action", "subject_type", "subject_id"]
    list_filter = ["action"]
    search_fields = ["subject_id"]

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Lines are added by the acts themselves."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: AuditEvent | None = None) -> bool:
        """A line is never changed."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: AuditEvent | None = None) -> bool:
        """A line is never deleted."""
        return False
