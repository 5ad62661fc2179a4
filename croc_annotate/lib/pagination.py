"""Pages of the API's lists."""

from __future__ import annotations

from typing import Any

from rest_framework.pagination import PageNumberPagination


class StatedPagination(PageNumberPagination):
    """``page`` from 1 on, ``page_size`` rows each: 100 unless asked, never more than 500."""

    page_size = 100
    page_size_query_param = "page_size"
    max_page_size = 500

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        """As the parent's, in the words of OpenAPI 3.1: ``next`` may be null."""
        found: dict[str, Any] = super().get_paginated_response_schema(schema)
        for name in ("next", "previous"):
            entry = found["properties"][name]
            entry.pop("nullable", None)
            entry["type"] = ["string", "null"]
        return found
