"""Pages of this room; the campaign is in the query, so that each address stands alone."""

from __future__ import annotations

from django.urls import path

from croc_annotate.agreement import pages

app_name = "agreement"

urlpatterns = [
    path("agreement/", pages.overview, name="overview"),
    path("agreement/report/", pages.report, name="report"),
    path("agreement/annotators/", pages.annotators, name="annotators"),
    path("agreement/rules/", pages.rules, name="rules"),
]
