"""A run that is killed for real (SIGKILL) goes on where it stopped."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from django.conf import settings as django_settings
from django.db import connection

from croc_annotate.benchmark.models import MetricRun, Score
from croc_annotate.benchmark.selectors import image_tasks, release_images
from croc_annotate.lib.hashing import sha256_text, stable_unit
from tests.benchmark.world import small_release

ROOT = Path(__file__).parents[2]
METRIC = "tests.benchmark.slow:Slow"
COMMAND = [sys.executable, "manage.py", "run_benchmark", "--metric", METRIC, "--batch-size", "1"]


def start(media, log):
    database = connection.settings_dict
    if connection.vendor == "postgresql":
        host, port = database["HOST"] or "127.0.0.1", database["PORT"] or 5432
        url = (
            f"postgres://{database['USER']}:{database['PASSWORD']}@{host}:{port}/{database['NAME']}"
        )
    else:
        url = f"sqlite:///{database['NAME']}"
    surroundings = {
        **os.environ,
        "DATABASE_URL": url,
        "MEDIA_ROOT": str(media),
        "SECRET_KEY": django_settings.SECRET_KEY,
        "SLOW_LOG": str(log),
        "REDIS_URL": "",
    }
    return subprocess.Popen(
        COMMAND, cwd=ROOT, env=surroundings, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


def kill_after(process, scores):
    """Wait until so many more scores are stored, then kill without warning."""
    wanted = Score.objects.count() + scores
    until = time.monotonic() + 300
    while Score.objects.count() < wanted and process.poll() is None:
        assert time.monotonic() < until, "the run stores nothing"
        time.sleep(0.01)
    process.kill()
    process.wait()


def in_one_go(release):
    """The table that a run without any kill stores."""
    return {
        (task.sha256, sha256_text(text), stable_unit(task.sha256, text))
        for task in image_tasks(release_images(release))
        for text in task.texts
    }


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("kills", [1, pytest.param(10, marks=pytest.mark.soak)])
def test_killed_and_resumed_it_gives_the_table_of_a_run_in_one_go(settings, tmp_path, kills):
    release = small_release(pairs=6, images=4)
    log = tmp_path / "log"
    places = random.Random(kills)
    for _ in range(kills):
        kill_after(start(settings.MEDIA_ROOT, log), places.randrange(1, 9))
    assert MetricRun.objects.get().state == "running"
    last = start(settings.MEDIA_ROOT, log)
    assert last.wait(timeout=300) == 0
    assert MetricRun.objects.get().state == "done"
    resumed = set(Score.objects.values_list("image_sha256", "text_sha256", "value"))
    assert resumed == in_one_go(release)

    # What was stored was not computed again: only the batch in flight at a kill may be.
    computed = Counter(log.read_text().split())
    again = sum(count - 1 for count in computed.values())
    assert again <= kills
