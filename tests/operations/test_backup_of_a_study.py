"""A whole study from SQLite to PostgreSQL and back: every table, every row, every image."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest

from tests.factories import png_bytes
from tests.test_migrations import ROOT

IMAGES = ("original.png", "display.png", "preview.webp")


@dataclass
class Installation:
    """A database and a folder of images."""

    url: str
    media: Path

    def run(self, *command: str) -> None:
        run = subprocess.run(
            [sys.executable, *command], cwd=ROOT, capture_output=True, text=True, check=False,
            env=os.environ | {
                "DATABASE_URL": self.url, "MEDIA_ROOT": str(self.media), "REDIS_URL": "",
                "DJANGO_SETTINGS_MODULE": "croc_annotate.settings",
            },
        )  # fmt: skip
        assert run.returncode == 0, run.stdout + run.stderr


@pytest.fixture
def empty_postgresql():
    server = os.environ["DATABASE_URL"]
    if not server.startswith("postgres"):
        pytest.skip("no PostgreSQL here")
    name = f"test_croc_restore_{os.getpid()}"
    with psycopg.connect(server, autocommit=True) as admin:
        admin.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
        admin.execute(f'CREATE DATABASE "{name}"')
        yield urlsplit(server)._replace(path=f"/{name}").geturl()
        admin.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


def contents(path: Path) -> dict[str, bytes]:
    with tarfile.open(path) as archive:
        return {m.name: archive.extractfile(m).read() for m in archive if m.isfile()}


def canonical(data: bytes) -> object:
    """Rows as values: databases keep the keys of JSON in different orders."""
    try:
        rows = [json.loads(line) for line in data.splitlines()]
    except ValueError:  # an image, or the manifest
        return data if not data.startswith(b"{") else sorted(json.loads(data)["tables"])
    return rows


@pytest.mark.timeout(600)
def test_a_study_goes_from_sqlite_to_postgresql_and_back(empty_postgresql, tmp_path: Path):
    first = Installation(f"sqlite:///{tmp_path}/a.sqlite3", tmp_path / "a")
    second = Installation(empty_postgresql, tmp_path / "b")
    third = Installation(f"sqlite:///{tmp_path}/c.sqlite3", tmp_path / "c")
    first.media.mkdir()
    for name in IMAGES:
        (first.media / name).write_bytes(png_bytes())
    first.run("-m", "tests.upgrades.make_fixture", str(tmp_path / "unused.tar.gz"))
    first.run("manage.py", "backup", str(tmp_path / "1.tar"), "--with-images")
    for number, place in ((1, second), (2, third)):
        place.run("manage.py", "migrate", "-v0")
        place.run("manage.py", "restore", str(tmp_path / f"{number}.tar"))
        place.run("manage.py", "backup", str(tmp_path / f"{number + 1}.tar"), "--with-images")
    one, two, three = (contents(tmp_path / f"{number}.tar") for number in (1, 2, 3))
    assert set(one) == set(two) == set(three)
    rows = [{name: canonical(data) for name, data in each.items()} for each in (one, two, three)]
    different = [name for name in one if not rows[0][name] == rows[1][name] == rows[2][name]]
    assert different == []
    # The study has rows in every table but those that nothing fills.
    empty = {name for name, data in one.items() if not data}
    assert empty <= {"rows/auth.group.jsonl", "rows/accounts.user_groups.jsonl"}
    for name in IMAGES:
        assert (third.media / name).read_bytes() == (first.media / name).read_bytes()
    # Releases are sealed there as they were here: the database refuses to change them.
    with psycopg.connect(empty_postgresql) as connection, pytest.raises(psycopg.Error):
        connection.execute("update releases_release set name = 'other'")
    with psycopg.connect(empty_postgresql) as connection, pytest.raises(psycopg.Error):
        connection.execute("delete from accounts_auditevent")
    manifest = json.loads(one["manifest.json"])
    assert sum(table["rows"] for table in manifest["tables"].values()) > 100
