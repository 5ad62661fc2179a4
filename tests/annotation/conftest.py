from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def cache_of_its_own(settings, request) -> None:
    """Totals are cached for some seconds: every test has a cache of its own, in this process."""
    settings.CACHES = {
        "default": {
            "BACKEND": "django.core.cache.backends.locmem.LocMemCache",
            "LOCATION": request.node.nodeid,
        }
    }
