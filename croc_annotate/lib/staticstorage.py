"""Static files with the content's hash in their names, inside ES modules too."""

from __future__ import annotations

from django.contrib.staticfiles.storage import StaticFilesStorage
from whitenoise.storage import CompressedManifestStaticFilesStorage


class ModuleAwareStaticStorage(CompressedManifestStaticFilesStorage):  # type: ignore[misc]
    """Rewrites ``import`` paths in JavaScript modules, so that a release never mixes versions."""

    support_js_module_import_aggregation = True

    def url(self, name: str | None, force: bool = False) -> str:  # noqa: FBT001, FBT002  (Django's)
        """The hashed address; the plain one before ``collectstatic`` (demo, development)."""
        if not self.hashed_files:
            return str(StaticFilesStorage.url(self, name))
        return str(super().url(name, force))
