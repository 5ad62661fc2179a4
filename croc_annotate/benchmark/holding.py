"""Who is at a range of images: a lease in the shared cache, renewed while its process lives.

A worker that is killed leaves its range held for one lease at most; then the range is handed out
again. The lease only keeps two workers from doing the same work: that no score is stored twice is
the database's own rule.
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from threading import Event, Thread
from typing import TYPE_CHECKING

from django.conf import settings
from django.core.cache import cache
from redis.exceptions import RedisError

if TYPE_CHECKING:
    from collections.abc import Iterator

_DAY = 86_400


@contextmanager
def held(run_id: int, start: int) -> Iterator[bool]:
    """Hold the range that begins with image `start`; False when somebody else holds it."""
    key, lease = _key("range", run_id, start), settings.GENERATION_LEASE_SECONDS
    if not cache.add(key, 1, lease):
        yield False
        return
    done = Event()

    def renew() -> None:
        while not done.wait(lease / 3):
            with suppress(RedisError):  # the next beat may get through
                cache.touch(key, lease)

    heart = Thread(target=renew, daemon=True)
    heart.start()
    try:
        yield True
    finally:
        done.set()
        heart.join()
        cache.delete(key)


def is_held(run_id: int, start: int) -> bool:
    """Whether a living worker is at it."""
    return cache.get(_key("range", run_id, start)) is not None


def count_try(run_id: int, start: int) -> int:
    """How often a worker began with the range since it last stored anything of it."""
    key = _key("tries", run_id, start)
    cache.add(key, 0, _DAY)
    return int(cache.incr(key))


def forget_tries(run_id: int, start: int) -> None:
    """The range got on."""
    cache.delete(_key("tries", run_id, start))


def _key(kind: str, run_id: int, start: int) -> str:
    return f"benchmark-{kind}-{run_id}-{start}"
