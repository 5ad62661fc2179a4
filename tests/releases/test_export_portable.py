"""The same bytes on another database, on another day and in another language."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings
from django.core.management import call_command

from croc_annotate.prompts.models import ContrastPair
from croc_annotate.releases.services import freeze_release
from tests.releases.test_export_crochum import ALL_FORMATS, tree
from tests.releases.world import ALL_REJECT, NOW, World, full_world

WORDS = [*ALL_FORMATS, "--tar", "--split", "dev=0.3", "--metadata", "jsonl"]
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


@pytest.mark.django_db
def test_sqlite_and_postgresql_give_the_same_bytes_on_another_day(tmp_path):
    build()
    call_command("export_crochum", "--out", str(tmp_path / "here"), *WORDS, "--workers", "1")
    env = {
        **os.environ, "DATABASE_URL": f"sqlite:///{tmp_path}/other.sqlite3", "REDIS_URL": "",
        "SECRET_KEY": settings.SECRET_KEY, "MEDIA_ROOT": str(tmp_path / "other-media"),
        "DJANGO_SETTINGS_MODULE": "croc_annotate.settings", "TZ": "Asia/Tokyo",
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-m", "tests.releases.other_database", str(tmp_path / "there")],
        cwd=ROOT, env=env, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    here, there = tree(tmp_path / "here"), tree(tmp_path / "there")
    different = {name for name in here.keys() | there.keys() if here.get(name) != there.get(name)}
    assert different == set()
