"""Signing in through an organisation (OpenID Connect, authorization code with PKCE), as an option.

The protocol itself (discovery, state, nonce, PKCE, the ID token's signature and claims) is
Authlib's; here stand what we ask of a provider and what we tell a person when it fails.
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from django.conf import settings
from django.utils.translation import gettext as _

from croc_annotate.accounts.models import Role

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

TIMEOUT_SECONDS = 10
LEEWAY_SECONDS = 60
# Only keys that the provider alone holds: with "none" or a shared secret a token proves less.
SIGNATURES = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA")
NEEDED = ("OIDC_ISSUER", "OIDC_CLIENT_ID", "OIDC_CLIENT_SECRET")


class SignInError(Exception):
    """A sign-in that did not come about; ``code`` is one of `message`'s keys."""

    def __init__(self, code: str, detail: str = "") -> None:
        super().__init__(f"{code}: {detail}" if detail else code)
        self.code = code


@dataclass(frozen=True)
class Claims:
    """What a provider says about a person, as far as we look at it."""

    issuer: str
    subject: str
    name: str
    role: str | None
    """The role by the groups; None where the settings map no groups."""


def is_active() -> bool:
    """True if all settings that a sign-in needs are there and safe, and the library too."""
    return not missing_settings() and is_safe_issuer(settings.OIDC_ISSUER) and is_installed()


def is_installed() -> bool:
    """True if the ``oidc`` extra is installed."""
    return all(find_spec(name) for name in ("authlib", "requests"))


def missing_settings() -> list[str]:
    """Names of needed settings that are empty."""
    return [name for name in NEEDED if not getattr(settings, name)]


def is_half_configured() -> bool:
    """True if somebody began to set it up: some of the needed settings are given, not all."""
    return 0 < len(missing_settings()) < len(NEEDED)


def button_label() -> str:
    """Words of the button; empty where nobody can sign in this way."""
    if not is_active():
        return ""
    return settings.OIDC_LABEL or _("Log in with your organisation")


def is_safe_issuer(issuer: str) -> bool:
    """True for https; plain http is for a provider on this machine only."""
    parts = urlsplit(issuer)
    if parts.scheme == "https":
        return bool(parts.hostname)
    return parts.scheme == "http" and _is_loopback(parts.hostname or "")


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


# --- the two steps ---------------------------------------------------------------------------


def begin(request: HttpRequest, *, callback: str) -> HttpResponse:
    """Send the browser to the provider; state, nonce and PKCE verifier wait in the session."""
    try:
        reply: HttpResponse = _client().authorize_redirect(request, callback)
    except _failures() as error:
        raise SignInError("provider", type(error).__name__) from error
    return reply


def finish(request: HttpRequest) -> Claims:
    """What the provider says about who came back. Raises `SignInError`.

    The state is taken out of the session first: an answer can be used once, by one browser.
    """
    from authlib.integrations.base_client import MismatchingStateError

    if "error" in request.GET:
        raise SignInError("denied", "".join(re.findall(r"[a-z_]", request.GET["error"][:40])))
    try:
        client = _client()
        issuer = client.server_metadata["issuer"]
        token = client.authorize_access_token(
            request,
            leeway=LEEWAY_SECONDS,
            claims_options={
                "iss": {"essential": True, "value": issuer},
                "aud": {"essential": True, "values": [client.client_id]},
                "sub": {"essential": True},
            },
        )
        return _claims(client, token, issuer)
    except MismatchingStateError as error:
        raise SignInError("state") from error
    except _failures() as error:
        # Not the provider's own words: they may name the person, and this goes to the log.
        raise SignInError(
            "provider", f"{type(error).__name__} {getattr(error, 'error', '')}"
        ) from error


def end_session_url(*, back: str) -> str:
    """Where a person can end their session at the provider too; empty if it has no such page."""
    try:
        made = _client().create_logout_url(
            post_logout_redirect_uri=back, client_id=settings.OIDC_CLIENT_ID
        )
    except SignInError:
        return ""
    except _failures():
        return ""
    return str(made["url"])


def examine_provider() -> str:
    """The issuer as the provider names itself. Raises `SignInError` (for ``doctor``)."""
    try:
        return str(_client().server_metadata["issuer"])
    except _failures() as error:
        raise SignInError("provider", type(error).__name__) from error


def _failures() -> tuple[type[Exception], ...]:
    import requests
    from authlib.common.errors import AuthlibBaseError
    from joserfc.errors import JoseError

    # RuntimeError, KeyError, TypeError: discovery, keys or a token of a shape that is none.
    return (
        AuthlibBaseError,
        JoseError,
        requests.RequestException,
        RuntimeError,
        ValueError,
        KeyError,
        TypeError,
    )


