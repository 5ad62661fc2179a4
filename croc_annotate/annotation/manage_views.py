"""Pages on which admins make and run campaigns."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.db.models import Count, Q
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from croc_annotate.accounts.access import admins_only
from croc_annotate.accounts.access import person as signed_in
from croc_annotate.annotation.forms import (
    CampaignForm,
    ConsentTextForm,
    GuidelineForm,
    InvitationForm,
    StudyForm,
)
from croc_annotate.annotation.invitations import create_invitation
from croc_annotate.annotation.models import (
    Campaign,
    CampaignState,
    ConsentText,
    Guideline,
    Participation,
    Purpose,
)
from croc_annotate.annotation.people import reopen_participation
from croc_annotate.annotation.selectors import people_of, study_rows
from croc_annotate.annotation.services import (
    create_campaign,
    edit_campaign,
    pause_person,
    resume_person,
    set_campaign_state,
)

if TYPE_CHECKING:
    from django import forms
    from django.http import HttpRequest, HttpResponse


@admins_only
@require_GET
def index(request: HttpRequest) -> HttpResponse:
    """All campaigns with their progress."""
    work = Q(items__purpose=Purpose.WORK)
    rows = Campaign.objects.annotate(
        total=Count("items", filter=work),
        complete=Count("items", filter=work & Q(items__closed_at__isnull=False)),
    )
    return render(request, "annotation/manage_list.html", {"campaigns": rows})


@admins_only
@require_http_methods(["GET", "POST"])
def new(request: HttpRequest) -> HttpResponse:
    """Make a campaign, as a draft."""
    form = CampaignForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        campaign = create_campaign(actor=signed_in(request), **form.cleaned_data)
        messages.success(request, _("The campaign is a draft. Open it to hand out items."))
        return redirect("annotation:manage-detail", slug=campaign.slug)
    context = {"form": form, "groups": field_groups(form), "campaign": None}
    return render(request, "annotation/manage_form.html", context)


@admins_only
@require_http_methods(["GET", "POST"])
def edit(request: HttpRequest, slug: str) -> HttpResponse:
    """Change a campaign's settings."""
    campaign = get_object_or_404(Campaign, slug=slug)
    form = CampaignForm(request.POST or None, instance=campaign)
    if request.method == "POST" and form.is_valid():
        campaign = Campaign.objects.get(pk=campaign.pk)  # without what the form has put into it
        edit_campaign(campaign=campaign, actor=signed_in(request), **form.cleaned_data)
        messages.success(request, _("Saved."))
        return redirect("annotation:manage-detail", slug=campaign.slug)
    context = {
        "form": form,
        "groups": field_groups(form),
        "campaign": Campaign.objects.get(pk=campaign.pk),
    }
    return render(request, "annotation/manage_form.html", context)


FIELD_GROUPS = [
    (
        gettext_noop("What is judged"),
        ["title", "slug", "categories", "generators", "banks", "cross_rate"],
    ),
    (
        gettext_noop("How it is shown"),
        ["mode", "grid_size", "mark_difference", "order", "min_distance", "seed"],
    ),
    (
        gettext_noop("How many judgements"),
        ["redundancy", "min_judgements", "max_judgements", "reference_rate"],
    ),
    (gettext_noop("How votes become verdicts"), ["rule", "posterior_threshold"]),
    (
        gettext_noop("Before the work"),
        ["consent_text", "guideline", "practice_items", "quiz_items", "quiz_pass_mark"],
    ),
    (
        gettext_noop("Known answers"),
        ["gold_rate", "gold_spacing", "gold_threshold", "gold_minimum"],
    ),
    (gettext_noop("Who and how long"), ["invitation_only", "session_cap", "lease_seconds"]),
]


def field_groups(form: forms.BaseForm) -> list[tuple[str, list[forms.BoundField]]]:
    """The form's fields under headings."""
    return [(_(title), [form[name] for name in names]) for title, names in FIELD_GROUPS]


@admins_only
@require_GET
def detail(request: HttpRequest, slug: str) -> HttpResponse:
    """One campaign: progress, people, invitations, studies."""
    campaign = get_object_or_404(Campaign, slug=slug)
    work = campaign.items.filter(purpose=Purpose.WORK)
    context = {
        "campaign": campaign,
        "total": work.count(),
        "complete": work.complete().count(),
        "known": dict(
            campaign.items.exclude(purpose=Purpose.WORK)
            .order_by()
            .values_list("purpose")
            .annotate(Count("pk"))
        ),
        "judgements": campaign.judgements.current().filter(purpose=Purpose.WORK).count(),
        "people": people_of(campaign, now=timezone.now()),
        "studies": study_rows(campaign),
        "invitations": campaign.invitations.select_related("created_by").order_by("-id"),
        "invitation_form": InvitationForm(),
        "study_form": StudyForm(),
        "new_link": request.session.pop("new_invitation_link", ""),
        "entry_link": request.build_absolute_uri(reverse("annotation:enter-study")),
    }
    return render(request, "annotation/manage_detail.html", context)


