"""The client of the documentation, run word by word against a real server."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from croc_annotate.annotation.models import Judgement
from tests.api.world import make_api_world

SOURCE = Path(__file__).resolve().parents[2] / "docs" / "examples" / "client.py"
pytestmark = pytest.mark.django_db(transaction=True)


def load():
    spec = importlib.util.spec_from_file_location("docs_client", SOURCE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def world(transactional_db):
    return make_api_world()


def test_the_example_lists_reads_and_downloads(live_server, world, tmp_path):
    target = tmp_path / "croc.tar"
    done = subprocess.run(
        [sys.executable, str(SOURCE), "croc", str(target)],
        env={**os.environ, "CROC_URL": live_server.url, "CROC_TOKEN": world.tokens["admin, read"]},
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "judged closed 0" in done.stdout
    assert "Krippendorff α: 0." in done.stdout
    assert b"not a real archive" in target.read_bytes()


def test_the_example_answers_once_and_asks_for_nothing_twice(live_server, world):
    module = load()
    client = module.Client(live_server.url, world.tokens["annotator, judge"])
    result = client.judge_one(world.open.slug, "accept")
    assert result["status"] == "duplicate"
    assert Judgement.objects.filter(campaign=world.open).count() == 1
    with pytest.raises(RuntimeError, match="permission_denied: This token may not read"):
        client.get("campaigns/")
    reader = module.Client(live_server.url, world.tokens["admin, read"])
    first = reader.get("campaigns/judged/agreement/")
    assert reader.get("campaigns/judged/agreement/") is first  # 304: the kept document


def test_the_page_shows_the_example_as_it_is():
    page = (SOURCE.parents[1] / "reference" / "api.md").read_text()
    assert SOURCE.read_text().strip() in page
