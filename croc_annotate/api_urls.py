"""Version 1 of the API: one include per room."""

from __future__ import annotations

from django.urls import include, path
from drf_spectacular.views import SpectacularAPIView

from croc_annotate.annotation.api_lists import CampaignList

urlpatterns = [
    # First what a judging page asks for each answer: the others are then not tried.
    path("", include("croc_annotate.annotation.api_urls")),
    path("prompts/", include("croc_annotate.prompts.api_urls")),
    path("", include("croc_annotate.benchmark.api_urls")),
    path("schema/", SpectacularAPIView.as_view(), name="api-schema"),
    path("campaigns/", CampaignList.as_view(), name="api-campaigns"),
    path("releases/", include("croc_annotate.releases.api_urls")),
    path("", include("croc_annotate.agreement.api_urls")),
]
