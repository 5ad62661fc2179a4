"""How much work waits at the broker."""

from __future__ import annotations

from typing import Any

from kombu.exceptions import ChannelError

from croc_annotate.celery import app


def queue_length(queue: str) -> int:
    """How many messages wait in a queue of Celery's; raises kombu's OperationalError."""
    with app.connection_for_read() as connection:
        connection.ensure_connection(max_retries=1, timeout=5)
        try:
            channel: Any = connection.default_channel
            declared = channel.queue_declare(queue, passive=True)
        except ChannelError:
            return 0  # Redis drops the key of an empty queue
    return int(declared.message_count)
