"""Addresses of the leaderboard."""

from __future__ import annotations

from django.urls import path

from croc_annotate.benchmark import views

app_name = "benchmark"
urlpatterns = [
    path("leaderboard/", views.leaderboard, name="leaderboard"),
    path("leaderboard/compare/", views.compare, name="compare"),
    path("leaderboard/runs/", views.runs, name="runs"),
    path("leaderboard/download/<slug:form>/", views.download, name="download"),
    path("leaderboard/metric/<path:name>/", views.metric, name="metric"),
    path("leaderboard/image/<int:release_id>/<int:candidate_id>/", views.image, name="image"),
]
