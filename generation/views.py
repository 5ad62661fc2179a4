"""The admin's generation page: how far it is, who works on it, what failed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import messages
from django.db import transaction
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import ngettext
from django.views.decorators.http import require_POST, require_safe

from croc_annotate.accounts.access import admins_only, person
from croc_annotate.accounts.services import record_audit
from croc_annotate.candidates.selectors import failed_for
from croc_annotate.candidates.services import retry_failed
from generation.status import generation_status

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponseBase


@require_safe
@admins_only
def status(request: HttpRequest) -> HttpResponseBase:
    """The page; its inner part renews itself."""
    return render(request, "generation/status.html", _context())


@require_safe
@admins_only
def live(request: HttpRequest) -> HttpResponseBase:
    """The inner part alone."""
    return render(request, "generation/_status.html", _context())


@require_POST
@admins_only
def retry(request: HttpRequest) -> HttpResponseBase:
    """Ask again for the failures of one generator that share a reason.

    Nothing is enqueued here: a living worker that runs out of messages looks at the rows.
    """
    reason, generator = request.POST.get("reason", ""), request.POST.get("generator", "")
    with transaction.atomic():
        count = retry_failed(candidates=failed_for(reason=reason, generator=generator))
        record_audit(
            actor=person(request),
            action="generation.retry",
            subject_type="generator",
            subject_id=generator,
            details={"reason": reason, "candidates": count},
        )
    said = ngettext("%(n)d image is asked for again.", "%(n)d images are asked for again.", count)
    messages.success(request, said % {"n": count})
    return redirect("generation:status")


def _context() -> dict[str, object]:
    return {"status": generation_status(at=timezone.now())}
