from __future__ import annotations

from django.apps import AppConfig


class AnnotationConfig(AppConfig):
    name = "croc_annotate.annotation"
    default_auto_field = "django.db.models.BigAutoField"
