"""The cache of the tests: a real Redis in which each test has a part of its own.

Two xdist workers and other runs use the same server, and tests number their rows alike: what one
remembers about row 1 must not be told to another, and who empties the cache empties its own.
"""

from __future__ import annotations

import os
import zlib
from contextlib import suppress

from django.core.cache.backends.redis import RedisCache
from redis.exceptions import RedisError

_part = ""


def begin(nodeid: str) -> None:
    """From now on keys belong to this test, in whatever thread they are used."""
    global _part
    worker = os.environ.get("PYTEST_XDIST_WORKER", "")
    _part = f"{worker}-{zlib.crc32(nodeid.encode()):08x}"


def key_of(key: str, prefix: str, version: int) -> str:
    """Django's KEY_FUNCTION: its own with the test's part in front."""
    return f"{prefix}{_part}:{version}:{key}"


class OwnCache(RedisCache):
    """Redis as the site uses it, but for ``clear``, which would empty the server."""

    def clear(self) -> bool:
        """Forget what this test stored."""
        client = self._cache.get_client(None, write=True)
        for key in client.scan_iter(match=f"{self.key_prefix}{_part}:*", count=1000):
            client.delete(key)
        return True


def forget_run() -> None:
    """Leave nothing of this process's tests on the server."""
    from django.core.cache import cache

    worker = os.environ.get("PYTEST_XDIST_WORKER", "")
    if isinstance(cache._connections[cache._alias], OwnCache):
        with suppress(RedisError):
            client = cache._cache.get_client(None, write=True)
            for key in client.scan_iter(match=f"{cache.key_prefix}{worker}-*", count=1000):
                client.delete(key)


def settings_of_tests(given: dict) -> dict:
    """CACHES for the tests. A busy machine's Redis may need longer than a visitor would wait."""
    default = given["default"]
    patient = {**default.get("OPTIONS", {}), "socket_connect_timeout": 30, "socket_timeout": 30}
    return {
        **given,
        "default": {
            **default,
            "BACKEND": "tests.cache.OwnCache",
            "KEY_FUNCTION": "tests.cache.key_of",
            "OPTIONS": patient,
        },
    }
