"""Renderers of the API beside JSON."""

from __future__ import annotations

from rest_framework.renderers import JSONRenderer


class AnyRenderer(JSONRenderer):
    """For files: whatever the client says it accepts, it gets the file, and errors as JSON."""

    media_type = "*/*"
