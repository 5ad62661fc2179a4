from __future__ import annotations

from django.apps import AppConfig
from django.db.backends.signals import connection_created


class CandidatesConfig(AppConfig):
    name = "croc_annotate.candidates"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Connect what needs the models."""
        from croc_annotate.candidates.statements import teach_sqlite

        connection_created.connect(teach_sqlite, dispatch_uid="candidates.teach_sqlite")
