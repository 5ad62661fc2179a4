"""Settings of the organisation's sign-in that cannot be meant as they stand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.conf import settings
from django.core import checks

from croc_annotate.accounts import oidc

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.apps import AppConfig

# Anybody in the world can have an account at these.
OPEN_TO_ALL = ("https://accounts.google.com", "https://gitlab.com")


@checks.register(checks.Tags.security)
def check_oidc(
    *, app_configs: Sequence[AppConfig] | None, **kwargs: object
) -> list[checks.CheckMessage]:
    """Half configured, unsafe, not installed, or open to everybody."""
    if oidc.is_half_configured():
        names = ", ".join(oidc.missing_settings())
        return [
            checks.Error(
                f"Sign-in by OpenID Connect is half configured: {names} not set.",
                hint="Set it, or unset all OIDC_ settings. Until then nobody signs in this way.",
                id="accounts.E001",
            )
        ]
    if oidc.missing_settings():
        return []
    return [*_unsafe_issuer(), *_not_installed(), *_open_to_all()]


def _unsafe_issuer() -> list[checks.CheckMessage]:
    if oidc.is_safe_issuer(settings.OIDC_ISSUER):
        return []
    return [checks.Error("OIDC_ISSUER must be an https address.", id="accounts.E002")]


def _not_installed() -> list[checks.CheckMessage]:
    if oidc.is_installed():
        return []
    return [
        checks.Error(
            "OIDC_ settings are given, but the library is not installed.",
            hint="pip install 'croc-annotate[oidc]'",
            id="accounts.E003",
        )
    ]


def _open_to_all() -> list[checks.CheckMessage]:
    closed = settings.OIDC_ALLOWED_DOMAINS or not settings.OIDC_NEW_ACCOUNTS
    if settings.OIDC_ISSUER.rstrip("/") not in OPEN_TO_ALL or closed:
        return []
    return [
        checks.Warning(
            "Anybody with an account at OIDC_ISSUER can become an annotator here.",
            hint="Set OIDC_ALLOWED_DOMAINS, or OIDC_NEW_ACCOUNTS=false.",
            id="accounts.W001",
        )
    ]
