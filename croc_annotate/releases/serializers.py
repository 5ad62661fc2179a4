"""What the releases API gives."""

from __future__ import annotations

from typing import Any, ClassVar

from django.urls import reverse
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from croc_annotate.releases.models import Release, ReleaseExport


class ReleaseSerializer(serializers.ModelSerializer[Release]):
    """A release in a list."""

    rule = serializers.CharField(help_text="How votes became a verdict, or `published`.")
    images = serializers.IntegerField(source="n_verified", help_text="Verified images in it.")
    withdrawn = serializers.BooleanField(source="is_withdrawn")

    class Meta:
        model = Release
        fields: ClassVar[list[str]] = [
            "name", "version", "created_at", "origin", "rule", "images", "sha256", "is_public",
            "is_simulated", "withdrawn", "withdrawn_note",
        ]  # fmt: skip


class ExportSerializer(serializers.ModelSerializer[ReleaseExport]):
    """A finished export: one tar archive."""

    formats = serializers.SerializerMethodField()
    url = serializers.SerializerMethodField(help_text="Where the archive is downloaded.")

    class Meta:
        model = ReleaseExport
        fields: ClassVar[list[str]] = ["id", "formats", "size", "sha256", "finished_at", "url"]

    @extend_schema_field(serializers.ListField(child=serializers.CharField()))
    def get_formats(self, found: ReleaseExport) -> list[str]:
        """The formats in the archive."""
        return list(found.options.get("formats", []))

    @extend_schema_field(serializers.URLField())
    def get_url(self, found: ReleaseExport) -> str:
        """An absolute address."""
        path = reverse(
            "api-release-archive", args=[found.release.name, found.release.version, found.pk]
        )
        return str(self.context["request"].build_absolute_uri(path))


class ReleaseDetailSerializer(ReleaseSerializer):
    """A release with its numbers and its files."""

    counts = serializers.DictField(
        child=serializers.IntegerField(), help_text="Candidates by the reason they are in or out."
    )
    parameters: ClassVar[Any] = serializers.JSONField(help_text="How it was frozen.")
    exports = serializers.SerializerMethodField()

    class Meta(ReleaseSerializer.Meta):
        fields: ClassVar[list[str]] = [
            *ReleaseSerializer.Meta.fields, "notes", "counts", "parameters", "exports",
        ]  # fmt: skip

    @extend_schema_field(ExportSerializer(many=True))
    def get_exports(self, found: Release) -> Any:
        """Finished exports, newest first."""
        rows = found.exports.filter(state="done").order_by("-id")[:10]
        return ExportSerializer(rows, many=True, context=self.context).data
