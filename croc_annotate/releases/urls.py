"""Addresses of the release pages; a release's address is for ever."""

from __future__ import annotations

from django.urls import path

from croc_annotate.releases import freeze_views, views

app_name = "releases"

_ONE = "releases/<str:name>/<str:version>/"

urlpatterns = [
    path("releases/", views.releases, name="list"),
    path("releases/new/", freeze_views.new, name="new"),
    path("releases/freezes/", freeze_views.freezes, name="freezes"),
    path("releases/compare/", views.compare, name="compare"),
    path(_ONE, views.detail, name="detail"),
    path(f"{_ONE}export/", views.export, name="export"),
    path(f"{_ONE}exports/", views.exports, name="exports"),
    path(f"{_ONE}exports/<int:pk>/", views.download, name="download"),
    path(f"{_ONE}images/<slug:key>/", views.image, name="image"),
    path(f"{_ONE}CITATION.cff", views.citation, name="citation"),
    path(f"{_ONE}visibility/", views.visibility, name="visibility"),
    path(f"{_ONE}withdraw/", views.withdraw, name="withdraw"),
]
