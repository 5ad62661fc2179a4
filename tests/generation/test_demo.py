"""The demo: one command from an empty database to a leaderboard, again and again."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from generation.demo.cast import CAST, Sight, Simulated, answer
from tests.factories import make_campaign, make_pair, make_user

# A run takes some 15 s of one core; a busy machine may need far longer.
pytestmark = pytest.mark.timeout(600)
PATIENCE = 280
ROOT = Path(__file__).resolve().parents[2]
COUNTED = (
    "annotation_judgement",
    "annotation_item",
    "candidates_candidate",
    "prompts_contrastpair",
    "accounts_user",
    "releases_release",
    "benchmark_score",
    "agreement_adjudication",
)


def start(folder: Path, *options: str) -> subprocess.Popen[str]:
    environment = {
        **os.environ,
        "DATABASE_URL": f"sqlite:///{folder / 'croc.sqlite3'}",
        "MEDIA_ROOT": str(folder / "media"),
        "REDIS_URL": "",
        "OMP_NUM_THREADS": "1",
        "PYTHONUNBUFFERED": "1",
    }
    command = [sys.executable, "manage.py", "demo", "--seeds", "1", *options]
    return subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def finish(process: subprocess.Popen[str], *, code: int = 0) -> str:
    """The output of a run that ends with this code: what it said, or why it failed."""
    try:
        out, err = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == code, err
    return err if code else out


def log_ins(out: str) -> list[str]:
    return [line for line in out.splitlines() if line.startswith("  demo-")]


def rows(folder: Path) -> dict[str, int]:
    with closing(sqlite3.connect(folder / "croc.sqlite3")) as base:
        return {t: base.execute(f"SELECT count(*) FROM {t}").fetchone()[0] for t in COUNTED}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The folder of a demo that was killed in the middle and then run to its end; what it said."""
    folder = tmp_path_factory.mktemp("demo")
    first = start(folder)
    for line in first.stdout:
        if line.startswith("Campaign"):
            first.kill()
            break
    first.communicate()
    return folder, finish(start(folder, "--check"))


@pytest.fixture
def made(run: tuple[Path, str]) -> Path:
    return run[0]


def test_a_killed_demo_goes_on_and_everything_is_there(run: tuple[Path, str]) -> None:
    made, out = run
    assert "everything is there and answers" in out
    counts = rows(made)
    assert counts["prompts_contrastpair"] == 40
    assert counts["candidates_candidate"] == 40 * 2 * 2 + 8 * 2 * 2
    assert all(counts.values()), counts
    assert (made / "export" / "manifest.json").exists()
    assert (made / "logins.json").stat().st_mode & 0o077 == 0


def test_a_second_run_changes_nothing_and_shows_the_same_log_ins(run: tuple[Path, str]) -> None:
    made, out = run
    before = rows(made)
    again = finish(start(made))
    assert rows(made) == before
    assert len(log_ins(out)) == 3
    assert log_ins(again) == log_ins(out)


def test_simulated_judgements_are_of_simulated_people_and_say_so(made: Path) -> None:
    with closing(sqlite3.connect(made / "croc.sqlite3")) as base:
        rows_ = base.execute(
            "SELECT DISTINCT j.source, u.is_simulated FROM annotation_judgement j"
            " JOIN accounts_user u ON u.id = j.annotator_id"
        ).fetchall()
        campaigns = base.execute("SELECT is_simulated FROM annotation_campaign").fetchall()
        drawn = base.execute("SELECT DISTINCT is_drawn FROM candidates_generator").fetchall()
    assert rows_ == [("simulated", 1)]
    assert campaigns == [(1,)]
    assert drawn == [(1,)]


def test_a_check_names_what_is_missing(made: Path) -> None:
    lost = next((made / "export" / "crochum").rglob("*.png"))
    data = lost.read_bytes()
    lost.unlink()
    try:
        err = finish(start(made, "--check"), code=1)
    finally:
        lost.write_bytes(data)
    assert "the export fails" in err
    assert lost.name in err


@pytest.mark.django_db
@pytest.mark.parametrize("make", [make_campaign, make_pair, make_user])
def test_a_database_with_other_work_is_refused(make) -> None:
    make()
    with pytest.raises(CommandError, match="holds other work"):
        call_command("demo")


# The cast


def sight(number: int, *, truth: bool, plain: bool = True) -> Sight:
    return Sight(f"pair{number}", "prompt", "scenes", number, "own", truth, plain=plain)


@pytest.mark.parametrize("person", CAST, ids=lambda person: person.username)
def test_on_plain_images_each_is_as_good_as_stated(person: Simulated) -> None:
    for truth, stated in ((True, person.sensitivity), (False, person.specificity)):
        votes = [answer(person, sight(i, truth=truth))[0] for i in range(3000)]
        votes = [vote for vote in votes if vote != "unsure"]
        right = sum((vote == "accept") == truth for vote in votes) / len(votes)
        assert abs(right - stated) < 0.025


def test_hard_images_are_judged_worse_and_answers_do_not_change() -> None:
    person = CAST[0]
    hard = [s for i in range(4000) if (s := sight(i, truth=True, plain=False)).hardness > 0.85]
    right = [answer(person, s)[0] == "accept" for s in hard]
    assert sum(right) / len(right) < 0.9
    assert answer(person, hard[0]) == answer(person, hard[0])
    assert all(answer(person, s)[1] > 0 for s in hard)
