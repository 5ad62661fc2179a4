"""Log in, log out, and a person's own settings."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import views as auth_views
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse, JsonResponse
from django.middleware.csrf import get_token
from django.shortcuts import redirect, render
from django.urls import reverse, reverse_lazy
from django.utils.decorators import method_decorator
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from croc_annotate.accounts import oidc
from croc_annotate.accounts.forms import ProfileForm, ShortcutsForm
from croc_annotate.accounts.oidc_views import CAME_BY, link_token
from croc_annotate.accounts.services import update_shortcuts
from croc_annotate.accounts.shortcuts import merged_shortcuts, normalise_key, shortcut_problems

if TYPE_CHECKING:
    from django.contrib.auth.forms import AuthenticationForm
    from django.http import HttpRequest
    from django.http.response import HttpResponseBase

    from croc_annotate.accounts.models import User


def _set_language(response: HttpResponse, language: str) -> HttpResponse:
    """Remember the language as Django's locale middleware looks for it."""
    if language:
        response.set_cookie(
            settings.LANGUAGE_COOKIE_NAME, language, max_age=31_536_000, samesite="Lax"
        )
    else:
        response.delete_cookie(settings.LANGUAGE_COOKIE_NAME, samesite="Lax")
    return response


@method_decorator(never_cache, name="dispatch")
class LoginPage(auth_views.LoginView):
    """Log in by a page, or in place: with ``Accept: application/json`` the answer is JSON.

    The second way lets the judging page renew a lost session without leaving the work.
    """

    template_name = "accounts/login.html"

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """Somebody signed in already goes on; the judging page may change who is signed in."""
        self.redirect_authenticated_user = not self._wants_json()
        return super().dispatch(request, *args, **kwargs)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """With the button of the organisation's sign-in, where there is one."""
        return super().get_context_data(
            **kwargs, oidc_label=oidc.button_label(), left_oidc="left" in self.request.GET
        )

    def _wants_json(self) -> bool:
        return self.request.headers.get("Accept", "").startswith("application/json")

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        """Start the session; tell in JSON whose it is and the CSRF token that the log-in rotated."""
        response = super().form_valid(form)
        user = form.get_user()
        if user.language:
            _set_language(response, user.language)
        if not self._wants_json():
            return response
        return JsonResponse({"user": user.pk, "csrf": get_token(self.request)})

    def form_invalid(self, form: AuthenticationForm) -> HttpResponse:
        """Show what is wrong, without telling whether the name exists."""
        if not self._wants_json():
            return super().form_invalid(form)
        errors = [text for texts in form.errors.values() for text in texts]
        return JsonResponse({"errors": errors}, status=400)


@require_GET
@never_cache
def csrf(request: HttpRequest) -> JsonResponse:
    """The current CSRF token and person: a page whose token was rotated elsewhere asks here."""
    return JsonResponse({"user": request.user.pk, "csrf": get_token(request)})


class LogoutPage(auth_views.LogoutView):
    """End the session (POST only: a link on a foreign page must not log anybody out)."""

    http_method_names = ["post", "options"]

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """End the session here; who came through an organisation is told that they are signed in there."""
        came_by_oidc = bool(request.session.get(CAME_BY)) and oidc.is_active()
        response = super().post(request, *args, **kwargs)
        return redirect(f"{response['Location']}?left") if came_by_oidc else response


@login_required
@never_cache
@require_http_methods(["GET", "POST"])
def profile(request: HttpRequest) -> HttpResponse:
    """Name, language, time zone and theme; the keys of the judging page stand below."""
    user = cast("User", request.user)
    form = ProfileForm(request.POST or None, instance=user)
    if request.method == "POST" and form.is_valid():
        form.save()
        messages.success(request, _("Your profile is saved."))
        return _set_language(redirect("accounts:profile"), user.language)
    keys = ShortcutsForm(initial=merged_shortcuts(user.shortcuts))
    return _profile_page(request, form, keys)


def _profile_page(
    request: HttpRequest, form: ProfileForm, keys: ShortcutsForm, status: int = 200
) -> HttpResponse:
    user = cast("User", request.user)
    context: dict[str, Any] = {"form": form, "keys": keys}
    if oidc.is_active():
        context |= {
            "oidc_linked": user.oidc_identities.exists(),
            "oidc_link": f"{reverse('accounts:oidc')}?{urlencode({'link': link_token(user)})}",
        }
    return render(request, "accounts/profile.html", context, status=status)


@login_required
@require_POST
def shortcuts(request: HttpRequest) -> HttpResponse:
    """Keep a person's keys, from the profile's form or, as JSON, from the judging page."""
    if request.content_type == "application/json":
        return _shortcuts_json(request)
    user = cast("User", request.user)
    keys = ShortcutsForm(request.POST)
    if keys.is_valid():
        update_shortcuts(user=user, shortcuts=keys.changes())
        messages.success(request, _("Your shortcuts are saved."))
        return redirect("accounts:profile")
    form = ProfileForm(instance=user)
    return _profile_page(request, form, keys, status=400)


def _shortcuts_json(request: HttpRequest) -> JsonResponse:
    try:
        given = json.loads(request.body)
    except ValueError:
        return JsonResponse({"errors": ["The body is no JSON."]}, status=400)
    if not isinstance(given, dict):
        return JsonResponse({"errors": ["Give an object of actions and keys."]}, status=400)
    wanted = {str(action): normalise_key(str(key)) for action, key in given.items()}
    problems = shortcut_problems(wanted)
    if problems:
        return JsonResponse({"errors": problems}, status=400)
    update_shortcuts(user=cast("User", request.user), shortcuts=wanted)
    return JsonResponse({"shortcuts": merged_shortcuts(wanted)})


@method_decorator(never_cache, name="dispatch")
class PasswordPage(auth_views.PasswordChangeView):
    """Change one's password; other sessions of the person end."""

    template_name = "accounts/password.html"
    success_url = reverse_lazy("accounts:profile")

    def form_valid(self, form: object) -> HttpResponse:
        """Say that it is done, on the page that follows."""
        response = super().form_valid(form)  # type: ignore[arg-type]
        messages.success(self.request, _("Your password is changed."))
        return response
