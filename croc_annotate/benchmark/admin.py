"""Metrics, runs and results from elsewhere for admins; scores are never edited by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import admin

from croc_annotate.benchmark.models import ExternalResult, MetricRun, MetricVersion

if TYPE_CHECKING:
    from django.http import HttpRequest

    # Generic for the type checker only: at run time the class takes no parameter.
    MetricVersionModelAdmin = admin.ModelAdmin[MetricVersion]
    MetricRunModelAdmin = admin.ModelAdmin[MetricRun]
    ExternalResultModelAdmin = admin.ModelAdmin[ExternalResult]
else:
    MetricVersionModelAdmin = MetricRunModelAdmin = ExternalResultModelAdmin = admin.ModelAdmin


@admin.register(MetricVersion)
class MetricVersionAdmin(MetricVersionModelAdmin):
    """A fingerprint says what gave the scores: it is read, and only its label may change."""

    list_display = ["name", "label", "fingerprint", "is_reference", "created_at"]
    readonly_fields = [
        "fingerprint",
        "name",
        "parts",
        "is_reference",
        "truncated",
        "created_at",
    ]
    search_fields = ["name", "label", "fingerprint"]

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Runs and imports make these."""
        return False


@admin.register(MetricRun)
class MetricRunAdmin(MetricRunModelAdmin):
    """What a run came to: read only."""

    list_display = ["metric", "release", "state", "origin", "n_scores", "n_missing", "started_at"]
    list_filter = ["state", "origin"]

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Runs are made by run_benchmark and import_scores."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: MetricRun | None = None) -> bool:
        """A run's numbers are what they were."""
        return False


@admin.register(ExternalResult)
class ExternalResultAdmin(ExternalResultModelAdmin):
    """Numbers of papers and other boards, with their source."""

    list_display = ["board", "metric", "configuration", "measure", "value", "unit", "reproduced"]
    list_filter = ["board", "reproduced"]