@admins_only
@require_POST
def state(request: HttpRequest, slug: str) -> HttpResponse:
    """Open, pause or close."""
    campaign = get_object_or_404(Campaign, slug=slug)
    wanted = request.POST.get("state", "")
    if wanted not in CampaignState.values:
        messages.error(request, _("There is no such state."))
    else:
        set_campaign_state(campaign=campaign, state=wanted, actor=signed_in(request))
        messages.success(request, _("The campaign is now: %s.") % campaign.get_state_display())
    return redirect("annotation:manage-detail", slug=slug)


@admins_only
@require_POST
def invite(request: HttpRequest, slug: str) -> HttpResponse:
    """Make an invitation link; it is shown once."""
    campaign = get_object_or_404(Campaign, slug=slug)
    form = InvitationForm(request.POST)
    if form.is_valid():
        _row, token = create_invitation(
            campaign=campaign,
            actor=signed_in(request),
            label=form.cleaned_data["label"],
            max_uses=form.cleaned_data["max_uses"],
            expires_at=timezone.now() + timedelta(days=form.cleaned_data["days"]),
        )
        link = request.build_absolute_uri(reverse("annotation:join", args=[token]))
        request.session["new_invitation_link"] = link
    else:
        messages.error(request, _("The invitation could not be made: check the numbers."))
    return redirect("annotation:manage-detail", slug=slug)


@admins_only
@require_POST
def study(request: HttpRequest, slug: str) -> HttpResponse:
    """Bind a study of the crowd platform to the campaign, or change one."""
    campaign = get_object_or_404(Campaign, slug=slug)
    known = campaign.studies.filter(study_id=request.POST.get("study_id", "")).first()
    form = StudyForm(request.POST, instance=known)
    form.instance.campaign = campaign
    if form.is_valid():
        form.save()
        messages.success(request, _("The study is bound to this campaign."))
    else:
        problems = "; ".join(f"{name}: {' '.join(map(str, e))}" for name, e in form.errors.items())
        messages.error(request, problems)
    return redirect("annotation:manage-detail", slug=slug)


@admins_only
@require_POST
def person(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Pause a person, or let them go on; with or without their answers."""
    row = get_object_or_404(
        Participation.objects.select_related("campaign", "annotator"), pk=pk, campaign__slug=slug
    )
    actor, act, now = signed_in(request), request.POST.get("act", ""), timezone.now()
    reason = request.POST.get("reason", "")[:200]
    aside = "set_aside" in request.POST
    if act == "pause":
        total = pause_person(
            participation=row, reason=reason, actor=actor, set_aside=aside, now=now
        )
        messages.success(request, _("Paused. Judgements set aside: %d.") % total)
    elif act == "resume":
        back = "reinstate" in request.POST
        total = resume_person(
            participation=row, actor=actor, reinstate=back, reason=reason, now=now
        )
        messages.success(request, _("They may go on. Judgements that count again: %d.") % total)
    elif act == "reopen":
        reopen_participation(participation=row, actor=actor)
        messages.success(request, _("They may come back."))
    else:
        messages.error(request, _("There is no such act."))
    return redirect("annotation:manage-detail", slug=slug)


@admins_only
@require_http_methods(["GET", "POST"])
def texts(request: HttpRequest) -> HttpResponse:
    """Guidelines and consent texts: a new text is a new version, old ones stay as they are."""
    which = request.POST.get("which", "")
    guideline = GuidelineForm(request.POST if which == "guideline" else None)
    consent = ConsentTextForm(request.POST if which == "consent" else None)
    form: GuidelineForm | ConsentTextForm | None = None
    if which in {"guideline", "consent"}:
        form = guideline if which == "guideline" else consent
    if form is not None and form.is_valid():
        try:
            form.save()
        except ValidationError as error:
            form.add_error(None, error)
        else:
            messages.success(request, _("The new version can be chosen in a campaign now."))
            return redirect("annotation:manage-texts")
    context = {
        "guideline_form": guideline,
        "consent_form": consent,
        "guidelines": Guideline.objects.order_by("-id"),
        "consent_texts": ConsentText.objects.order_by("-id"),
    }
    return render(request, "annotation/manage_texts.html", context)
