"""The whole installation as processes: people judge through nginx while parts of it fail."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.deploy.topology import ROOT, Topology, find_nginx
from tests.factories import png_bytes

pytestmark = [
    pytest.mark.skipif(find_nginx() is None, reason="no nginx: install Debian's nginx-light"),
    pytest.mark.skipif(
        not os.environ.get("DATABASE_URL", "").startswith("postgres"), reason="needs PostgreSQL"
    ),
]


@dataclass
class Study:
    """A running installation with a campaign and people who are signed in."""

    topology: Topology
    slug: str
    sessions: list[str]

    def database(self) -> psycopg.Connection[Any]:
        return psycopg.connect(self.topology.environment["DATABASE_URL"])

    def judge(self, *, seconds: float, think: float, people: int) -> subprocess.Popen[str]:
        """Start the browsers in a process of their own."""
        command = [
            sys.executable, "-m", "tests.deploy.study_load", "--port", str(self.topology.port),
            "--slug", self.slug, "--seconds", str(seconds), "--think", str(think),
        ]  # fmt: skip
        process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert process.stdin
        process.stdin.write(json.dumps(self.sessions[:people]))
        process.stdin.close()
        process.stdin = None
        return process

    def stored(self, keys: list[str]) -> tuple[int, int]:
        """How many of the keys are stored, and how many rows they have."""
        with self.database() as connection:
            row = connection.execute(
                "select count(distinct client_key), count(*) from annotation_judgement "
                "where client_key = any(%s::uuid[])",
                [keys],
            ).fetchone()
        assert row
        return row[0], row[1]

    def too_many(self) -> int:
        """Items with more counted judgements than wanted, or judged twice by one person."""
        with self.database() as connection:
            row = connection.execute(
                "select count(*) from (select item_id from annotation_judgement "
                "where superseded_at is null and not surplus and purpose = 'work' "
                "group by item_id having count(*) > 3 or count(distinct annotator_id) < count(*)) t"
            ).fetchone()
        assert row
        return int(row[0])


@contextlib.contextmanager
def running_study(
    folder: Path, *, candidates: int, judgements: int, people: int
) -> Iterator[Study]:
    topology = Topology(folder=folder, admin_url=os.environ["DATABASE_URL"])
    try:
        topology.prepare()
        made = subprocess.run(
            [sys.executable, "-m", "tests.benchmarks.queue_world", "--candidates", str(candidates),
             "--judgements", str(judgements), "--people", str(people)],
            cwd=ROOT, env={**topology.environment, "DJANGO_SETTINGS_MODULE": "croc_annotate.settings"},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert made.returncode == 0, made.stderr
        world = json.loads(made.stdout.splitlines()[-1])
        # Every display copy of that world has the storage name "d".
        (topology.media / "d").write_bytes(png_bytes(size=256))
        topology.start()
        yield Study(topology, world["slug"], world["sessions"])
    finally:
        topology.stop()


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Study]:
    folder = tmp_path_factory.mktemp("topology")
    with running_study(folder, candidates=2_000, judgements=600, people=8) as running:
        yield running


def finish(process: subprocess.Popen[str], *, timeout: float) -> dict[str, Any]:
    out, _ = process.communicate(timeout=timeout)
    assert process.returncode == 0
    report: dict[str, Any] = json.loads(out)
    return report


def judge_through(
    study: Study, fault: Callable[[], None], *, seconds: float, think: float, people: int
) -> dict[str, Any]:
    """Judge, let ``fault`` happen after a quarter of the time, and return what the people saw."""
    process = study.judge(seconds=seconds, think=think, people=people)
    timer = threading.Timer(seconds / 4, fault)
    timer.start()
    report = finish(process, timeout=seconds + 60)
    timer.join()
    keys = report.pop("keys")
    assert len(keys) > people, "nobody could judge"
    assert report["unsent"] == 0, report
    assert study.stored(keys) == (len(keys), len(keys)), report
    assert study.too_many() == 0
    return report


def quietly() -> None:
    """No fault."""


@pytest.mark.timeout(110)
def test_people_judge_through_nginx_without_an_error(study: Study):
    report = judge_through(study, quietly, seconds=4, think=0.1, people=8)
    assert report["failures"] == {}
    assert set(report["statuses"]) == {"stored"}


def fetch(study: Study, port: int, path: str) -> tuple[dict[str, str], bytes]:
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}{path}", headers={"Cookie": f"sessionid={study.sessions[0]}"}
    )
    with urllib.request.urlopen(request, timeout=10) as response:
        return dict(response.headers), response.read()


def test_image_bytes_come_from_nginx_not_from_python(study: Study):
    with study.database() as connection:
        row = connection.execute("select key from candidates_candidate limit 1").fetchone()
    assert row
    path = f"/i/{row[0]}"
    headers, body = fetch(study, study.topology.web_port, path)
    assert body == b""
    assert headers["X-Accel-Redirect"] == "/protected-media/d"
    headers, body = fetch(study, study.topology.port, path)
    assert "X-Accel-Redirect" not in headers
    assert body == (study.topology.media / "d").read_bytes()


def cut_database(study: Study, seconds: float) -> Callable[[], None]:
    """Cut all connections to the database and refuse new ones for a while."""

    def fault() -> None:
        name = study.topology.database
        with psycopg.connect(study.topology.admin_url, autocommit=True) as admin:
            admin.execute(f'ALTER DATABASE "{name}" WITH ALLOW_CONNECTIONS false')
            admin.execute(
                "select pg_terminate_backend(pid) from pg_stat_activity where datname = %s", [name]
            )
            time.sleep(seconds)
            admin.execute(f'ALTER DATABASE "{name}" WITH ALLOW_CONNECTIONS true')

    return fault


def restart_redis(study: Study, seconds: float) -> Callable[[], None]:
    def fault() -> None:
        study.topology.redis.kill()
        time.sleep(seconds)
        study.topology.redis.start()

    return fault


def kill_web_worker(study: Study) -> Callable[[], None]:
    """Kill one gunicorn worker as the kernel would when memory ends."""

    def fault() -> None:
        master = study.topology.processes["web"].pid
        children = Path(f"/proc/{master}/task/{master}/children").read_text().split()
        os.kill(int(children[0]), signal.SIGKILL)

    return fault


def lose_images(study: Study, seconds: float) -> Callable[[], None]:
    """The store refuses for a while."""

    def fault() -> None:
        media = study.topology.media
        away = media.with_name("away")
        media.rename(away)
        time.sleep(seconds)
        away.rename(media)

    return fault


@pytest.mark.timeout(110)
def test_a_killed_web_worker_loses_no_answer(study: Study):
    report = judge_through(study, kill_web_worker(study), seconds=5, think=0.1, people=6)
    assert report["trouble_seconds"] < 5


@pytest.mark.timeout(110)
def test_a_database_away_for_two_seconds_loses_no_answer(study: Study):
    report = judge_through(study, cut_database(study, 2), seconds=6, think=0.1, people=6)
    assert report["failures"], "the fault was not felt"


@pytest.mark.timeout(110)
def test_a_restarted_redis_loses_no_answer(study: Study):
    judge_through(study, restart_redis(study, 1), seconds=5, think=0.1, people=6)


@pytest.mark.timeout(110)
def test_a_store_that_refuses_loses_no_answer(study: Study):
    report = judge_through(study, lose_images(study, 1.5), seconds=5, think=0.1, people=6)
    assert report["failures"], "the fault was not felt"


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_a_hundred_people_for_five_minutes_and_every_fault(tmp_path: Path):
    faults: dict[str, Callable[[Study], Callable[[], None]]] = {
        "none": lambda _: quietly,
        "web worker killed": kill_web_worker,
        "database away 10 s": lambda s: cut_database(s, 10),
        "Redis restarted": lambda s: restart_redis(s, 2),
        "store refuses 30 s": lambda s: lose_images(s, 30),
    }
    with running_study(tmp_path, candidates=80_000, judgements=150_000, people=100) as study:
        for name, make in faults.items():
            seconds = 300 if name == "none" else 90
            report = judge_through(study, make(study), seconds=seconds, think=2.0, people=100)
            print(f"\n{name}: {json.dumps(report)}")
            if name == "none":
                assert report["failures"] == {}
