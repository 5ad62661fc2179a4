"""What a page says while the first statistics of a large campaign are computed."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Concatenate, ParamSpec

from django.shortcuts import render

from croc_annotate.accounts.access import person
from croc_annotate.agreement.snapshots import StatisticsPendingError
from croc_annotate.annotation.models import Judgement

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.http import HttpRequest, HttpResponse

P = ParamSpec("P")

RETRY_SECONDS = 3


def waits_for_statistics(
    view: Callable[Concatenate[HttpRequest, P], HttpResponse],
) -> Callable[Concatenate[HttpRequest, P], HttpResponse]:
    """Answer 202 with a page that asks again by itself, as long as there are no statistics."""

    @wraps(view)
    def waiting(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
        try:
            return view(request, *args, **kwargs)
        except StatisticsPendingError as pending:
            context = {
                "campaign": pending.campaign,
                "judgements": Judgement.objects.filter(campaign=pending.campaign).count(),
                "retry": RETRY_SECONDS,
                "may_administer": person(request).may_administer,
            }
            reply = render(request, "agreement/computing.html", context, status=202)
            reply["Retry-After"] = str(RETRY_SECONDS)
            reply["Cache-Control"] = "no-store"
            return reply

    return waiting
