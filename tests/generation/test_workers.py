"""Whatever dies, is redelivered or runs twice: exactly one candidate, and its files are right."""

from __future__ import annotations

import io
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from django.db import connection
from PIL import Image

from croc_annotate.candidates.models import Candidate, Worker
from croc_annotate.candidates.storage import read_file
from croc_annotate.lib.hashing import sha256_bytes
from tests import factories
from tests.generation import fakes
from tests.generation.real_worker import (
    ROOT,
    Proxy,
    RealWorker,
    database_url,
    environment,
    wait_until,
)
from tests.redis_server import RedisServer

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.field_case(46),
    pytest.mark.timeout(900),  # four processes start in turn: long on a busy machine only
    pytest.mark.skipif("connection.vendor != 'postgresql'", reason="needs PostgreSQL"),
]


class Site:
    """A broker, a media folder and workers of one test."""

    def __init__(self, folder: Path, media: Path) -> None:
        self.media, self.log = media, folder / "worker.log"
        (folder / "redis").mkdir()
        self.broker = RedisServer(folder=folder / "redis")
        self.broker.start()
        host, port = (
            connection.settings_dict["HOST"] or "127.0.0.1",
            connection.settings_dict["PORT"],
        )
        self.proxy = Proxy((host, int(port or 5432)))
        self.env = environment(
            broker=self.broker.url, media=media, lease=3, database=database_url(self.proxy.port)
        )
        self.workers: list[RealWorker] = []

    def worker(self) -> RealWorker:
        worker = RealWorker(self.env, self.log)
        self.workers.append(worker)
        worker.start()
        return worker

    def generate(self, *arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, "manage.py", "generate", *arguments],
            cwd=ROOT, env=self.env, capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    def wait(self, rendered: int, within: float = 240) -> None:
        wait_until(
            lambda: Candidate.objects.rendered().count() >= rendered,
            within=within, what=f"{rendered} images", log=self.log,
        )  # fmt: skip

    def close(self) -> None:
        for worker in self.workers:
            worker.kill()
        self.broker.kill()
        self.proxy.close()


@pytest.fixture
def site(tmp_path: Path, settings):
    made = Site(tmp_path, Path(settings.MEDIA_ROOT))
    yield made
    made.close()


def benchmark(pairs: int, **extra: object) -> None:
    for _ in range(pairs):
        factories.make_pair()
    factories.make_generator(
        "noise", pipeline=fakes.PATH, settings={"batch_size": 4, "extra": {"delay": 0.04, **extra}}
    )


def all_is_right(site: Site, expected: int) -> None:
    """Each once, none missing; files, hashes and pixels agree with the rows; nothing left over."""
    rows = list(Candidate.objects.select_related("pair"))
    assert len(rows) == expected == len({(r.pair_id, r.side, r.seed) for r in rows})
    assert {row.state for row in rows} == {"rendered"}
    for row in rows:
        data = read_file(row.image)
        assert sha256_bytes(data) == row.sha256
        drawn = fakes.noise(row.generation_text, row.seed)
        assert Image.open(io.BytesIO(data)).tobytes() == drawn.tobytes()
    named = {name for row in rows for name in (row.image, row.display, row.preview)}

    def there() -> set[str]:
        return {str(p.relative_to(site.media)) for p in site.media.rglob("*") if p.is_file()}

    # A worker that came second may be about to take its own files away.
    wait_until(lambda: there() == named, within=60, what=f"only {len(named)} files", log=site.log)


def test_a_worker_killed_three_times_in_the_middle_of_a_batch_loses_nothing(site: Site) -> None:
    benchmark(2, delay=0.1)  # so that none can be done between a look and the kill
    assert "4 tasks enqueued" in site.generate("--queue", "--seeds", "1-12")
    for images in (3, 13, 23):
        worker = site.worker()
        site.wait(images)
        worker.kill()
        assert Candidate.objects.requested().exists()
    site.worker()
    site.wait(48)
    all_is_right(site, 48)


def test_three_workers_that_die_between_two_images_of_a_batch_are_made_good(site: Site) -> None:
    # One image, then batches of four: the seventh is inside a batch.
    benchmark(1, kill_after=7)
    site.generate("--queue", "--seeds", "1-16")
    for _ in range(3):
        worker = site.worker()
        wait_until(
            lambda w=worker: w.process.poll() is not None, within=240, what="its end", log=site.log
        )
        assert worker.process.returncode == -signal.SIGKILL
        held = Candidate.objects.requested().filter(claimed_until__isnull=False)
        assert held.exists()  # it died with a batch in its hands
    generator = Candidate.objects.first().generator
    generator.settings["extra"] = {}
    generator.save()
    site.worker()
    site.wait(32)
    all_is_right(site, 32)


@pytest.mark.parametrize("forgets", [False, True], ids=["with its data", "without its data"])
def test_a_broker_restarted_in_the_middle_loses_nothing(site: Site, forgets: bool) -> None:
    benchmark(2)
    site.generate("--queue", "--seeds", "1-12")
    site.worker()
    site.wait(5)
    site.broker.kill()
    if forgets:
        for path in sorted(site.broker.folder.rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
    time.sleep(1)
    site.broker.start()
    site.wait(48)
    all_is_right(site, 48)


def test_a_database_that_is_away_for_a_while_loses_nothing(site: Site) -> None:
    benchmark(2)
    site.generate("--queue", "--seeds", "1-12")
    site.worker()
    site.wait(5)
    site.proxy.cut()
    time.sleep(4)
    site.proxy.join()
    site.wait(48)
    all_is_right(site, 48)


def test_two_workers_and_every_message_twice_make_each_image_once(site: Site) -> None:
    benchmark(2, delay=0.01)
    site.generate("--queue", "--seeds", "1-12")
    from generation.tasks import render_group

    groups = Candidate.objects.values_list("generator_id", "pair_id", "side").distinct()
    from celery import Celery

    sender = Celery(broker=site.broker.url)
    sender.conf.broker_transport_options = {"global_keyprefix": "workers:"}
    for group in [*groups, *groups]:
        sender.send_task(render_group.name, args=group, queue="gpu")
    sender.close()
    site.worker(), site.worker()
    site.wait(48)
    all_is_right(site, 48)


def test_sigterm_finishes_the_images_at_hand_and_leaves_the_rest_to_others(site: Site) -> None:
    benchmark(1, delay=0.2)
    site.generate("--queue", "--seeds", "1-24")
    worker = site.worker()
    site.wait(2)
    assert worker.stop() == 0
    left = Candidate.objects.requested()
    assert 0 < left.count() < 48
    assert not left.exclude(claimed_by="").exists()
    assert set(left.values_list("attempts", flat=True)) == {0}
    assert Worker.objects.get().stopped_at is not None
    generator = left.first().generator
    generator.settings["extra"] = {}
    generator.save()
    site.worker()
    site.wait(48)
    all_is_right(site, 48)


@pytest.mark.soak
@pytest.mark.timeout(900)
def test_a_long_run_through_kills_a_broken_broker_and_a_database_away(site: Site) -> None:
    benchmark(10)
    site.generate("--queue", "--seeds", "1-50")
    for round_ in range(6):
        worker, _ = site.worker(), site.worker()
        site.wait(90 * (round_ + 1), within=200)
        worker.kill()
        site.workers[-1].kill()
        if round_ % 2:
            site.broker.kill()
            time.sleep(3)
            site.broker.start()
        else:
            site.worker()
            site.proxy.cut()
            time.sleep(10)
            site.proxy.join()
    site.worker()
    site.wait(1000, within=400)
    all_is_right(site, 1000)
