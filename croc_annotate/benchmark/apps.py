from __future__ import annotations

from django.apps import AppConfig


class BenchmarkConfig(AppConfig):
    name = "croc_annotate.benchmark"
    default_auto_field = "django.db.models.BigAutoField"
