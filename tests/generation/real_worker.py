"""A real Celery worker over a real broker, in a process that a test may kill; a proxy to cut it off."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from django.db import connection

ROOT = Path(__file__).resolve().parents[2]


def database_url(port: int | None = None) -> str:
    """The test database as another process reaches it."""
    given = connection.settings_dict
    user = given["USER"] + (f":{given['PASSWORD']}" if given["PASSWORD"] else "")
    host = given["HOST"] or "127.0.0.1"
    return f"postgresql://{user}@{host}:{port or given['PORT'] or 5432}/{given['NAME']}"


def environment(*, broker: str, media: Path, lease: float, database: str) -> dict[str, str]:
    return {
        **os.environ,
        "DATABASE_URL": database,
        "REDIS_URL": broker,
        "REDIS_PREFIX": "workers:",
        "MEDIA_ROOT": str(media),
        "GENERATION_LEASE_SECONDS": str(lease),
        "PYTHONPATH": str(ROOT),
        "LOG_LEVEL": "WARNING",
    }


class RealWorker:
    """`celery worker -Q gpu -P solo` as an operator starts it."""

    def __init__(self, env: dict[str, str], log: Path) -> None:
        self.env, self.log = env, log
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        arguments = ["-A", "croc_annotate", "worker", "-Q", "gpu", "-P", "solo", "-l", "WARNING"]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "celery", *arguments, "--prefetch-multiplier", "1"],
                cwd=ROOT, env=self.env, stdout=log, stderr=log,
            )  # fmt: skip

    def kill(self) -> None:
        """As the kernel's memory killer or a power cut would."""
        self._end(signal.SIGKILL)

    def stop(self, timeout: float = 120) -> int:
        """As an operator does; returns the exit status."""
        return self._end(signal.SIGTERM, timeout)

    def _end(self, how: signal.Signals, timeout: float = 120) -> int:
        if self.process is None:
            return 0
        self.process.send_signal(how)
        status = self.process.wait(timeout=timeout)
        self.process = None
        return status


class Proxy:
    """A TCP relay to a server on loopback that the test may cut and join again."""

    def __init__(self, target: tuple[str, int]) -> None:
        self.target = target
        self._pipes: set[socket.socket] = set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._joined = threading.Event()
        self._joined.set()
        self.was_cut = threading.Event()
        self.cut_after: int | None = None  # bytes from the client after which it is cut once
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """Drop every connection and refuse new ones."""
        self._joined.clear()
        self.was_cut.set()
        for pipe in list(self._pipes):
            with suppress(OSError):
                pipe.shutdown(socket.SHUT_RDWR)

    def join(self) -> None:
        self._joined.set()

    def close(self) -> None:
        self.cut()
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                inside, _ = self._listener.accept()
            except OSError:
                return
            if not self._joined.is_set():
                inside.close()
                continue
            outside = socket.create_connection(self.target)
            for source, sink in ((inside, outside), (outside, inside)):
                threading.Thread(target=self._relay, args=(source, sink), daemon=True).start()

    def _count(self, sink: socket.socket, size: int) -> None:
        if self.cut_after is None or sink.getpeername() != self.target:
            return
        self.cut_after -= size
        if self.cut_after < 0:
            self.cut_after = None
            self.cut()

    def _relay(self, source: socket.socket, sink: socket.socket) -> None:
        self._pipes.add(source)
        if not self._joined.is_set():  # cut while it was being made
            self._close(source, sink)
        with suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)
                self._count(sink, len(data))
        self._close(source, sink)
        self._pipes.discard(source)
        source.close()

    @staticmethod
    def _close(*ends: socket.socket) -> None:
        for end in ends:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


def wait_until(reached: Callable[[], bool], *, within: float, what: str, log: Path) -> None:
    """Look a few times a second; fail with the worker's last words."""
    deadline = time.monotonic() + within
    while not reached():
        if time.monotonic() > deadline:
            words = log.read_text(errors="replace")[-3000:] if log.exists() else ""
            raise AssertionError(f"not within {within} s: {what}\n{words}")
        time.sleep(0.2)
