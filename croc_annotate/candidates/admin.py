"""Raw rows of generators, candidates and workers, for admins."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import admin

from croc_annotate.candidates.models import Candidate, Generator, Worker

if TYPE_CHECKING:
    from django.http import HttpRequest

    # Generic for the type checker only: at run time the class takes no parameter.
    GeneratorModelAdmin = admin.ModelAdmin[Generator]
    CandidateModelAdmin = admin.ModelAdmin[Candidate]
    WorkerModelAdmin = admin.ModelAdmin[Worker]
else:
    GeneratorModelAdmin = CandidateModelAdmin = WorkerModelAdmin = admin.ModelAdmin


@admin.register(Generator)
class GeneratorAdmin(GeneratorModelAdmin):
    """Models and their settings; how to add one stands in docs/generation.md."""

    list_display = ["slug", "label", "pipeline", "model_id", "licence", "active"]
    list_filter = ["active", "pipeline"]
    search_fields = ["slug", "label", "model_id"]


@admin.register(Candidate)
class CandidateAdmin(CandidateModelAdmin):
    """Looked at here, changed only by the program: rows, files and hashes belong together."""

    list_display = ["pair", "side", "generator", "seed", "state", "rendered_at"]
    list_filter = ["state", "side", "generator", "pair__category"]
    list_select_related = ["pair", "generator"]
    search_fields = ["pair__slug", "sha256", "key", "source_name"]
    show_full_result_count = False

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Candidates come from plans and imports."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Candidate | None = None) -> bool:
        """See the class."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Candidate | None = None) -> bool:
        """Judgements and releases hang on candidates."""
        return False


@admin.register(Worker)
class WorkerAdmin(WorkerModelAdmin):
    """Who rendered what, when."""

    list_display = ["name", "queue", "device", "doing", "images_done", "heartbeat_at", "stopped_at"]

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Workers write their own rows."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Worker | None = None) -> bool:
        """See has_add_permission."""
        return False
