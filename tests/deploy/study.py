"""A running installation with a study of the wanted size, and people who judge through it."""

from __future__ import annotations

import contextlib
import io
import json
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import psycopg
from PIL import Image

from tests.deploy.topology import ROOT, Topology

LINE = re.compile(r"sent=(\d+) upstream=([\d, :-]+?) (\S+)$")


@dataclass
class Study:
    """A running installation with a campaign and people who are signed in."""

    topology: Topology
    slug: str
    sessions: list[str]
    loaded: int
    keys: list[str] = field(default_factory=list)

    def database(self) -> psycopg.Connection[Any]:
        return self.topology.postgres.connect("croc")

    def judge(self, *, seconds: float, think: float, people: int) -> subprocess.Popen[str]:
        """Start the browsers in a process of their own, and wait until they begin."""
        command = [
            sys.executable, "-m", "tests.deploy.study_load", "--port", str(self.topology.port),
            "--slug", self.slug, "--seconds", str(seconds), "--think", str(think),
        ]  # fmt: skip
        process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert process.stdin
        assert process.stdout
        process.stdin.write(json.dumps(self.sessions[:people]))
        process.stdin.close()
        process.stdin = None
        assert process.stdout.readline() == "judging\n"
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

    def answers_from_the_future(self) -> int:
        """Judgements stored with a time that lies half an hour or more ahead."""
        with self.database() as connection:
            row = connection.execute(
                "select count(*) from annotation_judgement "
                "where created_at > now() + interval '30 min'"
            ).fetchone()
        assert row
        return int(row[0])

    def odd_books(self) -> list[str]:
        """Where counters and rows of the queue differ.

        The judgements that were there from the start were written without leases.
        """
        lines = self.topology.manage("check_queue", may_fail=True).splitlines()
        found = [line for line in lines if line.startswith(f"{self.slug}: ")]
        return [line for line in found if not self._from_the_start(line)]

    def _from_the_start(self, line: str) -> bool:
        found = re.search(r"judgement (\d+): without a lease", line)
        return bool(found) and int(found[1]) <= self.loaded

    def image_traffic(self) -> tuple[int, int, int]:
        """Images sent by nginx: how many, their bytes, and the bytes that came from Python."""
        images = sent = python = 0
        for line in (self.topology.folder / "nginx" / "access.log").read_text().splitlines():
            found = LINE.search(line)
            if found and found[3].startswith("image/") and int(found[1]) > 1000:
                images += 1
                sent += int(found[1])
                # Of several upstreams the first is gunicorn, the others are the store.
                python += int(re.split(r"[,: ]+", found[2])[0])
        return images, sent, python


def noise_png(*, size: int) -> bytes:
    """An image that does not compress: 160² makes 77 kB."""
    picture = Image.fromarray(np.random.default_rng(1).integers(0, 256, (size, size, 3), np.uint8))
    out = io.BytesIO()
    picture.save(out, "PNG")
    return out.getvalue()


@contextlib.contextmanager
def running_study(
    topology: Topology, *, candidates: int, judgements: int, people: int, image_size: int = 160
) -> Iterator[Study]:
    """Start everything with a campaign of this size; end everything afterwards."""
    try:
        print(f"\nmaking a study of {candidates:,} candidates", flush=True)
        topology.prepare()
        made = subprocess.run(
            [sys.executable, "-m", "tests.benchmarks.queue_world", "--candidates", str(candidates),
             "--judgements", str(judgements), "--people", str(people)],
            cwd=ROOT, env={**topology.environment, "DJANGO_SETTINGS_MODULE": "croc_annotate.settings"},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert made.returncode == 0, made.stderr
        world = json.loads(made.stdout.splitlines()[-1])
        # All images of that world are one file.
        with topology.postgres.connect("croc") as connection:
            connection.execute("update candidates_candidate set display = 'd.png'")
            connection.execute("vacuum analyze candidates_candidate")
        topology.put_file("d.png", noise_png(size=image_size))
        topology.start()
        yield Study(topology, world["slug"], world["sessions"], loaded=judgements)
    finally:
        topology.stop()


@dataclass
class Fault:
    """Something that goes wrong. ``act`` returns when the cause is over."""

    name: str
    act: Callable[[Study], None]
    began: float = 0.0
    ended: float = 0.0

    def happen(self, study: Study, *, after: float) -> None:
        """Go wrong so many seconds from now, and note when."""
        time.sleep(after)
        self.began = time.perf_counter()
        self.act(study)
        self.ended = time.perf_counter()


def judge_through(
    study: Study, fault: Fault, *, seconds: float, think: float, people: int
) -> dict[str, Any]:
    """Judge, let ``fault`` happen after a quarter of the time, and return what the people saw.

    Whatever happened: every answer sent is stored once, no item got too many, the queue's books
    agree, and the site is ready by itself.
    """
    print(f"\n{people} people judge for {seconds:g} s; {fault.name}", flush=True)
    process = study.judge(seconds=seconds, think=think, people=people)
    try:
        with ThreadPoolExecutor(1) as pool:
            happening = pool.submit(fault.happen, study, after=seconds / 4)
            out, _ = process.communicate(timeout=seconds + 240)
            happening.result()  # a fault that could not happen is no proof
    finally:
        process.kill()  # nothing where it has ended
    assert process.returncode == 0
    report: dict[str, Any] = json.loads(out)
    keys = report.pop("keys")
    study.keys += keys
    assert len(keys) > people, "nobody could judge"
    assert report["unsent"] == 0, report
    assert study.stored(study.keys) == (len(study.keys), len(study.keys)), report
    assert study.too_many() == 0
    study.topology.wait_ready(seconds=120)
    assert study.odd_books() == []
    last = report["last_failure"]
    report["sent"] = len(keys)
    report["away"] = fault.ended - fault.began
    report["felt"] = max(0.0, last - fault.began) if last else 0.0
    report["back"] = max(0.0, last - fault.ended) if last else 0.0
    return report
