from __future__ import annotations

import pytest
from django.core.cache import cache


@pytest.fixture(autouse=True)
def empty_cache() -> None:
    """Totals are cached for some seconds; every test begins without them."""
    cache.clear()
