"""Health and monitoring: no prefix, as load balancers expect."""

from __future__ import annotations

from django.urls import path

from croc_annotate.operations import views

app_name = "operations"
urlpatterns = [
    path("healthz", views.healthz, name="healthz"),
    path("readyz", views.readyz, name="readyz"),
    path("metrics", views.metrics, name="metrics"),
]
