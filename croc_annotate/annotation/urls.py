"""Addresses of the annotator's pages and of the campaign pages."""

from __future__ import annotations

from django.urls import path

from croc_annotate.annotation import crowd_views, manage_views, views

app_name = "annotation"

urlpatterns = [
    path("annotate/", views.campaigns, name="campaigns"),
    path("annotate/<slug:slug>/", views.judge, name="judge"),
    path("annotate/<slug:slug>/consent/", views.consent, name="consent"),
    path("annotate/<slug:slug>/decline/", views.decline, name="decline"),
    path("annotate/<slug:slug>/guideline/", views.guideline, name="guideline"),
    path("annotate/<slug:slug>/end/", views.end, name="end"),
    path("annotate/<slug:slug>/me/", views.me, name="me"),
    path("join/<str:token>/", crowd_views.join, name="join"),
    path("study/", crowd_views.enter, name="enter-study"),
    path("study/webhook/", crowd_views.webhook, name="study-webhook"),
    path("campaigns/", manage_views.index, name="manage"),
    path("campaigns/new/", manage_views.new, name="manage-new"),
    path("campaigns/texts/", manage_views.texts, name="manage-texts"),
    path("campaigns/<slug:slug>/", manage_views.detail, name="manage-detail"),
    path("campaigns/<slug:slug>/edit/", manage_views.edit, name="manage-edit"),
    path("campaigns/<slug:slug>/state/", manage_views.state, name="manage-state"),
    path("campaigns/<slug:slug>/invite/", manage_views.invite, name="manage-invite"),
    path("campaigns/<slug:slug>/study/", manage_views.study, name="manage-study"),
    path("campaigns/<slug:slug>/people/<int:pk>/", manage_views.person, name="manage-person"),
]
