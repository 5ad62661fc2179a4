"""Addresses of images and of the wall."""

from __future__ import annotations

from django.urls import path

from croc_annotate.candidates import views

app_name = "candidates"

urlpatterns = [
    path("images/", views.browse, name="browse"),
    path("images/of/<int:pair>/<slug:side>/", views.of_pair, name="of_pair"),
    path("images/<slug:key>/", views.detail, name="detail"),
    path("images/<slug:key>/original", views.original, name="original"),
    path("i/<slug:key>", views.display, name="display"),
    path("i/<slug:key>/small", views.preview, name="preview"),
]
