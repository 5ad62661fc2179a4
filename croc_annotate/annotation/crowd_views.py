"""How people come in from outside: a platform's link, its messages, an invitation."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, ClassVar

from django.conf import settings
from django.contrib.auth import login
from django.contrib.auth.forms import BaseUserCreationForm
from django.db import transaction
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from croc_annotate.accounts.models import User
from croc_annotate.annotation.crowd import EntryError, enter_study, mirror_state
from croc_annotate.annotation.invitations import (
    InvitationError,
    accept_invitation,
    find_invitation,
)
from croc_annotate.annotation.prolific import message_is_genuine

if TYPE_CHECKING:
    from django.http import HttpRequest

MODEL_BACKEND = "django.contrib.auth.backends.ModelBackend"


@never_cache
@require_GET
def enter(request: HttpRequest) -> HttpResponse:
    """A crowd worker's link. It leads on at once, so that the ids do not stay in the address."""
    try:
        submission = enter_study(
            participant_id=request.GET.get("PROLIFIC_PID", ""),
            study_id=request.GET.get("STUDY_ID", ""),
            session_id=request.GET.get("SESSION_ID", ""),
            now=timezone.now(),
        )
    except EntryError as error:
        context = {"title": _("This link does not work"), "message": str(error)}
        return render(request, "annotation/stop.html", context, status=403)
    if request.user != submission.annotator:
        login(request, submission.annotator, backend=MODEL_BACKEND)
    if submission.outcome:
        return redirect("annotation:end", slug=submission.study.campaign.slug)
    return redirect("annotation:judge", slug=submission.study.campaign.slug)


@csrf_exempt
@require_POST
def webhook(request: HttpRequest) -> HttpResponse:
    """A signed message of the platform about a submission; sent twice it changes nothing more."""
    now = timezone.now()
    genuine = message_is_genuine(
        secret=settings.PROLIFIC_WEBHOOK_SECRET,
        timestamp=request.headers.get("X-Prolific-Request-Timestamp", ""),
        given=request.headers.get("X-Prolific-Request-Signature", ""),
        body=request.body,
        now=now.timestamp(),
    )
    if not genuine:
        return HttpResponse(status=403)
    try:
        message = json.loads(request.body)
    except ValueError:
        return HttpResponse(status=400)
    if isinstance(message, dict) and message.get("event_type") == "submission.status.change":
        mirror_state(
            session_id=str(message.get("resource_id", "")),
            state=str(message.get("status", "")),
            now=now,
        )
    return HttpResponse(status=204)


class JoinForm(BaseUserCreationForm[User]):
    """A colleague's new account."""

    class Meta:
        model = User
        fields = ("username", "display_name")
        labels: ClassVar = {"display_name": gettext_lazy("Name")}


@never_cache
@require_http_methods(["GET", "POST"])
def join(request: HttpRequest, token: str) -> HttpResponse:
    """An invitation: whoever is signed in joins with one button, others make an account or sign in."""
    try:
        invitation = find_invitation(token=token, now=timezone.now())
        user = request.user
        form = None if user.is_authenticated else JoinForm(request.POST or None)
        if request.method == "POST":
            if isinstance(user, User):
                accept_invitation(invitation=invitation, user=user)
                return redirect("annotation:judge", slug=invitation.campaign.slug)
            if form is not None and form.is_valid():
                with transaction.atomic():  # no account without a place
                    new = form.save()
                    accept_invitation(invitation=invitation, user=new)
                login(request, new, backend=MODEL_BACKEND)
                return redirect("annotation:judge", slug=invitation.campaign.slug)
    except InvitationError as error:
        context = {"title": _("This invitation does not work"), "message": str(error)}
        return render(request, "annotation/stop.html", context, status=403)
    return render(
        request,
        "annotation/join.html",
        {"invitation": invitation, "campaign": invitation.campaign, "form": form},
    )
