"""Addresses of the site: one include per room."""

from __future__ import annotations

from django.contrib import admin
from django.urls import include, path

from croc_annotate.accounts.home import home

handler400 = "croc_annotate.lib.problems.bad_request"
handler404 = "croc_annotate.lib.problems.page_not_found"
handler500 = "croc_annotate.lib.problems.server_error"

urlpatterns = [
    path("api/v1/", include("croc_annotate.api_urls")),
    path("", home, name="home"),
    path("accounts/", include("croc_annotate.accounts.urls")),
    path("", include("croc_annotate.operations.urls")),
    path("", include("croc_annotate.candidates.urls")),
    path("", include("croc_annotate.annotation.urls")),
    path("", include("croc_annotate.prompts.urls")),
    path("", include("croc_annotate.agreement.urls")),
    path("", include("croc_annotate.releases.urls")),
    path("", include("croc_annotate.benchmark.urls")),
    path("", include("generation.urls")),
    path("django-admin/", admin.site.urls),
    path("i18n/", include("django.conf.urls.i18n")),
]
