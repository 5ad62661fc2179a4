"""Addresses of the generation page."""

from __future__ import annotations

from django.urls import path

from generation import views

app_name = "generation"

urlpatterns = [
    path("generation/", views.status, name="status"),
    path("generation/live", views.live, name="live"),
    path("generation/retry", views.retry, name="retry"),
]
