"""The review page and its acts; blind until a reviewer lifts the blind, which is recorded."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpResponseRedirect
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from croc_annotate.accounts.access import admins_only, person, reviewers_only
from croc_annotate.agreement import reviewing
from croc_annotate.agreement.forms import (
    BulkForm,
    DecisionForm,
    DefectForm,
    PolicyForm,
    QueueForm,
    SendBackForm,
)
from croc_annotate.agreement.models import Adjudication
from croc_annotate.agreement.pages import base_context, chosen_campaign, required_campaign
from croc_annotate.agreement.review_queue import in_order, revealed, review_queue, sight_of
from croc_annotate.agreement.reviewing import ReviewRefusedError
from croc_annotate.agreement.snapshots import current_statistics
from croc_annotate.agreement.waiting import waits_for_statistics
from croc_annotate.annotation.models import Item, Purpose
from croc_annotate.candidates.models import Candidate
from croc_annotate.lib.hashing import canonical_json, sha256_text
from croc_annotate.lib.textdiff import differing_spans

if TYPE_CHECKING:
    from collections.abc import Callable

    from django import forms
    from django.http import HttpRequest, HttpResponse

    from croc_annotate.accounts.models import User
    from croc_annotate.annotation.models import Campaign

Context = dict[str, Any]

BULK_MOST = 2_000
_SAMPLE = 12
PATIENCE = 60.0
_FILTERS = ("kind", "category", "generator", "side", "text_role", "pair")


@require_GET
@reviewers_only
@waits_for_statistics
def review(request: HttpRequest) -> HttpResponse:
    """The next item of the queue (or the one named by ``item``), with all acts on it."""
    campaign = chosen_campaign(request)
    context = base_context(request, campaign, "review")
    if campaign:
        # Decisions show at once in the items' own states: no need to compute all after each.
        context["snapshot"] = current_statistics(
            campaign=campaign, kind="overview", patience=PATIENCE
        )
        context |= _queue_context(request, campaign)
    return render(request, "agreement/review.html", context)


def _queue_context(request: HttpRequest, campaign: Campaign) -> Context:
    reviewer, form = person(request), QueueForm(request.GET)
    queue = review_queue(campaign, reviewer, form.cleaned_data if form.is_valid() else {})
    put_off = Item.objects.filter(key=request.GET.get("after", "")).first()
    pks = in_order(queue, after=put_off.pk if put_off else None)
    policy = reviewing.review_policy(campaign)
    context: Context = {
        "form": form,
        "query": _kept(request),
        "waiting": len(pks),
        "policy": policy,
        "policy_form": PolicyForm(initial=vars(policy)),
    }
    named = request.GET.get("item", "")
    if named:
        return context | _sight_context(_item(campaign, key=named), reviewer, pks)
    if pks:
        return context | _sight_context(_item(campaign, pk=pks[0]), reviewer, pks)
    return context


def _sight_context(item: Item, reviewer: User, pks: list[int]) -> Context:
    sight = sight_of(item, reviewer)
    spans, other_spans = differing_spans(sight.text, sight.other_text)
    coming = [pk for pk in pks[:3] if pk != item.pk][:2]
    return {
        "sight": sight,
        "text_parts": marked(sight.text, spans),
        "other_parts": marked(sight.other_text, other_spans),
        "decision_form": DecisionForm(initial={"reason": "clear"}),
        "send_back_form": SendBackForm(),
        "defect_form": DefectForm(),
        "coming": Candidate.objects.filter(items__in=coming),
    }


def marked(text: str, spans: list[tuple[int, int]]) -> list[tuple[str, bool]]:
    """Cut a text into parts, those that differ from the other text marked."""
    parts, at = [], 0
    for start, end in spans:
        parts += [(text[at:start], False), (text[start:end], True)]
        at = end
    parts.append((text[at:], False))
    return [part for part in parts if part[0]]


@require_POST
@reviewers_only
def decide(request: HttpRequest, key: str) -> HttpResponse:
    """Accept or reject an item."""
    reviewer = person(request)

    def act(item: Item, values: Context) -> str:
        found = reviewing.adjudicate(
            item=item,
            reviewer=reviewer,
            verdict=values["verdict"],
            reason=values["reason"],
            note=values["note"],
            blind=not revealed(item, reviewer),
            second_wanted=values["second_wanted"] or None,
        )
        return _("Saved; a second reviewer decides next.") if _waits(found) else _("Saved.")

    return _done(request, key, DecisionForm(request.POST), act)


def _waits(found: Adjudication) -> bool:
    return found.second_wanted and found.confirmed_by_id is None


@require_POST
@reviewers_only
def send_back(request: HttpRequest, key: str) -> HttpResponse:
    """Ask annotators for more judgements."""

    def act(item: Item, values: Context) -> str:
        reviewing.send_back(
            campaign=item.campaign,
            item_ids=[item.pk],
            actor=person(request),
            extra=values["extra"],
            note=values["note"],
        )
        return _("Sent back for more judgements.")

    return _done(request, key, SendBackForm(request.POST), act)


@require_POST
@reviewers_only
def defective(request: HttpRequest, key: str) -> HttpResponse:
    """Take the item's pair out of use."""

    def act(item: Item, values: Context) -> str:
        reviewing.mark_pair_defective(
            pair=item.pair, code=values["code"], note=values["note"], actor=person(request)
        )
        return _("The pair is out of use, with all its images.")

    return _done(request, key, DefectForm(request.POST), act)


