"""Addresses of the leaderboard's API."""

from __future__ import annotations

from django.urls import path

from croc_annotate.benchmark import api

urlpatterns = [
    path("leaderboard/", api.LeaderboardView.as_view(), name="api-leaderboard"),
    path(
        "leaderboard/releases/",
        api.LeaderboardReleasesView.as_view(),
        name="api-leaderboard-releases",
    ),
    path("leaderboard/<path:name>/", api.MetricView.as_view(), name="api-leaderboard-metric"),
]
