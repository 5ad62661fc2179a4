"""Addresses of the releases API, below /api/v1/releases/."""

from __future__ import annotations

from django.urls import path

from croc_annotate.releases import api

_ONE = "<str:name>/<str:version>/"

urlpatterns = [
    path("", api.ReleaseList.as_view(), name="api-releases"),
    path(_ONE, api.ReleaseView.as_view(), name="api-release"),
    path(f"{_ONE}exports/<int:pk>/", api.ArchiveView.as_view(), name="api-release-archive"),
]
