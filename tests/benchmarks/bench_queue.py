"""Handing out and taking back items: cycles per second and waiting times under load.

80,000 candidates with 50,000 judgements on PostgreSQL, gunicorn on this machine's cores, load
from another process on the same cores. A cycle is one item handed out and answered. Each size
of batch is measured: 1 (two requests a cycle) and 6 (as the page works: it keeps some ahead).
Peers: Label Studio 1.23 on PostgreSQL with 24,000 items, and the research code's study server;
their figures were recorded earlier on two cores like these and are not taken again here.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg

from tests.benchmarks.frame import Row
from tests.services import free_port

ROOT = Path(__file__).resolve().parents[2]
BATCHES = (1, 6)
CLIENTS = (1, 16, 64)
# Recorded on two cores: cycles per second, p99 of `next` and of `submit` in ms. 16 users is the
# most that was measured; at 64 it can only be slower.
LABEL_STUDIO = {1: (4.2, 172, 128), 16: (7.9, 1425, 1649), 64: (7.9, 1425, 1649)}
STUDY_SERVER = {1: 180.0, 16: 193.0, 64: 185.0}


def run(quick: bool) -> list[Row]:
    """Load at 1, 16 and 64 clients, then growth from 8,000 to 800,000 candidates."""
    seconds = 4.0 if quick else 10.0
    rows: list[Row] = []
    with world(80_000, 50_000) as (url, facts), server(url) as port:
        measure(port, facts, clients=4, batch=6, seconds=2)  # warm
        for batch in BATCHES:
            for clients in CLIENTS:
                report = measure(port, facts, clients=clients, batch=batch, seconds=seconds)
                rows.append(load_row(report, facts["items"]))
    sizes = (8_000, 80_000) if quick else (8_000, 80_000, 800_000)
    rows += growth_rows([grow(size, seconds) for size in sizes])
    return rows


def load_row(report: dict[str, Any], items: int) -> Row:
    """One level of load beside the peers."""
    clients = report["clients"]
    peer, next_ms, submit_ms = LABEL_STUDIO[clients]
    claim, answers = report["claim"], report["answers"]
    note = (
        f"claim p50/p95/p99 {claim['p50']:.0f}/{claim['p95']:.0f}/{claim['p99']:.0f} ms "
        f"(Label Studio p99 {next_ms}), answers {answers['p50']:.0f}/{answers['p95']:.0f}/"
        f"{answers['p99']:.0f} ms (p99 {submit_ms}); processor ms a cycle: web "
        f"{report['cpu_ms'][0]:.1f}, database {report['cpu_ms'][1]:.1f}; study server "
        f"{STUDY_SERVER[clients]:.0f} items/s; {report['errors']} errors; peer as recorded"
    )
    return Row(
        f"queue {clients} clients, {report['batch']} an item request",
        report["cycles_per_s"],
        peer,
        unit="cycles/s",
        ratio=report["cycles_per_s"] / peer,
        n=items,
        note=note,
    )


def grow(size: int, seconds: float) -> dict[str, Any]:
    """The same load on a campaign of another size."""
    with world(size, min(50_000, size)) as (url, facts), server(url) as port:
        measure(port, facts, clients=4, batch=6, seconds=2)
        report = measure(port, facts, clients=16, batch=6, seconds=seconds)
    return {**report, "size": size}


def growth_rows(reports: list[dict[str, Any]]) -> list[Row]:
    """Cycles per second by number of candidates; the ratio is to the smallest campaign."""
    first = reports[0]["cycles_per_s"]
    return [
        Row(
            f"queue growth, {report['size']:,} candidates",
            report["cycles_per_s"],
            first,
            unit="cycles/s",
            ratio=report["cycles_per_s"] / first,
            n=report["size"],
            note=f"16 clients; claim p99 {report['claim']['p99']:.0f} ms, "
            f"answers p99 {report['answers']['p99']:.0f} ms",
        )
        for report in reports
    ]


def environment(url: str) -> dict[str, str]:
    """A real deployment's settings, on loopback."""
    return {
        **os.environ,
        "DATABASE_URL": url,
        "REDIS_URL": "",
        "SECRET_KEY": "only-for-the-benchmark-0123456789-0123456789",
        "DJANGO_SETTINGS_MODULE": "croc_annotate.settings",
        "LOG_LEVEL": "WARNING",
        "PYTHONPATH": str(ROOT),
    }


@contextlib.contextmanager
def world(candidates: int, judgements: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """A database of its own with the wanted rows; dropped afterwards."""
    base = os.environ.get("TEST_DATABASE_URL", "postgresql://postgres@127.0.0.1:5432/postgres")
    name = f"bench_queue_{os.getpid()}_{candidates}"
    with psycopg.connect(base, autocommit=True) as admin:
        admin.execute(f'drop database if exists "{name}" with (force)')
        admin.execute(f'create database "{name}"')
        url = base.rsplit("/", 1)[0] + "/" + name
        try:
            made = subprocess.run(
                [sys.executable, "-m", "tests.benchmarks.queue_world", "--candidates",
                 str(candidates), "--judgements", str(judgements)],
                env=environment(url), cwd=ROOT, check=True, capture_output=True, text=True,
            )  # fmt: skip
            yield url, {**json.loads(made.stdout.splitlines()[-1]), "database": name}
        finally:
            admin.execute(f'drop database if exists "{name}" with (force)')


@contextlib.contextmanager
def server(url: str) -> Iterator[int]:
    """gunicorn as it is deployed, one process a core."""
    port = free_port()
    workers = len(os.sched_getaffinity(0))
    process = subprocess.Popen(
        [sys.executable, "-m", "gunicorn", "croc_annotate.wsgi", "--bind", f"127.0.0.1:{port}",
         "--workers", str(workers), "--threads", "8", "--log-level", "warning"],
        env=environment(url), cwd=ROOT,
    )  # fmt: skip
    try:
        wait_for(port)
        yield port
    finally:
        process.terminate()
        process.wait(timeout=30)


def wait_for(port: int) -> None:
    """Until the server answers."""
    for _ in range(200):
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/accounts/login/", timeout=2)
        except urllib.error.HTTPError:
            return
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise RuntimeError("the server did not start")


def measure(
    port: int, facts: dict[str, Any], *, clients: int, batch: int, seconds: float
) -> dict[str, Any]:
    """One load run by a process of its own."""
    before = processor_seconds(port, facts["database"])
    done = subprocess.run(
        [sys.executable, "-m", "tests.benchmarks.queue_client", "--port", str(port), "--slug",
         facts["slug"], "--batch", str(batch), "--seconds", str(seconds)],
        input=json.dumps(facts["sessions"][:clients]), capture_output=True, text=True, cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)}, check=True,
    )  # fmt: skip
    report: dict[str, Any] = json.loads(done.stdout)
    after = processor_seconds(port, facts["database"])
    report["cpu_ms"] = [
        1000 * (a - b) / max(report["items"], 1) for a, b in zip(after, before, strict=True)
    ]
    return report


def processor_seconds(port: int, database: str) -> tuple[float, float]:
    """Seconds of processor time of our web processes and of PostgreSQL's for our database.

    They tell what a cycle costs even when other programs take most of the machine.
    """
    tick = os.sysconf("SC_CLK_TCK")
    web = base = 0.0
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            numbers = (folder / "stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue  # it ended while we looked
        seconds = (int(numbers[11]) + int(numbers[12])) / tick
        web += seconds if f"127.0.0.1:{port} " in words and "gunicorn" in words else 0
        base += seconds if f" {database} " in words and "postgres" in words else 0
    return web, base