def _client() -> Any:
    """The client of the provider, after its discovery document was read and found to be its own."""
    issuer = settings.OIDC_ISSUER
    client = _made_client(
        issuer,
        settings.OIDC_CLIENT_ID,
        settings.OIDC_CLIENT_SECRET,
        " ".join(_scopes()),
    )
    metadata = client.load_server_metadata()
    if str(metadata.get("issuer", "")).rstrip("/") != issuer.rstrip("/"):
        _made_client.cache_clear()
        raise SignInError("provider", "the discovery document names another issuer")
    offered = metadata.get("id_token_signing_alg_values_supported") or ["RS256"]
    metadata["id_token_signing_alg_values_supported"] = [x for x in offered if x in SIGNATURES]
    methods = metadata.get("token_endpoint_auth_methods_supported") or ["client_secret_basic"]
    if "client_secret_basic" not in methods and "client_secret_post" in methods:
        client.client_kwargs |= {"token_endpoint_auth_method": "client_secret_post"}
    return client


@lru_cache(maxsize=4)
def _made_client(issuer: str, client_id: str, client_secret: str, scope: str) -> Any:
    from authlib.integrations.django_client import DjangoIntegration, DjangoOAuth2App

    return DjangoOAuth2App(
        DjangoIntegration("oidc"),
        "oidc",
        client_id=client_id,
        client_secret=client_secret,
        server_metadata_url=issuer.rstrip("/") + "/.well-known/openid-configuration",
        client_kwargs={
            "scope": scope,
            "code_challenge_method": "S256",
            "default_timeout": TIMEOUT_SECONDS,
        },
    )


def _scopes() -> list[str]:
    """No more than is looked at: the e-mail address only where its domain decides."""
    wanted = ["openid", "profile", *settings.OIDC_EXTRA_SCOPES]
    return [*wanted, "email"] if settings.OIDC_ALLOWED_DOMAINS else wanted


# --- what is said about a person -------------------------------------------------------------


def _claims(client: Any, token: dict[str, Any], issuer: str) -> Claims:
    told = dict(token.get("userinfo") or {})
    subject = told.get("sub")
    if not subject or not isinstance(subject, str) or len(subject) > 255:
        raise SignInError("provider", "no usable subject")
    if _lacks_claims(told) and client.server_metadata.get("userinfo_endpoint"):
        more = dict(client.userinfo(token=token))
        if more.get("sub") != subject:  # OpenID Connect Core 5.3.2: else it is not to be used
            raise SignInError("provider", "userinfo is about somebody else")
        told = {**more, **told}
    _check_domain(told)
    return Claims(issuer, subject, _name(told), _role(told))


def _lacks_claims(told: dict[str, Any]) -> bool:
    wanted = ["name"]
    if settings.OIDC_ALLOWED_DOMAINS:
        wanted += ["email", "email_verified"]
    if maps_roles():
        wanted.append(settings.OIDC_ROLE_CLAIM)
    return any(name not in told for name in wanted)


def _check_domain(told: dict[str, Any]) -> None:
    allowed = {domain.strip().lower() for domain in settings.OIDC_ALLOWED_DOMAINS}
    if not allowed:
        return
    domain = str(told.get("email") or "").rpartition("@")[2].lower()
    # An address that nobody verified could be anybody's.
    if told.get("email_verified") is not True or domain not in allowed:
        raise SignInError("domain")


def _name(told: dict[str, Any]) -> str:
    name = told.get("name")
    return name.strip()[:120] if isinstance(name, str) else ""


def maps_roles() -> bool:
    """True if the settings say which groups have which role."""
    return bool(settings.OIDC_ADMINS or settings.OIDC_REVIEWERS or settings.OIDC_ANNOTATORS)


def _role(told: dict[str, Any]) -> str | None:
    """The highest role of the person's groups, else the role of the rest. Raises if that is none."""
    if not maps_roles():
        return None
    given = told.get(settings.OIDC_ROLE_CLAIM)
    groups = set(map(str, given)) if isinstance(given, list) else {str(given)} if given else set()
    for role, names in (
        (Role.ADMIN, settings.OIDC_ADMINS),
        (Role.REVIEWER, settings.OIDC_REVIEWERS),
        (Role.ANNOTATOR, settings.OIDC_ANNOTATORS),
    ):
        if groups & set(names):
            return role.value
    if settings.OIDC_OTHERS == "refuse":
        raise SignInError("group")
    return Role.ANNOTATOR.value


def message(code: str) -> str:
    """What happened, what to do: for the person."""
    return {
        "state": _(
            "This sign-in was used already, took too long, or was begun in another browser. "
            "Start again."
        ),
        "denied": _(
            "Your organisation's sign-in service did not let you through, or you cancelled."
        ),
        "provider": _(
            "Your organisation's sign-in service could not be reached, or its answer could not "
            "be trusted. Try again; if it stays so, tell the people who run this site."
        ),
        "domain": _("This site is open to verified addresses of certain organisations only."),
        "group": _("Your account at your organisation is in none of the groups that may come in."),
        "no_account": _(
            "There is no account for you here yet. Ask the people who run this site for one."
        ),
        "inactive": _("Your account here is closed. Ask the people who run this site."),
        "taken": _("That sign-in belongs to another account here already. Nothing was changed."),
    }[code]
