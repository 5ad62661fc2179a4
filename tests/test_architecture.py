"""The house stands as it is drawn: layers, start-up without torch, complete migrations."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from django.conf import settings
from django.core.management import call_command

ROOT = Path(__file__).resolve().parents[1]


def layers() -> list[str]:
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text())
    return pyproject["tool"]["importlinter"]["contracts"][0]["layers"]


def test_installed_apps_follow_the_layers():
    stages = [name for name in reversed(layers()) if name != "croc_annotate.lib"]
    assert stages == settings.STAGES


def test_the_table_of_the_documentation_names_the_layers_in_order():
    text = (ROOT / "docs" / "architecture.md").read_text()
    rooms = re.findall(r"^\| `([a-z]+)` \|", text, flags=re.MULTILINE)
    assert rooms == [name.rsplit(".", 1)[-1] for name in reversed(layers())]


def lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": str(folder), "PATH": "/usr/bin:/bin"},
    )


def test_a_backward_import_is_found(tmp_path: Path):
    for name in ("croc_annotate", "generation"):
        shutil.copytree(
            ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__", "locale")
        )
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    good = lint_imports(tmp_path)
    assert good.returncode == 0, good.stdout
    with (tmp_path / "croc_annotate" / "candidates" / "models.py").open("a") as file:
        file.write("\nfrom croc_annotate.releases import models as later\n")
    bad = lint_imports(tmp_path)
    assert bad.returncode == 1
    assert "croc_annotate.candidates.models -> croc_annotate.releases.models" in bad.stdout


def test_start_up_imports_no_torch():
    code = (
        "import django; django.setup();"
        "import croc_annotate.urls, croc_annotate.wsgi, croc_annotate.celery, sys;"
        "from django.urls import get_resolver; get_resolver().url_patterns;"
        "heavy = {'torch', 'diffusers', 'transformers', 'matplotlib', 'onnxruntime', 'datasets'} & set(sys.modules);"
        "sys.exit(f'imported at start: {heavy}' if heavy else 0)"
    )
    run = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env={
            "DJANGO_SETTINGS_MODULE": "croc_annotate.settings",
            "PATH": "/usr/bin:/bin",
            "SECRET_KEY": "x" * 40,
            "DATABASE_URL": "sqlite:////tmp/croc-start.sqlite3",
        },
    )
    assert run.returncode == 0, run.stderr


@pytest.mark.django_db
def test_migrations_are_complete():
    call_command("makemigrations", check=True, dry_run=True, verbosity=0)


def test_settings_refuse_to_serve_other_hosts_without_a_secret():
    run = subprocess.run(
        [sys.executable, "manage.py", "check"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env={"ALLOWED_HOSTS": "example.org", "PATH": "/usr/bin:/bin"},
    )
    assert run.returncode != 0
    assert "SECRET_KEY" in run.stderr


def test_settings_refuse_postgresql_without_a_secret():
    run = subprocess.run(
        [sys.executable, "manage.py", "check"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env={"DATABASE_URL": "postgresql://nobody@127.0.0.1/none", "PATH": "/usr/bin:/bin"},
    )
    assert run.returncode != 0
    assert "SECRET_KEY" in run.stderr


def test_the_embedded_key_is_made_once_and_private(tmp_path: Path):
    from croc_annotate.lib.secretkey import read_or_create_secret_key

    path = tmp_path / "a" / "secret_key"
    first = read_or_create_secret_key(path)
    assert read_or_create_secret_key(path) == first
    assert len(first) >= 50
    assert path.stat().st_mode & 0o777 == 0o600
    assert [p.name for p in path.parent.iterdir()] == ["secret_key"]


def test_no_file_is_large_and_fixtures_are_small():
    names = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split("\0")
    sizes = {
        name: (ROOT / name).stat().st_size for name in names if name and (ROOT / name).is_file()
    }
    assert {n: s for n, s in sizes.items() if s > 1_000_000} == {}
    assert sum(s for n, s in sizes.items() if n.startswith("tests/")) < 15_000_000
