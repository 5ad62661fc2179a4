"""Label Studio from PyPI, in a virtual environment and databases of its own, as a peer to measure.

The environment (.bench/label-studio, 1 GB) and a template database with the migrations and the
tasks are made once and kept; each run works on a copy of the template, which is dropped again.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg

ROOT = Path(__file__).resolve().parents[2]
HOME = ROOT / ".bench" / "label-studio"
VERSION = "1.23.2"
INSTALL_SECONDS = 1200


class NotMeasuredError(RuntimeError):
    """Label Studio cannot be had here; the message says why."""


def install() -> Path:
    """The interpreter of the environment, which is made if it is not there."""
    python = HOME / "bin" / "python"
    if installed(python) == VERSION:
        return python
    print(f"installing label-studio {VERSION} into {HOME} (once, some minutes)", file=sys.stderr)
    venv.create(HOME, with_pip=True, clear=True)
    wanted = [f"label-studio=={VERSION}", "gunicorn"]
    try:
        subprocess.run(
            [python, "-m", "pip", "install", "-q", *wanted],
            check=True, capture_output=True, text=True, timeout=INSTALL_SECONDS,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise NotMeasuredError(f"pip took more than {INSTALL_SECONDS} s") from None
    except subprocess.CalledProcessError as error:
        last = [line for line in error.stderr.splitlines() if "ERROR" in line] or ["pip failed"]
        raise NotMeasuredError(last[-1][:200]) from None
    return python


def installed(python: Path) -> str:
    """The version in the environment; empty without one."""
    if not python.exists():
        return ""
    code = "import importlib.metadata as m, gunicorn; print(m.version('label-studio'))"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
    return done.stdout.strip()


def environment(base: str, database: str, folder: str) -> dict[str, str]:
    """Label Studio's settings: PostgreSQL, no telemetry, no look for newer versions."""
    parts = urlsplit(base)
    return {
        "PATH": os.environ["PATH"],
        "HOME": folder,
        "DJANGO_SETTINGS_MODULE": "core.settings.label_studio",
        "DJANGO_DB": "default",
        "POSTGRE_NAME": database,
        "POSTGRE_USER": parts.username or "postgres",
        "POSTGRE_PASSWORD": parts.password or "",
        "POSTGRE_HOST": parts.hostname or "127.0.0.1",
        "POSTGRE_PORT": str(parts.port or 5432),
        "LABEL_STUDIO_BASE_DATA_DIR": folder,
        "SECRET_KEY": "only-for-the-benchmark-0123456789",
        "COLLECT_ANALYTICS": "false",
        "LATEST_VERSION_CHECK": "false",
        "SENTRY_DSN": "",
        "FRONTEND_SENTRY_DSN": "",
        "DEBUG": "false",
        "LOG_LEVEL": "WARNING",
    }


@contextlib.contextmanager
def world(base: str, tasks: int, judgements: int) -> Iterator[dict[str, Any]]:
    """A database of its own with the wanted tasks, dropped afterwards; facts for the clients."""
    python = install()
    name = f"bench_label_studio_{os.getpid()}"
    with tempfile.TemporaryDirectory() as folder, psycopg.connect(base, autocommit=True) as admin:
        template, facts = _template(admin, base, python, folder, tasks, judgements)
        admin.execute(f'create database "{name}" template "{template}"')
        try:
            yield {**facts, "database": name, "environment": environment(base, name, folder)}
        finally:
            admin.execute(f'drop database if exists "{name}" with (force)')


def _template(
    admin: psycopg.Connection[Any],
    base: str,
    python: Path,
    folder: str,
    tasks: int,
    judgements: int,
) -> tuple[str, dict[str, Any]]:
    """The kept database with what `label_studio_world` told when it was made."""
    name = f"bench_label_studio_{VERSION.replace('.', '_')}_{tasks}_{judgements}"
    kept = HOME / f"{name}.json"
    there = admin.execute("select 1 from pg_database where datname = %s", [name]).fetchone()
    if there and kept.exists():
        return name, json.loads(kept.read_text())
    print(f"filling Label Studio with {tasks:,} tasks (once)", file=sys.stderr)
    admin.execute(f'drop database if exists "{name}" with (force)')
    admin.execute(f'create database "{name}"')
    settings = environment(base, name, folder)
    code = HOME / "lib" / f"python3.{sys.version_info.minor}" / "site-packages" / "label_studio"
    steps: list[list[str | Path]] = [
        [python, code / "manage.py", "migrate", "-v", "0"],
        # -P: else our own label_studio.py beside the script stands before theirs.
        [python, "-P", ROOT / "tests" / "benchmarks" / "label_studio_world.py", "--tasks", str(tasks),
         "--judgements", str(judgements)],
    ]  # fmt: skip
    for step in steps:
        done = subprocess.run(step, env=settings, capture_output=True, text=True, check=False)
        if done.returncode:
            admin.execute(f'drop database if exists "{name}" with (force)')
            raise NotMeasuredError(f"{step[1]}: {done.stderr.splitlines()[-1][:200]}")
    kept.write_text(done.stdout.splitlines()[-1])
    return name, json.loads(kept.read_text())


def command(port: int) -> list[str]:
    """gunicorn of the environment, as ours is started."""
    code = HOME / "lib" / f"python3.{sys.version_info.minor}" / "site-packages" / "label_studio"
    return [
        str(HOME / "bin" / "python"), "-m", "gunicorn", "core.wsgi", "--chdir", str(code),
        "--bind", f"127.0.0.1:{port}",
    ]  # fmt: skip
