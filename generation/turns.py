"""Requests a minute of one generator, over all its workers together.

Time is cut into turns, one a request; whoever puts a turn's key into the cache first has it. With
Redis all workers share the cache. Without one each process counts for itself, and there is
one: workers need the broker. A cache that is away leaves each process its own pace.
"""

from __future__ import annotations

import logging
import math
import time

from django.core.cache import cache
from redis.exceptions import RedisError

logger = logging.getLogger(__name__)


class Turns:
    """Waits until it is this process's turn. Not shared between threads."""

    def __init__(self, name: str, per_minute: float) -> None:
        self._name = name
        self._seconds = 60.0 / per_minute  # of one turn
        self._next_at = 0.0  # of this process

    def wait(self) -> None:
        """Return when a request may be sent."""
        # Not only turn by turn, but also a turn's length after our own last request: it may
        # have come late in its turn.
        wait = max(self._shared(time.time()), self._next_at - time.monotonic(), 0.0)
        self._next_at = time.monotonic() + wait + self._seconds
        if wait:
            time.sleep(wait)

    def _shared(self, now: float) -> float:
        """Seconds until the first turn that nobody has; it is ours then."""
        turn = int(now / self._seconds)
        try:
            while not self._take(turn, now):
                turn += 1
        except (OSError, RedisError) as error:
            logger.warning("Requests are paced without the other workers: %s", error)
            return 0.0
        return turn * self._seconds - now

    def _take(self, turn: int, now: float) -> bool:
        # Kept until it is over, and a while longer for clocks that do not quite agree.
        keep = math.ceil((turn + 2) * self._seconds - now) + 5
        return cache.add(f"generation:turn:{self._name}:{turn}", 1, timeout=keep)
