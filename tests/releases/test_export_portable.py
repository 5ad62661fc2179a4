"""The same bytes on another database, on another day and in another language."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from datetime import UTC, date, datetime
from pathlib import Path

import pytest
from django.conf import settings
from django.core.management import call_command

from croc_annotate.prompts.models import ContrastPair
from croc_annotate.releases.services import freeze_release
from tests.releases.test_export_crochum import ALL_FORMATS, tree
from tests.releases.world import ALL_REJECT, NOW, World, full_world

EXPORTS = {
    "originals": [*ALL_FORMATS, "--tar", "--split", "dev=0.3", "--metadata", "jsonl"],
    "re-encoded": [*ALL_FORMATS, "--image-format", "webp", "--max-side", "16"],
    "png": ["--format", "crochum", "--tar", "--image-format", "png", "--max-side", "20"],
    "jpeg": ["--format", "imagefolder", "--image-format", "jpeg"],
}
CLOCK = Path(__file__).resolve().parents[1] / "deploy" / "clock_shim.c"
ROOT = Path(__file__).resolve().parents[2]


def build() -> World:
    """A world with every kind of row, ordered differently by different collations."""
    world = full_world(pairs=1, seeds=1, cross_rate=1.0, gold_rate=0.1)
    pair = ContrastPair.objects.get(slug="counting_1")
    for slug in ("counting_10", "counting_9", "counting_Z", "counting_a", "counting_B"):
        world.verified(world.pair(slug, prompt=f"{slug} äöü Ζζ 漢", contrast=f"{slug} not"))
    for verdicts in (
        ALL_REJECT,
        ("accept", "accept", "reject"),
        ("accept", "unsure", "accept"),
        ("reject",),
    ):
        world.judge(world.candidate(pair), verdicts)
    world.judge(world.candidates[0], ALL_REJECT, role="other")
    world.candidate(pair, state="failed")
    world.candidate(pair, state="requested")
    freeze_release(name="croc", campaign=world.campaign, now=NOW, rule="posterior", threshold=0.9,
                   notes="Two databases.")  # fmt: skip
    return world


@pytest.fixture
def moved_clock(tmp_path) -> dict[str, str]:
    """What moves the clock of a process for C code too, five years on, where it can be compiled."""
    compiler = shutil.which("cc")
    if compiler is None:
        return {}
    library, offset = tmp_path / "clock.so", tmp_path / "offset"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, CLOCK, "-ldl"], check=True)
    offset.write_text(str(5 * 365 * 86_400))
    return {"LD_PRELOAD": str(library), "CLOCK_SHIM_FILE": str(offset)}


@pytest.mark.django_db
def test_every_format_is_the_same_on_another_database_day_and_number_of_threads(
    tmp_path, moved_clock
):
    build()
    for name, words in EXPORTS.items():
        out = str(tmp_path / "here" / name)
        call_command("export_crochum", "--out", out, *words, "--workers", "1")
    env = {
        **os.environ, "DATABASE_URL": f"sqlite:///{tmp_path}/other.sqlite3", "REDIS_URL": "",
        "SECRET_KEY": settings.SECRET_KEY, "MEDIA_ROOT": str(tmp_path / "other-media"),
        "DJANGO_SETTINGS_MODULE": "croc_annotate.settings", "TZ": "Asia/Tokyo", **moved_clock,
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-m", "tests.releases.other_database", str(tmp_path / "there")],
        cwd=ROOT, env=env, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    today = datetime.now(UTC).date()
    days = json.loads(done.stdout.splitlines()[-1])
    assert all(abs((date.fromisoformat(day) - today).days) > 1 for day in days.values()), days
    if moved_clock:
        assert len(set(days.values())) == 2, "C code saw the day of today"
    here, there = tree(tmp_path / "here"), tree(tmp_path / "there")
    different = {name for name in here.keys() | there.keys() if here.get(name) != there.get(name)}
    assert different == set()
    assert {name.partition("/")[0] for name in here} == set(EXPORTS)
