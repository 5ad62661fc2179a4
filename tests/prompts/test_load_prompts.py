"""`manage.py load_prompts`."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from croc_annotate.prompts.models import ContrastPair

pytestmark = pytest.mark.django_db
ROOT = Path(__file__).resolve().parents[2]


def run(*args: object) -> str:
    out = io.StringIO()
    call_command("load_prompts", *map(str, args), stdout=out)
    return out.getvalue()


@pytest.fixture
def bank(tmp_path: Path) -> Path:
    path = tmp_path / "mine.json"
    path.write_text(
        json.dumps({"shapes": {"1": {"prompt": "a round sign", "contrast": "a square sign"}}})
    )
    return path


def test_the_builtin_bank_is_loaded_whole_and_twice_is_once() -> None:
    assert "Loaded 400 pairs of “croc-annotate”: 400 created" in run("--builtin")
    assert "400 unchanged" in run("--builtin")
    assert ContrastPair.objects.active().count() == 400


def test_a_file_is_loaded_under_its_name_or_another(bank: Path) -> None:
    assert "Loaded 1 pairs of “mine”: 1 created" in run(bank)
    assert ContrastPair.objects.get().bank == "mine"
    assert run(bank, "--bank", "b") == run(bank, "--bank", "b")


def test_json_is_one_document(bank: Path) -> None:
    assert json.loads(run(bank, "--json")) == {
        "bank": "mine", "pairs": 1, "created": 1, "unchanged": 0, "versioned": 0, "edited": 0,
        "retired": 0, "dry_run": False,
    }  # fmt: skip


def test_a_dry_run_changes_nothing(bank: Path) -> None:
    assert run(bank, "--dry-run").startswith("Would load 1 pairs")
    assert ContrastPair.objects.count() == 0


def test_a_wrong_bank_is_refused_with_every_place(tmp_path: Path) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text('{"id": "x_1", "category": "x", "prompt": "a", "contrast": "b"}\n')
    with pytest.raises(CommandError, match=r"bad\.jsonl: line 1: category: “x” is not a category"):
        run(path)
    assert ContrastPair.objects.count() == 0


def test_real_prompts_are_loaded(real_data: Path) -> None:
    assert "26 created" in run(real_data / "tifa_real" / "prompts.json")


def test_a_wrong_call_exits_with_two(tmp_path: Path) -> None:
    command = [sys.executable, "manage.py", "load_prompts"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 2
    assert "FILE" in result.stderr
