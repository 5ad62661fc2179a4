"""Addresses of the judging API."""

from __future__ import annotations

from django.urls import path

from croc_annotate.annotation import api

app_name = "annotation-api"

_campaign = "campaigns/<slug:slug>"

urlpatterns = [
    path(f"{_campaign}/session", api.SessionView.as_view(), name="session"),
    path(f"{_campaign}/claim", api.ClaimView.as_view(), name="claim"),
    path(f"{_campaign}/answers", api.AnswersView.as_view(), name="answers"),
    path(f"{_campaign}/release", api.ReleaseView.as_view(), name="release"),
    path(f"{_campaign}/skip", api.SkipView.as_view(), name="skip"),
    path(f"{_campaign}/flag", api.FlagView.as_view(), name="flag"),
    path(f"{_campaign}/history", api.HistoryView.as_view(), name="history"),
    path(f"{_campaign}/reconcile", api.ReconcileView.as_view(), name="reconcile"),
]
