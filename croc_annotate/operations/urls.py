"""Health and monitoring (no prefix, as load balancers expect), and people's data."""

from __future__ import annotations

from django.urls import path

from croc_annotate.operations import person_pages, views

app_name = "operations"
urlpatterns = [
    path("healthz", views.healthz, name="healthz"),
    path("readyz", views.readyz, name="readyz"),
    path("metrics", views.metrics, name="metrics"),
    path("people/<int:pk>/data/", person_pages.show, name="person"),
    path("people/<int:pk>/data/export/", person_pages.export, name="person-export"),
    path(
        "people/<int:pk>/data/pseudonymise/",
        person_pages.pseudonymise,
        name="person-pseudonymise",
    ),
]
