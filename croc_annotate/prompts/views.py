"""The bank's pages: list, one pair with both texts, edit, add, retire, export."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import Http404, HttpResponse, StreamingHttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from croc_annotate.accounts.access import admins_only, person, reviewers_only
from croc_annotate.prompts.bank import BankError
from croc_annotate.prompts.forms import FilterForm, PairForm, RetireForm
from croc_annotate.prompts.marking import marked_pair
from croc_annotate.prompts.models import ContrastPair
from croc_annotate.prompts.rules import LABEL_FIELDS, TEXT_FIELDS
from croc_annotate.prompts.selectors import (
    bank_rows,
    category_counts,
    filter_pairs,
    next_number,
    versions,
)
from croc_annotate.prompts.services import (
    PairRetired,
    PairTaken,
    add_pair,
    edit_pair,
    reinstate_pair,
    retire_pair,
)

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponseBase

_PAGE = 50


@require_safe
@reviewers_only
def pair_list(request: HttpRequest) -> HttpResponseBase:
    """The pairs, filtered by the address."""
    form = FilterForm(request.GET)
    wanted = form.cleaned_data if form.is_valid() else {}
    page = Paginator(filter_pairs(wanted), _PAGE).get_page(request.GET.get("page"))
    rows = [(pair, *marked_pair(pair.prompt, pair.contrast)) for pair in page]
    return render(
        request,
        "prompts/list.html",
        {
            "form": form,
            "page_obj": page,
            "rows": rows,
            "categories": category_counts(),
            "filtered": any(wanted.values()),
        },
    )


@require_safe
@reviewers_only
def pair_detail(request: HttpRequest, slug: str) -> HttpResponseBase:
    """One pair: both texts with the differing words marked, its labels and its versions."""
    found = versions(slug)
    if not found:
        raise Http404("There is no such pair.")
    wanted = request.GET.get("version", "")
    pair = next((p for p in found if str(p.version) == wanted), found[0])
    prompt, contrast = marked_pair(pair.prompt, pair.contrast)
    return render(
        request,
        "prompts/pair.html",
        {
            "pair": pair,
            "prompt": prompt,
            "contrast": contrast,
            "versions": found,
            "retire_form": RetireForm(),
        },
    )


@require_http_methods(["GET", "HEAD", "POST"])
@admins_only
def pair_edit(request: HttpRequest, slug: str) -> HttpResponseBase:
    """Change a pair's texts or labels, under the bank's rules."""
    pair = get_object_or_404(ContrastPair.objects.active(), slug=slug)
    fields = (*TEXT_FIELDS, *LABEL_FIELDS)
    initial = {"slug": slug, "category": pair.category_id}
    initial.update({name: getattr(pair, name) for name in fields})
    form = PairForm(request.POST or None, initial=initial, fixed_slug=slug)
    if request.method == "POST" and form.is_valid():
        try:
            change = edit_pair(pair=pair, row=form.row(), actor=person(request))
        except (BankError, PairRetired) as error:
            form.add_error(None, str(error))
        else:
            messages.success(request, _saved_message(change.pair, versioned=change.versioned))
            return redirect("prompts:pair", slug=slug)
    fixed = ContrastPair.objects.with_images().filter(pk=pair.pk).exists()
    return _edit_page(request, form, pair=pair, fixed=fixed)


@require_http_methods(["GET", "HEAD", "POST"])
@admins_only
def pair_new(request: HttpRequest) -> HttpResponseBase:
    """Add a pair."""
    category = request.GET.get("category", "")
    initial = (
        {"category": category, "slug": f"{category}_{next_number(category)}"} if category else {}
    )
    form = PairForm(request.POST or None, initial=initial)
    if request.method == "POST" and form.is_valid():
        try:
            pair = add_pair(row=form.row(), bank="site", actor=person(request))
        except (BankError, PairTaken) as error:
            form.add_error("slug", str(error))
        else:
            messages.success(request, _("“%(pair)s” was added.") % {"pair": pair})
            return redirect("prompts:pair", slug=pair.slug)
    return _edit_page(request, form, pair=None, fixed=False)


@require_POST
@admins_only
def pair_retire(request: HttpRequest, slug: str) -> HttpResponseBase:
    """Take the pair out of use."""
    pair = get_object_or_404(ContrastPair.objects.active(), slug=slug)
    form = RetireForm(request.POST)
    if form.is_valid():
        retire_pair(pair=pair, reason=form.cleaned_data["reason"], actor=person(request))
        messages.success(request, _("“%(pair)s” is out of use now.") % {"pair": pair})
    else:
        messages.error(request, _("A pair is retired for a reason: please give one."))
    return redirect("prompts:pair", slug=slug)


@require_POST
@admins_only
def pair_reinstate(request: HttpRequest, slug: str, version: int) -> HttpResponseBase:
    """Put a retired version back into use."""
    pair = get_object_or_404(ContrastPair, slug=slug, version=version)
    try:
        reinstate_pair(pair=pair, actor=person(request))
        messages.success(request, _("“%(pair)s” is in use again.") % {"pair": pair})
    except PairRetired as error:
        messages.error(request, str(error))
    return redirect("prompts:pair", slug=slug)


@require_safe
@reviewers_only
def export(request: HttpRequest) -> HttpResponseBase:
    """The filtered pairs as a bank file (JSON Lines) that load_prompts reads."""
    form = FilterForm(request.GET)
    pairs = filter_pairs(form.cleaned_data if form.is_valid() else {})
    lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in bank_rows(pairs))
    response: HttpResponse | StreamingHttpResponse = StreamingHttpResponse(
        lines, content_type="application/x-ndjson; charset=utf-8"
    )
    response["Content-Disposition"] = 'attachment; filename="prompts.jsonl"'
    return response


def _edit_page(
    request: HttpRequest, form: PairForm, *, pair: ContrastPair | None, fixed: bool
) -> HttpResponse:
    context = {
        "form": form,
        "texts": [form[name] for name in ("slug", "category", *TEXT_FIELDS)],
        "labels": [form[name] for name in LABEL_FIELDS],
        "pair": pair,
        "fixed": fixed,
    }
    return render(request, "prompts/edit.html", context)


def _saved_message(pair: ContrastPair, *, versioned: bool) -> str:
    if versioned:
        return _("Saved as version %(version)s: images were made from the earlier texts.") % {
            "version": pair.version
        }
    return _("Saved.")
