"""Handing out and taking back items: cycles per second and waiting times under load, beside Label Studio.

80,000 candidates with 50,000 judgements on PostgreSQL, gunicorn with the settings that we
deploy on this machine's cores, load from another process on the same cores. A cycle is one
item handed out and answered. Three ways of working are measured:

- *ready, 6*: the page as it is; a request brings answers and takes the next items home;
- *ready, 1*: the same with one item a request;
- *apart, 1*: one request for the next item, one for its answer.

Label Studio from PyPI has the same number of image items and judgements in the same PostgreSQL,
is served by the same gunicorn and driven by the same client, in the same run. Its page asks
for one task and sends one annotation at a time.
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

from tests.benchmarks import label_studio
from tests.benchmarks.frame import Row
from tests.services import free_port

ROOT = Path(__file__).resolve().parents[2]
CANDIDATES, JUDGEMENTS = 80_000, 50_000
CLIENTS = (1, 16, 64)
WAYS = (("ready", 6), ("ready", 1), ("page", 1))
NAMES = {"ready": "ready", "page": "apart"}
# What a person waits for: the next item, the answer's receipt, and both in turn (of six items at
# once, where six travel together).
WAITS = ("next", "answer", "cycle")
# Recorded earlier on two cores: cycles per second, p99 of next and of answer in ms; 24,000 items.
RECORDED = {1: (4.2, 172.0, 128.0), 16: (7.9, 1425.0, 1649.0), 64: (7.9, 1425.0, 1649.0)}
# The research code's study server, whole items per second.
STUDY_SERVER = {1: 180, 16: 193, 64: 185}

Report = dict[str, Any]


def run(quick: bool) -> list[Row]:
    """The peer, then our three ways at each number of clients, then growth."""
    seconds = 4.0 if quick else 12.0
    peers, why = peer_reports(12.0 if quick else 30.0)
    rows: list[Row] = []
    with world(CANDIDATES, JUDGEMENTS) as (url, facts), server(url) as port:
        warm(port, facts)
        for kind, batch in WAYS:
            for clients in CLIENTS:
                report = measure(
                    port, facts, kind=kind, clients=clients, batch=batch, seconds=seconds
                )
                rows += load_rows(report, peers.get(clients), why)
        grown = [{**grow_measure(port, facts, seconds), "size": CANDIDATES}]
    for size in (8_000, 800_000):
        with world(size, min(JUDGEMENTS, size)) as (url, facts), server(url) as port:
            warm(port, facts)
            grown.append({**grow_measure(port, facts, seconds), "size": size})
    return rows + growth_rows(sorted(grown, key=lambda report: report["size"]))


def peer_reports(seconds: float) -> tuple[dict[int, Report], str]:
    """Label Studio's reports by number of clients; none, and the reason, if it cannot be had."""
    try:
        with label_studio.world(base_url(), CANDIDATES, JUDGEMENTS) as facts:
            port = free_port()
            command = [*label_studio.command(port), *threads()]
            with served(command, facts["environment"], port, "/health"):
                facts = {**facts, "slug": str(facts["project"])}
                measure(port, facts, kind="label-studio", clients=4, batch=1, seconds=8)  # warm
                return {
                    clients: measure(
                        port, facts, kind="label-studio", clients=clients, batch=1, seconds=seconds
                    )
                    for clients in CLIENTS
                }, ""
    except label_studio.NotMeasuredError as error:
        print(f"Label Studio is not measured: {error}", file=sys.stderr)
        return {}, f"Label Studio as recorded earlier (24,000 items), not now: {error}; "


def load_rows(report: Report, peer: Report | None, why: str) -> list[Row]:
    """One level of load beside the peer: cycles, and the slowest hundredth of each request."""
    clients, name = report["clients"], f"{NAMES[report['kind']]}, {report['batch']} a request"
    cycles, *slowest = RECORDED[clients]
    if peer is not None:
        cycles = peer["cycles_per_s"]
        slowest = [peer[which]["p99"] for which in WAITS]
    web, base = report["cpu_ms"]
    rows = [
        Row(
            f"queue {clients} clients, {name}",
            report["cycles_per_s"],
            cycles,
            unit="cycles/s",
            ratio=report["cycles_per_s"] / cycles,
            n=report["items"],
            note=f"{why}study server {STUDY_SERVER[clients]} items/s; processor ms a cycle: web "
            f"{web:.1f}, database {base:.1f}, client {report['client_cpu_ms']:.1f}; "
            f"{report['errors']} errors{_errors(peer)}",
        )
    ]
    # The cycle's own p99 was not recorded: without the peer its row is left out.
    for which, theirs in zip(WAITS, slowest, strict=False):
        rows.append(
            Row(
                f"  p99 of {which}",
                report[which]["p99"],
                theirs,
                unit="ms",
                ratio=theirs / report[which]["p99"],
                n=report[which]["n"],
                note=f"p50/p95 {_times(report[which])}"
                + (f", Label Studio {_times(peer[which])} (n {peer[which]['n']})" if peer else ""),
            )
        )
    return rows


def _times(values: dict[str, float]) -> str:
    return f"{values['p50']:.0f}/{values['p95']:.0f} ms"


