"""Addresses of the bank's pages."""

from __future__ import annotations

from django.urls import path

from croc_annotate.prompts import views

app_name = "prompts"

urlpatterns = [
    path("prompts/", views.pair_list, name="list"),
    path("prompts/new/", views.pair_new, name="new"),
    path("prompts/export.jsonl", views.export, name="export"),
    path("prompts/p/<slug:slug>/", views.pair_detail, name="pair"),
    path("prompts/p/<slug:slug>/edit/", views.pair_edit, name="edit"),
    path("prompts/p/<slug:slug>/retire/", views.pair_retire, name="retire"),
    path("prompts/p/<slug:slug>/reinstate/<int:version>/", views.pair_reinstate, name="reinstate"),
]
