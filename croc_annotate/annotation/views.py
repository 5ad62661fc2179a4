"""Pages of an annotator: my campaigns, consent, guideline, judging, the end, me."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.http import Http404
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from croc_annotate.accounts.access import person as signed_in
from croc_annotate.accounts.selectors import key_context, sign_in_context
from croc_annotate.annotation.answer_shapes import Answer
from croc_annotate.annotation.api_input import read_answer
from croc_annotate.annotation.crowd import end_submission, open_submission, return_link
from croc_annotate.annotation.judging import store_answers
from croc_annotate.annotation.models import Campaign
from croc_annotate.annotation.people import (
    NotInvitedError,
    decline_consent,
    end_participation,
    find_participation,
    give_consent,
    read_guideline,
)
from croc_annotate.annotation.present import campaign_totals, pace_ms, progress_json
from croc_annotate.annotation.selectors import (
    campaigns_for,
    category_counts,
    own_judgements,
    training_examples,
    work_summary,
)
from croc_annotate.annotation.stages import Stage, stage_of
from croc_annotate.lib.markdown import render_markdown

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from croc_annotate.annotation.models import Participation

MOST_SHOWN = 12


def _participation(request: HttpRequest, slug: str) -> Participation:
    try:
        return find_participation(slug=slug, annotator=signed_in(request))
    except Campaign.DoesNotExist:
        raise Http404 from None
    except NotInvitedError:
        raise PermissionDenied from None


@login_required
@require_GET
def campaigns(request: HttpRequest) -> HttpResponse:
    """The campaigns that a person may take part in, with what they did."""
    now = timezone.now()
    cards = [
        {
            "campaign": campaign,
            "mine": person.answered if person else 0,
            "stage": stage_of(person, now) if person else None,
            "totals": campaign_totals(campaign.pk, fresh=True),
        }
        for campaign, person in campaigns_for(signed_in(request))
    ]
    return render(request, "annotation/campaigns.html", {"cards": cards})


@never_cache
@login_required
@require_GET
def judge(request: HttpRequest, slug: str) -> HttpResponse:
    """The stage that comes next: consent and guideline are pages of their own, the rest is the judging page."""
    person = _participation(request, slug)
    stage = stage_of(person, timezone.now())
    if stage is Stage.CONSENT:
        return redirect("annotation:consent", slug=slug)
    if stage is Stage.GUIDELINE:
        return redirect("annotation:guideline", slug=slug)
    campaign = person.campaign
    guideline = campaign.guideline
    return render(
        request,
        "annotation/judge.html",
        {
            "campaign": campaign,
            "stage": stage.value,
            "guideline_html": render_markdown(guideline.body) if guideline else "",
            "examples": training_examples(campaign),
            **key_context(person.annotator),
            **sign_in_context(),
        },
    )


@never_cache
@login_required
@require_http_methods(["GET", "POST"])
def consent(request: HttpRequest, slug: str) -> HttpResponse:
    """The consent text in its current version: agree, or decline."""
    person = _participation(request, slug)
    text = person.campaign.consent_text
    if text is None:
        return redirect("annotation:judge", slug=slug)
    changed = False
    if request.method == "POST":
        version = request.POST.get("version", "")
        if give_consent(participation=person, version=version, now=timezone.now()):
            return redirect("annotation:judge", slug=slug)
        changed = True
    context = {
        "campaign": person.campaign,
        "participation": person,
        "version": text.version,
        "body": render_markdown(text.body),
        "changed": changed,
    }
    return render(request, "annotation/consent.html", context)


@login_required
@require_POST
def decline(request: HttpRequest, slug: str) -> HttpResponse:
    """Not to take part is an answer too."""
    person = _participation(request, slug)
    decline_consent(participation=person, now=timezone.now())
    return redirect("annotation:end", slug=slug)


@never_cache
@login_required
@require_http_methods(["GET", "POST"])
def guideline(request: HttpRequest, slug: str) -> HttpResponse:
    """The guideline in its current version. Consent comes first."""
    person = _participation(request, slug)
    text = person.campaign.guideline
    if text is None or stage_of(person, timezone.now()) is Stage.CONSENT:
        return redirect("annotation:judge", slug=slug)
    if request.method == "POST":
        version = request.POST.get("version", "")
        if read_guideline(participation=person, version=version, now=timezone.now()):
            return redirect("annotation:judge", slug=slug)
    context = {
        "campaign": person.campaign,
        "guideline": text,
        "body": render_markdown(text.body),
        "read": person.guideline_version == text.version,
        "examples": training_examples(person.campaign),
    }
    return render(request, "annotation/guideline.html", context)


@never_cache
@login_required
@require_http_methods(["GET", "POST"])
def end(request: HttpRequest, slug: str) -> HttpResponse:
    """What happened, what is safe, what comes next. The completion code appears here and nowhere else."""
    person = _participation(request, slug)
    now = timezone.now()
    if request.method == "POST":  # "I am done": the person ends by themselves
        end_participation(participation=person, now=now)
        return redirect("annotation:end", slug=slug)
    submission = open_submission(participation=person)
    if submission is not None:
        submission = end_submission(submission=submission, participation=person, now=now)
    context: dict[str, Any] = {
        "campaign": person.campaign,
        "participation": person,
        "stage": stage_of(person, now).value,
        "progress": progress_json(person, fresh=True),
        "submission": submission,
    }
    if submission is not None and submission.outcome:
        context["code"], context["return_url"] = return_link(submission)
    return render(request, "annotation/end.html", context)


@never_cache
@login_required
@require_http_methods(["GET", "POST"])
def me(request: HttpRequest, slug: str) -> HttpResponse:
    """What a person did here: counts, pace, known answers, and their last judgements to correct."""
    person = _participation(request, slug)
    if request.method == "POST":
        _correct(request, slug)
        return redirect("annotation:me", slug=slug)
    summary = work_summary(person)
    pace = pace_ms(person)
    context = {
        "campaign": person.campaign,
        "participation": person,
        "stage": stage_of(person, timezone.now()).value,
        "progress": progress_json(person, fresh=True),
        "pace_text": None if pace is None else f"{pace / 1000:.1f}",
        "by_category": category_counts(person),
        "work": summary,
        "history": own_judgements(person, limit=MOST_SHOWN),
    }
    return render(request, "annotation/me.html", context)


def _correct(request: HttpRequest, slug: str) -> None:
    """A correction by the form of the page; its key makes a second click the same answer."""
    answer = read_answer({**request.POST.dict(), "answered_at": timezone.now().isoformat()})
    if not isinstance(answer, Answer):
        messages.error(request, answer)
        return
    results, _person = store_answers(
        slug=slug, annotator=signed_in(request), answers=[answer], now=timezone.now()
    )
    if results[0].status in {"stored", "duplicate"}:
        messages.success(request, _("Your answer is stored."))
    else:
        messages.error(request, results[0].message)
