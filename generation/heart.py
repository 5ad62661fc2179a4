"""A worker's sign of life: it is seen, and what it claimed stays its own while it lives."""

from __future__ import annotations

import logging
import threading
from datetime import timedelta
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import DatabaseError, InterfaceError, connection
from django.utils import timezone

from croc_annotate.candidates.claims import renew_claims
from croc_annotate.candidates.models import Worker

if TYPE_CHECKING:
    from collections.abc import Callable

logger = logging.getLogger(__name__)

LEASE = timedelta(seconds=settings.GENERATION_LEASE_SECONDS)
BEAT_SECONDS = max(settings.GENERATION_LEASE_SECONDS / 6, 0.5)


class Heart:
    """Renews a worker's row and its claims from a thread of its own.

    The other threads only set `doing`, `device` and `images_done`. `chores` are called
    after each beat; the Celery worker rings for forgotten work there.
    """

    def __init__(self, name: str, queue: str) -> None:
        self.name = name
        self.queue = queue
        self.device = ""
        self.doing = ""
        self.images_done = 0
        self.chores: list[Callable[[], None]] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="heart", daemon=True)

    def start(self) -> None:
        """Write the row and start beating."""
        now = timezone.now()
        Worker.objects.update_or_create(
            name=self.name,
            defaults={"queue": self.queue, "started_at": now, "heartbeat_at": now},
        )
        if not self._thread.is_alive():
            self._thread.start()

    def stop(self) -> None:
        """Stop beating and write the last row."""
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()
        self.doing = ""
        now = timezone.now()
        Worker.objects.filter(name=self.name).update(**self._state(), stopped_at=now)

    def _run(self) -> None:
        while not self._over.wait(BEAT_SECONDS):
            try:
                self._beat()
                for chore in self.chores:
                    chore()
            except (DatabaseError, InterfaceError) as error:
                # The database is away: the lease outlives several missed beats.
                logger.warning("No heartbeat: %s", error)
                connection.close()
            except Exception:
                # A chore that goes wrong must not stop the heart: what is claimed would lapse.
                logger.exception("After a heartbeat")
        connection.close()

    def _beat(self) -> None:
        now = timezone.now()
        Worker.objects.filter(name=self.name).update(**self._state(), heartbeat_at=now)
        renew_claims(worker=self.name, at=now, lease=LEASE)

    def _state(self) -> dict[str, object]:
        return {
            "device": self.device[:120],
            "doing": self.doing[:200],
            "images_done": self.images_done,
        }