def _errors(peer: Report | None) -> str:
    return f", Label Studio {peer['errors']}" if peer else ""


def grow_measure(port: int, facts: Report, seconds: float) -> Report:
    """16 clients, one request for each item and its answer."""
    return measure(port, facts, kind="ready", clients=16, batch=1, seconds=seconds)


def growth_rows(reports: list[Report]) -> list[Row]:
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
            note=f"16 clients, ready, 1 a request; p50/p95 {_times(report['answer'])}, "
            f"p99 {report['answer']['p99']:.0f} ms; processor ms a cycle: web "
            f"{report['cpu_ms'][0]:.1f}, database {report['cpu_ms'][1]:.1f}",
        )
        for report in reports
    ]


def warm(port: int, facts: Report) -> None:
    """Caches, connections and prepared statements of both kinds of requests."""
    for kind in ("page", "ready"):
        for batch in (1, 6):
            measure(port, facts, kind=kind, clients=16, batch=batch, seconds=1)


# --- databases and servers -------------------------------------------------------------------


def base_url() -> str:
    """A database in which others can be created."""
    return os.environ.get("TEST_DATABASE_URL", "postgresql://postgres@127.0.0.1:5432/postgres")


def environment(url: str) -> dict[str, str]:
    """A real deployment's settings, on loopback; nobody is refused for being fast."""
    return {
        **os.environ,
        "DATABASE_URL": url,
        "REDIS_URL": "",
        "SECRET_KEY": "only-for-the-benchmark-0123456789-0123456789",
        "DJANGO_SETTINGS_MODULE": "croc_annotate.settings",
        "LOG_LEVEL": "WARNING",
        "RATE_LIMIT_PEOPLE": "100000000",
        "PYTHONPATH": str(ROOT),
    }


@contextlib.contextmanager
def world(candidates: int, judgements: int) -> Iterator[tuple[str, Report]]:
    """A database of its own with the wanted rows; dropped afterwards."""
    base = base_url()
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
    command = [
        sys.executable, "-m", "gunicorn", "croc_annotate.wsgi", "--config",
        "deploy/gunicorn.conf.py", "--bind", f"127.0.0.1:{port}", "--log-level", "warning",
    ]  # fmt: skip
    workers = {"WEB_WORKERS": str(len(os.sched_getaffinity(0)))}
    with served(command, {**environment(url), **workers}, port, "/accounts/login/"):
        yield port


def threads() -> list[str]:
    """The same processes and threads for a server that does not read our settings."""
    return [
        "--workers", str(len(os.sched_getaffinity(0))), "--threads", "8", "--worker-class",
        "gthread", "--keep-alive", "75", "--timeout", "120", "--log-level", "warning",
    ]  # fmt: skip


@contextlib.contextmanager
def served(command: list[str], settings: dict[str, str], port: int, path: str) -> Iterator[None]:
    """A server, from its first answer until the end of the block."""
    process = subprocess.Popen(command, env=settings, cwd=ROOT, stdout=subprocess.DEVNULL)
    try:
        wait_for(process, f"http://127.0.0.1:{port}{path}")
        yield
    finally:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=40)
        process.kill()
        process.wait()


def wait_for(process: subprocess.Popen[bytes], url: str) -> None:
    """Until the server answers."""
    for _ in range(1200):
        if process.poll() is not None:
            raise RuntimeError(f"the server ended with {process.returncode}")
        try:
            urllib.request.urlopen(url, timeout=10)
        except urllib.error.HTTPError:
            return
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise RuntimeError("the server did not start")


def measure(
    port: int, facts: Report, *, kind: str, clients: int, batch: int, seconds: float
) -> Report:
    """One load run by a process of its own."""
    before = processor_seconds(port, facts["database"])
    done = subprocess.run(
        [sys.executable, "-m", "tests.benchmarks.queue_client", "--kind", kind, "--port",
         str(port), "--place", facts["slug"], "--batch", str(batch), "--seconds", str(seconds)],
        input=json.dumps(facts["sessions"][:clients]), capture_output=True, text=True, cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)}, check=True,
    )  # fmt: skip
    report: Report = json.loads(done.stdout)
    after = processor_seconds(port, facts["database"])
    report["cpu_ms"] = [
        # What ended meanwhile (a database process whose connection was renewed) is not counted.
        1000 * sum(now - was.get(pid, 0.0) for pid, now in a.items()) / max(report["items"], 1)
        for a, was in zip(after, before, strict=True)
    ]
    return {**report, "kind": kind, "batch": batch}


def processor_seconds(port: int, database: str) -> tuple[dict[str, float], dict[str, float]]:
    """Seconds of processor time of each web process and each of PostgreSQL's for the database.

    They tell what a cycle costs even when other programs take most of the machine.
    """
    tick = os.sysconf("SC_CLK_TCK")
    web: dict[str, float] = {}
    base: dict[str, float] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            numbers = (folder / "stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue  # it ended while we looked
        seconds = (int(numbers[11]) + int(numbers[12])) / tick
        if f"127.0.0.1:{port} " in words and "gunicorn" in words:
            web[folder.name] = seconds
        if f" {database} " in words and "postgres" in words:
            base[folder.name] = seconds
    return web, base
