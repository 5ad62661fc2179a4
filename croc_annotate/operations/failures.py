"""Background tasks that failed, and those that wait.

Workers are many and answer no scrape, so they count in the cache (Redis), where the web
processes read. A count that cannot be written is lost: monitoring must not stop a task.
"""

from __future__ import annotations

import contextlib
import logging
from typing import Any

import redis
from celery import current_app
from celery.signals import task_failure
from django.conf import settings
from django.core.cache import cache

logger = logging.getLogger("croc_annotate.tasks")
QUEUES = ("web", "gpu")


def _key(task: str) -> str:
    return f"task-failures:{task}"


@task_failure.connect
def count_failure(sender: Any = None, **_: Any) -> None:
    """Count a task that ended in an error (after its last retry)."""
    name = str(getattr(sender, "name", "unknown"))
    logger.error("A task failed", extra={"task": name})
    with contextlib.suppress(redis.exceptions.RedisError):
        cache.add(_key(name), 0, timeout=None)
        cache.incr(_key(name))


def task_failures() -> dict[str, int]:
    """Failures of each of our tasks since the cache was made; nothing without it."""
    names = [name for name in current_app.tasks if not name.startswith("celery.")]
    try:
        found = cache.get_many([_key(name) for name in names])
    except redis.exceptions.RedisError:
        return {}
    return {name: found.get(_key(name), 0) for name in names}


def tasks_waiting() -> dict[str, int]:
    """Messages in each queue of the broker; nothing without one."""
    if not settings.REDIS_URL:
        return {}
    prefix = str(settings.CELERY_BROKER_TRANSPORT_OPTIONS["global_keyprefix"])
    try:
        with redis.Redis.from_url(
            settings.REDIS_URL, socket_connect_timeout=3, socket_timeout=3
        ) as broker:
            return {queue: int(broker.llen(prefix + queue)) for queue in QUEUES}
    except redis.exceptions.RedisError:
        return {}
