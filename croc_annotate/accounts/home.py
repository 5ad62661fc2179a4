"""The front door: everybody lands where their work is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.shortcuts import redirect

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse


def home(request: HttpRequest) -> HttpResponse:
    """Send admins to the overview, annotators to their campaigns, visitors to the leaderboard."""
    user = request.user
    if not user.is_authenticated:
        return redirect("benchmark:leaderboard")
    return redirect("agreement:overview" if user.may_review else "annotation:campaigns")
