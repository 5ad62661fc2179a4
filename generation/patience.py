"""Wait for a database or a file store that is away for a while, instead of losing an image."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, TypeVar

from django.db import InterfaceError, OperationalError, connection

from croc_annotate.candidates.storage import storage_errors

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

logger = logging.getLogger(__name__)

LIMIT_SECONDS = 900.0
_FIRST_DELAY, _LONGEST_DELAY = 0.5, 15.0


def away() -> tuple[type[Exception], ...]:
    """The errors of a database or a file store that cannot be reached now."""
    return (OperationalError, InterfaceError, *storage_errors())


def patiently(act: Callable[[], T], *, limit: float = LIMIT_SECONDS) -> T:
    """Run an act that may safely run twice; on a lost connection wait and run it again.

    Raises the last error once `limit` seconds have passed, and at once inside a
    transaction of the caller, whose earlier steps are lost with the connection.
    """
    deadline = time.monotonic() + limit
    delay = _FIRST_DELAY
    while True:
        try:
            return act()
        except away() as error:
            if connection.in_atomic_block or time.monotonic() + delay > deadline:
                raise
            logger.warning("Waiting %.1f s for the database or the file store: %s", delay, error)
        connection.close()
        time.sleep(delay)
        delay = min(delay * 2, _LONGEST_DELAY)
