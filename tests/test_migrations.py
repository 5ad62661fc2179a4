"""Upgrades from every release: no row and no value is lost, on either database."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest

from croc_annotate import __version__
from tests.upgrades.upgrade import read_fixture

ROOT = Path(__file__).resolve().parents[1]
FIXTURES = sorted((ROOT / "tests" / "data" / "upgrades").glob("*.tar.gz"))


def upgrade(fixture: Path, url: str, folder: Path) -> dict:
    run = subprocess.run(
        [sys.executable, "-m", "tests.upgrades.upgrade", str(fixture)],
        cwd=ROOT, capture_output=True, text=True, check=False,
        env=os.environ | {
            "DATABASE_URL": url, "MEDIA_ROOT": str(folder / "media"), "REDIS_URL": "",
            "DJANGO_SETTINGS_MODULE": "croc_annotate.settings",
        },
    )  # fmt: skip
    assert run.returncode == 0, run.stdout + run.stderr
    return json.loads(run.stdout.splitlines()[-1])


@pytest.fixture(params=["postgresql", "sqlite"])
def database(request, tmp_path: Path):
    """The address of an empty database of each kind."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/old.sqlite3"
        return
    server = os.environ["DATABASE_URL"]
    if not server.startswith("postgres"):
        pytest.skip("no PostgreSQL here")
    name = f"test_croc_upgrade_{os.getpid()}"
    with psycopg.connect(server, autocommit=True) as admin:
        admin.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
        admin.execute(f'CREATE DATABASE "{name}"')
        yield urlsplit(server)._replace(path=f"/{name}").geturl()
        admin.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


@pytest.mark.timeout(600)  # 20 s each where nothing else runs
@pytest.mark.parametrize("fixture", FIXTURES, ids=lambda path: path.name)
def test_rows_of_an_old_release_come_through_whole_and_back(fixture, database, tmp_path):
    report = upgrade(fixture, database, tmp_path)
    assert report["loaded"] > 100
    assert report["before"] == []
    assert report["after"] == []
    assert report["broken_seals"] == []
    assert report["waiting"] == 0
    assert report["back"] == []


@pytest.mark.parametrize("fixture", FIXTURES, ids=lambda path: path.name)
def test_a_fixture_has_rows_in_every_table_that_studies_fill(fixture):
    _, rows = read_fixture(str(fixture))
    empty = {label for label, found in rows.items() if not found}
    assert empty <= {"auth.group", "accounts.user_groups"}


def test_every_release_has_left_its_rows():
    """CHANGELOG.md names the releases; the one that is being made needs none yet."""
    text = (ROOT / "CHANGELOG.md").read_text()
    released = set(re.findall(r"^## v?(\d+\.\d+\.\d+)", text, re.M)) - {__version__}
    kept = {path.name.removesuffix(".tar.gz") for path in FIXTURES}
    assert released <= kept
    assert kept, "no fixture at all"


@pytest.mark.django_db
def test_models_and_migrations_agree():
    from django.core.management import call_command

    call_command("makemigrations", check=True, dry_run=True, verbosity=0)
