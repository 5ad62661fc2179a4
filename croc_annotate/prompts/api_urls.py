"""Addresses of the prompts API, below /api/v1/prompts/."""

from __future__ import annotations

from django.urls import path

from croc_annotate.prompts import api

urlpatterns = [
    path("", api.PairList.as_view(), name="api-prompts"),
    path("check", api.CheckPair.as_view(), name="api-prompts-check"),
]
