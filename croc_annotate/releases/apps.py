from __future__ import annotations

from django.apps import AppConfig


class ReleasesConfig(AppConfig):
    name = "croc_annotate.releases"
    default_auto_field = "django.db.models.BigAutoField"
