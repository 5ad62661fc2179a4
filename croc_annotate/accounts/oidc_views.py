"""Signing in through an organisation: going there, coming back, ending it there too."""

from __future__ import annotations

import logging
from functools import wraps
from typing import TYPE_CHECKING

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import login
from django.core import signing
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from croc_annotate.accounts import oidc
from croc_annotate.accounts.identities import account_of, link_account
from croc_annotate.accounts.models import User

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.http import HttpRequest

logger = logging.getLogger(__name__)

MODEL_BACKEND = "django.contrib.auth.backends.ModelBackend"
NEXT, LINKING, CAME_BY = "oidc_next", "oidc_linking", "oidc_session"
LINK_SALT, LINK_SECONDS = "oidc-link", 15 * 60
STATUS = {"state": 400, "provider": 502}


def link_token(user: User) -> str:
    """Proof that a link was made by a page of ours for this person: a foreign page cannot start linking."""
    return signing.dumps(user.pk, salt=LINK_SALT)


def _only_when_active(view: Callable[[HttpRequest], HttpResponse]) -> Callable[..., HttpResponse]:
    @wraps(view)
    def guarded(request: HttpRequest) -> HttpResponse:
        if not oidc.is_active():
            raise Http404
        try:
            return view(request)
        except oidc.SignInError as error:
            return _problem(request, error)

    return guarded


def _problem(request: HttpRequest, error: oidc.SignInError) -> HttpResponse:
    logger.warning("sign-in by OpenID Connect refused: %s", error)
    return render(
        request,
        "accounts/oidc_problem.html",
        {"message": oidc.message(error.code), "next": request.session.get(NEXT, "")},
        status=STATUS.get(error.code, 403),
    )


@never_cache
@require_GET
@_only_when_active
def begin(request: HttpRequest) -> HttpResponse:
    """Go to the provider. With a token from the own profile the account there is linked to this one."""
    request.session[NEXT] = _inside(request, request.GET.get("next", ""))
    request.session.pop(LINKING, None)
    if isinstance(request.user, User):
        if not _may_link(request, request.user):
            return redirect(request.session[NEXT] or settings.LOGIN_REDIRECT_URL)
        request.session[LINKING] = request.user.pk
    callback = request.build_absolute_uri(reverse("accounts:oidc-callback"))
    return oidc.begin(request, callback=callback)


def _may_link(request: HttpRequest, user: User) -> bool:
    try:
        pk = signing.loads(request.GET.get("link", ""), salt=LINK_SALT, max_age=LINK_SECONDS)
    except signing.BadSignature:
        return False
    return bool(pk == user.pk)


def _inside(request: HttpRequest, address: str) -> str:
    """The address if it is one of this site's, else nothing."""
    inside = url_has_allowed_host_and_scheme(
        address, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )
    return address if inside else ""


@never_cache
@require_GET
@_only_when_active
def callback(request: HttpRequest) -> HttpResponse:
    """Come back from the provider: sign in, or link the account of who is signed in."""
    linking = request.session.pop(LINKING, None)
    claims = oidc.finish(request)
    following = request.session.pop(NEXT, "")
    if linking is not None:
        if not isinstance(request.user, User) or request.user.pk != linking:
            raise oidc.SignInError("state")
        link_account(user=request.user, claims=claims)
        messages.success(request, _("From now on you can sign in through your organisation."))
        return redirect("accounts:profile")
    user = account_of(claims=claims, may_create=settings.OIDC_NEW_ACCOUNTS)
    login(request, user, backend=MODEL_BACKEND)
    request.session[CAME_BY] = True
    return redirect(following or settings.LOGIN_REDIRECT_URL)


@never_cache
@require_GET
@_only_when_active
def end_session(request: HttpRequest) -> HttpResponse:
    """End the session at the provider too: on a shared machine the next person must not be let in by it."""
    back = request.build_absolute_uri(reverse("accounts:login"))
    return redirect(oidc.end_session_url(back=back) or "accounts:login")
