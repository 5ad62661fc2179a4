"""Static files with the content's hash in their names, inside ES modules too."""

from __future__ import annotations

from whitenoise.storage import CompressedManifestStaticFilesStorage


class ModuleAwareStaticStorage(CompressedManifestStaticFilesStorage):  # type: ignore[misc]
    """Rewrites ``import`` paths in JavaScript modules, so that a release never mixes versions."""

    support_js_module_import_aggregation = True