@require_POST
@reviewers_only
def reveal(request: HttpRequest, key: str) -> HttpResponse:
    """Lift the blind of an item for this reviewer; that is recorded."""
    item = get_object_or_404(Item, key=key, purpose=Purpose.WORK)
    reviewing.reveal(item=item, actor=person(request))
    return _back(item.campaign, _kept(request), item=item.key)


@require_POST
@reviewers_only
def withdraw(request: HttpRequest, pk: int) -> HttpResponse:
    """Take a decision back."""
    found = get_object_or_404(Adjudication, pk=pk)
    try:
        reviewing.withdraw_adjudication(
            adjudication=found, actor=person(request), note=request.POST.get("note", "")
        )
        messages.success(request, _("The decision is taken back."))
    except ReviewRefusedError as refused:
        messages.error(request, str(refused))
    query = urlencode({"campaign": found.campaign.slug})
    return HttpResponseRedirect(f"{reverse('agreement:log')}?{query}")


@require_POST
@admins_only
def policy(request: HttpRequest) -> HttpResponse:
    """Choose how the campaign's disputes are settled."""
    campaign, form = required_campaign(request), PolicyForm(request.POST)
    if form.is_valid():
        reviewing.set_review_policy(campaign=campaign, actor=person(request), **form.cleaned_data)
        messages.success(request, _("Saved."))
    else:
        messages.error(request, _first_error(form))
    return _back(campaign, _kept(request))


@reviewers_only
def bulk(request: HttpRequest) -> HttpResponse:
    """Preview one act for a whole part of the queue; done only if the part is still the same."""
    campaign = required_campaign(request)
    reviewer, form = person(request), QueueForm(request.GET)
    queue = review_queue(campaign, reviewer, form.cleaned_data if form.is_valid() else {})
    # One look at the queue; the items themselves are read for the act only.
    found = sorted(queue.order_by().values_list("pk", "candidate__pair__category_id"))
    pks = [pk for pk, _ in found]
    token = sha256_text(canonical_json(pks))
    act = BulkForm(request.POST or None, initial={"token": token, "reason": "clear"})
    if request.method == "POST" and act.is_valid() and _bulk(request, act, pks, token, campaign):
        return _back(campaign, _kept(request))
    context = base_context(request, campaign, "review") | {
        "form": form,
        "act_form": act,
        "query": _kept(request),
        "total": len(pks),
        "too_many": len(pks) > BULK_MOST,
        "most": BULK_MOST,
        "by_category": sorted(Counter(category for _, category in found).items()),
        "sample": Candidate.objects.filter(consensus__in=pks[:_SAMPLE]).order_by("consensus"),
    }
    return render(request, "agreement/bulk.html", context)


def _bulk(
    request: HttpRequest, form: BulkForm, pks: list[int], token: str, campaign: Campaign
) -> bool:
    """Do the act on the whole part; False with the reason in the form if it cannot be."""
    if form.cleaned_data["token"] != token:
        form.add_error(None, _("The queue changed since the preview. Look again."))
        return False
    if len(pks) > BULK_MOST:
        form.add_error(None, _("That is too much at once: filter further."))
        return False
    try:
        done = _act_on_many(form.cleaned_data, pks, person(request), campaign)
    except ReviewRefusedError as refused:
        form.add_error(None, str(refused))
        return False
    messages.success(request, _("Done for %(n)s items.") % {"n": f"{done:,}"})
    return True


def _act_on_many(values: Context, pks: list[int], actor: User, campaign: Campaign) -> int:
    if values["act"] == "send_back":
        return reviewing.send_back(
            campaign=campaign,
            item_ids=pks,
            actor=actor,
            extra=values["extra"] or 2,
            note=values["note"],
        )
    return reviewing.decide_many(
        items=list(Item.objects.filter(pk__in=pks).select_related("campaign").order_by("pk")),
        reviewer=actor,
        verdict=values["verdict"],
        reason=values["reason"],
        note=values["note"],
        second_wanted=values["second_wanted"] or None,
    )


def _done(
    request: HttpRequest, key: str, form: forms.Form, act: Callable[[Item, Context], str]
) -> HttpResponse:
    """Do an act on an item and go to the next one, or say why not and stay."""
    item = get_object_or_404(
        Item.objects.select_related("campaign", "pair"), key=key, purpose=Purpose.WORK
    )
    if not form.is_valid():
        messages.error(request, _first_error(form))
        return _back(item.campaign, _kept(request), item=item.key)
    try:
        messages.success(request, act(item, form.cleaned_data))
    except ReviewRefusedError as refused:
        messages.error(request, str(refused))
        return _back(item.campaign, _kept(request), item=item.key)
    return _back(item.campaign, _kept(request))


def _first_error(form: forms.Form) -> str:
    name, errors = next(iter(form.errors.items()))
    label = form.fields[name].label if name in form.fields else ""
    return f"{label or name}: {errors[0]}"


def _item(campaign: Campaign, **which: Any) -> Item:
    rows = Item.objects.select_related("campaign", "candidate__pair", "candidate__generator")
    return get_object_or_404(rows, campaign=campaign, purpose=Purpose.WORK, **which)


def _kept(request: HttpRequest) -> str:
    """The filters in the address, to come back to the same part of the queue."""
    kept = {name: request.GET[name] for name in _FILTERS if request.GET.get(name)}
    return urlencode(kept)


def _back(campaign: Campaign, query: str, **more: str) -> HttpResponse:
    own = urlencode({"campaign": campaign.slug, **more})
    return HttpResponseRedirect(f"{reverse('agreement:review')}?{own}{'&' if query else ''}{query}")
