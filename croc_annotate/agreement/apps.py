from __future__ import annotations

from django.apps import AppConfig


class AgreementConfig(AppConfig):
    name = "croc_annotate.agreement"
    default_auto_field = "django.db.models.BigAutoField"
