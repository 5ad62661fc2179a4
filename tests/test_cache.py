"""The tests' own cache: what one test keeps, no other sees or empties."""

from __future__ import annotations

import pytest
from django.core.cache import cache

from tests import cache as own


@pytest.fixture
def another():
    """What another test of another worker keeps under the same name, on the same server."""
    mine = own._part
    own._part = "gw9-other"
    cache.set("row-1", "theirs", 60)
    own._part = mine

    def look():
        own._part = "gw9-other"
        found = cache.get("row-1")
        own._part = mine
        return found

    yield look
    own._part = "gw9-other"
    cache.clear()
    own._part = mine


def test_a_test_sees_and_empties_its_own_part_only(another):
    assert cache.get("row-1") is None
    assert cache.add("row-1", "mine", 60)
    cache.clear()
    assert cache.get("row-1") is None
    assert another() == "theirs"
