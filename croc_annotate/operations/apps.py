from __future__ import annotations

from django.apps import AppConfig


class OperationsConfig(AppConfig):
    name = "croc_annotate.operations"

    def ready(self) -> None:
        """Count failures of tasks from now on."""
        from croc_annotate.operations import failures  # noqa: F401
