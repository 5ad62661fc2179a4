"""What can fail in an installation, each as a function that returns when the cause is over."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path

import psycopg

from tests.deploy.study import Fault, Study


def none() -> Fault:
    """Nothing fails."""
    return Fault("none", lambda study: None)


def postgres_crashes(seconds: float) -> Fault:
    """PostgreSQL ends as in a power cut and is started again."""

    def act(study: Study) -> None:
        study.topology.postgres.crash()
        time.sleep(seconds)
        study.topology.postgres.start()

    return Fault(f"PostgreSQL crashes, away {seconds:g} s", act)


def redis_crashes(seconds: float) -> Fault:
    """Redis is killed and started again."""

    def act(study: Study) -> None:
        study.topology.redis.kill()
        time.sleep(seconds)
        study.topology.redis.start()

    return Fault(f"Redis crashes, away {seconds:g} s", act)


def web_worker_killed() -> Fault:
    """One gunicorn worker ends as the kernel ends it when memory is short."""

    def act(study: Study) -> None:
        master = study.topology.processes["web"].pid
        children = Path(f"/proc/{master}/task/{master}/children").read_text().split()
        os.kill(int(children[0]), signal.SIGKILL)

    return Fault("a web worker is killed", act)


def store_refuses(seconds: float) -> Fault:
    """Every reading and writing of images fails: the folder is a file, or the store is stopped."""

    def act(study: Study) -> None:
        topology = study.topology
        if topology.with_s3:
            os.killpg(topology.processes["store"].pid, signal.SIGSTOP)
            time.sleep(seconds)
            os.killpg(topology.processes["store"].pid, signal.SIGCONT)
            return
        away = topology.media.with_name("away")
        topology.media.rename(away)
        topology.media.write_bytes(b"")
        time.sleep(seconds)
        topology.media.unlink()
        away.rename(topology.media)

    return Fault(f"the store refuses for {seconds:g} s", act)


def fill(file: int, folder: Path) -> None:
    """Take all the room that there is; others may take of it meanwhile."""
    for _ in range(50):
        free = shutil.disk_usage(folder).free
        if not free:
            return
        with contextlib.suppress(OSError):  # no space: somebody else was quicker
            os.posix_fallocate(file, os.fstat(file).st_size, max(free // 2, 4096))


def disk_full(folder: Path, seconds: float) -> Fault:
    """The disk of PostgreSQL has not a byte left; then somebody makes room."""

    def act(study: Study) -> None:
        ballast = folder / "ballast"
        until = time.monotonic() + seconds
        with ballast.open("ab") as file:
            while time.monotonic() < until:
                fill(file.fileno(), folder)
                # Use up the log segments that were made in advance: hours of work do the same.
                with contextlib.suppress(psycopg.Error), study.database() as connection:
                    connection.execute("select pg_switch_wal()")
                time.sleep(0.05)
        ballast.unlink()

    return Fault(f"the database's disk is full for {seconds:g} s", act)


def clock_jumps(seconds: float, by: int = 3600) -> Fault:
    """The clock of web and workers goes ``by`` seconds ahead, and back again."""

    def act(study: Study) -> None:
        study.topology.set_clock(by)
        time.sleep(seconds)
        study.topology.set_clock(0)

    return Fault(f"the clock is {by / 3600:g} h ahead for {seconds:g} s", act)


Maker = Callable[[], Fault]
