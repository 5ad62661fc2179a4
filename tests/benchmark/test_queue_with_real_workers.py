"""`run_benchmark --queue` with a real Celery worker over a real Redis, in processes that are killed."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from celery import Celery
from django.conf import settings as django_settings
from django.db import connection

from croc_annotate.benchmark.models import MetricRun, PreparedResult, Score
from croc_annotate.benchmark.tasks import prepare_board, take_up_runs
from tests.benchmark.test_killed_run import METRIC, in_one_go
from tests.benchmark.world import small_release
from tests.generation.real_worker import RealWorker, database_url, environment, wait_until
from tests.redis_server import RedisServer

ROOT = Path(__file__).parents[2]
pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.timeout(900),  # four processes start in turn: long on a busy machine only
    pytest.mark.skipif(connection.vendor != "postgresql", reason="needs PostgreSQL"),
]


class Site:
    """A broker, workers, and what an operator and the clock send."""

    def __init__(self, folder: Path, media: Path) -> None:
        self.log, self.scored = folder / "worker.log", folder / "scored"
        (folder / "redis").mkdir()
        self.broker = RedisServer(folder=folder / "redis")
        self.broker.start()
        self.env = {
            **environment(
                broker=self.broker.url, media=media, lease=2, database=database_url()
            ),
            "SLOW_LOG": str(self.scored),
            "SECRET_KEY": django_settings.SECRET_KEY,
        }  # fmt: skip
        self.workers: list[RealWorker] = []

    def worker(self) -> RealWorker:
        worker = RealWorker(self.env, self.log)
        self.workers.append(worker)
        worker.start()
        return worker

    def command(self, *arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=ROOT, env=self.env, capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    def send(self, name: str, *args: object) -> None:
        """A message as `celery beat` sends it, to the queue that the test's worker reads."""
        with Celery(broker=self.broker.url) as sender:
            sender.conf.broker_transport_options = {"global_keyprefix": "workers:"}
            sender.send_task(name, args=args, queue="gpu")

    def wait(self, reached, *, within: float = 240, what: str) -> None:
        wait_until(reached, within=within, what=what, log=self.log)

    def close(self) -> None:
        for worker in self.workers:
            worker.kill()
        self.broker.kill()


@pytest.fixture
def site(tmp_path, settings):
    made = Site(tmp_path, Path(settings.MEDIA_ROOT))
    yield made
    made.close()


def stored():
    return set(Score.objects.values_list("image_sha256", "text_sha256", "value"))


def state() -> str:
    return MetricRun.objects.get().state


def test_a_real_worker_stores_the_scores_of_a_run_in_this_process(site):
    """`random` and the exported model (real files, real inference) through both ways."""
    release = small_release(pairs=3, images=2)
    metrics = ("--metric", "random", "--metric", "onnx-dual-encoder")
    site.command("run_benchmark", *metrics, "--here")
    here = stored()
    MetricRun.objects.all().delete()
    Score.objects.all().delete()
    PreparedResult.objects.all().delete()
    assert "Queued" in site.command("run_benchmark", *metrics, "--queue")
    site.worker()
    site.wait(lambda: not MetricRun.objects.exclude(state="done").exists(), what="both runs done")
    assert stored() == here
    assert len(here) == 2 * 12 * 2
    run = MetricRun.objects.get(metric__name="onnx-dual-encoder")
    assert run.timing["images"] == 12
    assert run.environment["noise_floor"] is not None
    # The page's table is made by the workers of the other queue; here they share one.
    site.send(prepare_board.name, release.pk)
    site.wait(PreparedResult.objects.filter(name="board").exists, what="the kept leaderboard")


@pytest.mark.parametrize(
    "kills", [2, pytest.param(10, marks=[pytest.mark.soak, pytest.mark.timeout(1200)])]
)
def test_workers_killed_in_the_middle_of_a_range_leave_the_scores_of_a_run_in_one_go(site, kills):
    release = small_release(pairs=kills * 3, images=4)
    site.command("run_benchmark", "--metric", METRIC, "--batch-size", "1", "--queue")
    places = random.Random(kills)
    for _ in range(kills):
        wanted = Score.objects.count() + places.randrange(2, 16)
        worker = site.worker()
        site.send(take_up_runs.name)
        site.wait(lambda n=wanted: Score.objects.count() >= n, what=f"{wanted} scores")
        worker.kill()
        assert state() == "running"
    site.worker()

    def the_clock_rings() -> bool:
        # Every five seconds: what waits in the queue that it looks at would be its own messages.
        if time.monotonic() > rung[-1] + 5:
            rung.append(time.monotonic())
            site.send(take_up_runs.name)
        return state() == "done"

    rung = [0.0]
    site.wait(the_clock_rings, what="the run taken up")
    assert stored() == in_one_go(release)
    # What was stored was not computed again: only the batch in flight at a kill may be.
    computed = Counter(site.scored.read_text().split())
    assert sum(count - 1 for count in computed.values()) <= kills


def test_two_workers_share_a_run_and_score_nothing_twice(site):
    release = small_release(pairs=4, images=4)
    site.command("run_benchmark", "--metric", METRIC, "--batch-size", "1", "--queue")
    site.worker(), site.worker()
    site.wait(lambda: state() == "done", what="the run done")
    assert stored() == in_one_go(release)
    assert set(Counter(site.scored.read_text().split()).values()) == {1}
