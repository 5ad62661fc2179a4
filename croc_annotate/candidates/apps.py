from __future__ import annotations

from django.apps import AppConfig


class CandidatesConfig(AppConfig):
    name = "croc_annotate.candidates"
    default_auto_field = "django.db.models.BigAutoField"
