from __future__ import annotations

from django.apps import AppConfig


class AccountsConfig(AppConfig):
    name = "croc_annotate.accounts"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from croc_annotate.accounts import checks  # noqa: F401 (registers itself)
