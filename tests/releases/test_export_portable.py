"""The same bytes on another database and day, and nobody's name in any of them."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from django.conf import settings
from django.core.management import call_command

from croc_annotate.accounts.models import PlatformIdentity
from croc_annotate.agreement.models import Adjudication
from croc_annotate.annotation.models import Judgement
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


SECRETS = (
    "ada.lovelace", "Lovelace", "5f3e9c1b7d2a", "prolific-session", "grandmother", "call me at",
    "reviewer-secret", "Ada Augusta",
)  # fmt: skip


def _personal() -> World:
    world = full_world(pairs=1, seeds=1, title="Study of ada.lovelace (Lovelace)")
    for number, person in enumerate(world.people):
        person.username = f"ada.lovelace{number}"
        person.email = f"ada.lovelace{number}@example.org"
        person.first_name, person.last_name = "Ada Augusta", "Lovelace"
        person.display_name = "Lovelace A."
        person.save()
        PlatformIdentity.objects.create(user=person, external_id=f"5f3e9c1b7d2a{number}")
    Judgement.objects.update(
        remark="as my grandmother said, call me at 555", reason="prolific-session", source="web"
    )
    Adjudication.objects.create(
        campaign=world.campaign, candidate=world.candidates[0], reviewer=world.people[0],
        verdict="accept", reason="reviewer-secret", note="Lovelace says so", created_at=NOW,
    )  # fmt: skip
    freeze_release(name="croc", campaign=world.campaign, now=NOW, actor=world.people[1])
    return world


def _readable(path: Path) -> bytes:
    """A file's bytes, and what compression would hide in them."""
    data = path.read_bytes()
    if path.suffix == ".gz":
        data += gzip.decompress(data)
    if path.suffix == ".parquet":
        table = pq.read_table(path)
        plain = table.drop_columns(["image"]) if "image" in table.column_names else table
        data += json.dumps(plain.to_pylist(), ensure_ascii=False, default=str).encode()
        data += str(pq.read_schema(path).metadata).encode()
    return data


@pytest.mark.django_db
def test_no_file_holds_anything_personal(tmp_path):
    world = _personal()
    out = tmp_path / "out"
    call_command("export_crochum", "--out", str(out), *ALL_FORMATS, "--tar")
    machine = (
        str(tmp_path),
        str(settings.MEDIA_ROOT),
        os.uname().nodename,
        world.candidates[0].key,
    )
    found = {}
    for path in out.rglob("*"):
        if path.is_file():
            data = _readable(path)
            for secret in (*SECRETS, *machine):
                if (
                    secret.encode() in data
                    or secret.encode() in str(path.relative_to(out)).encode()
                ):
                    found[str(path.relative_to(out))] = secret
    assert found == {}


@pytest.mark.django_db
def test_pseudonyms_need_the_key(tmp_path, settings):
    world = _personal()
    first = set(world.campaign.releases.get().annotations.values_list("annotator", flat=True))
    settings.PSEUDONYM_KEY = b"another key"
    other = freeze_release(name="other", campaign=world.campaign)
    second = set(other.annotations.values_list("annotator", flat=True))
    assert len(first) == len(second) == 3
    assert not first & second
