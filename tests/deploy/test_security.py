"""The site as strangers meet it."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from django.test import Client

from tests.factories import make_user

ROOT = Path(__file__).resolve().parents[2]


def test_the_deployment_checks_are_clean(tmp_path: Path):
    run = subprocess.run(
        [sys.executable, "manage.py", "check", "--deploy", "--fail-level", "WARNING"],
        cwd=ROOT, capture_output=True, text=True, check=False,
        env={
            "PATH": "/usr/bin:/bin",
            "SECRET_KEY": "kJ8x-2mZqv7RtYw_93hLpNcE5sBdUfGaWiTo1XyVzQ6-0123456789",
            "ALLOWED_HOSTS": "annotate.example.org",
            "DATABASE_URL": f"sqlite:///{tmp_path}/db.sqlite3",
            "STATIC_ROOT": str(tmp_path / "static"),
        },
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    assert "no issues" in run.stdout


@pytest.mark.django_db
def test_a_page_allows_only_its_own_scripts_and_styles(client: Client):
    policy = client.get("/accounts/login/")["Content-Security-Policy"]
    parts = dict(p.strip().split(" ", 1) for p in policy.split(";") if " " in p.strip())
    assert parts["default-src"] == "'none'"
    assert parts["script-src"] == "'self'"
    assert parts["style-src"] == "'self'"
    assert parts["frame-ancestors"] == "'none'"
    assert "unsafe" not in policy


@pytest.mark.django_db
def test_pages_do_not_leak_where_people_came_from(client: Client):
    response = client.get("/accounts/login/")
    assert response["Referrer-Policy"] == "same-origin"
    assert response["X-Content-Type-Options"] == "nosniff"
    assert response["X-Frame-Options"] == "DENY"


@pytest.mark.django_db
def test_signing_in_changes_the_session_key(client: Client):
    make_user(username="anna", password="a good passphrase")
    client.get("/accounts/login/")
    session = client.session
    session["before"] = True
    session.save()
    old = session.session_key
    client.post("/accounts/login/", {"username": "anna", "password": "a good passphrase"})
    assert client.session.session_key != old


@pytest.mark.django_db
def test_the_eleventh_wrong_password_is_locked_out_and_others_are_not(client: Client, settings):
    settings.AXES_ENABLED = True
    make_user(username="anna", password="a good passphrase")
    make_user(username="ben", password="a good passphrase")
    for _ in range(settings.AXES_FAILURE_LIMIT):
        client.post("/accounts/login/", {"username": "anna", "password": "wrong"})
    right = {"username": "anna", "password": "a good passphrase"}
    assert client.post("/accounts/login/", right).status_code == 429
    other = {"username": "ben", "password": "a good passphrase"}
    assert client.post("/accounts/login/", other).status_code == 302


@pytest.mark.django_db
def test_a_form_without_its_token_is_refused():
    strict = Client(enforce_csrf_checks=True)
    make_user(username="anna", password="a good passphrase")
    form = {"username": "anna", "password": "a good passphrase"}
    assert strict.post("/accounts/login/", form).status_code == 403


@pytest.mark.parametrize(
    "page",
    sorted((ROOT / "templates").rglob("*.html")),
    ids=lambda page: str(page.relative_to(ROOT / "templates")),
)
def test_no_template_holds_inline_script_or_style(page: Path):
    text = page.read_text()
    scripts = re.findall(r"<script\b(?![^>]*\bsrc=)(?![^>]*application/json)[^>]*>", text)
    assert scripts == []
    assert re.findall(r"<style\b", text) == []
    assert re.findall(r"\sstyle=", text) == []
    assert re.findall(r"\son[a-z]+=\"", text) == []


def test_passwords_are_hashed_slowly():
    from django.conf import global_settings
    from django.contrib.auth.hashers import PBKDF2PasswordHasher

    from croc_annotate import settings as ours

    assert not hasattr(ours, "PASSWORD_HASHERS")
    assert global_settings.PASSWORD_HASHERS[0].endswith("PBKDF2PasswordHasher")
    assert PBKDF2PasswordHasher.iterations >= 1_000_000


def test_cookies_travel_by_https_only_and_not_to_scripts(tmp_path: Path):
    """Asked of the settings as a server with a name of its own reads them."""
    wanted = "SESSION_COOKIE_SECURE SESSION_COOKIE_HTTPONLY CSRF_COOKIE_SECURE SECURE_SSL_REDIRECT"
    run = subprocess.run(
        [sys.executable, "-c", "import django; django.setup();"
         "from django.conf import settings as s;"
         f"print([getattr(s, n) for n in '{wanted}'.split()], s.SECURE_HSTS_SECONDS,"
         "s.SESSION_COOKIE_SAMESITE)"],
        cwd=ROOT, capture_output=True, text=True, check=True,
        env={
            "PATH": "/usr/bin:/bin", "DJANGO_SETTINGS_MODULE": "croc_annotate.settings",
            "SECRET_KEY": "x" * 50, "ALLOWED_HOSTS": "annotate.example.org",
            "DATABASE_URL": f"sqlite:///{tmp_path}/db.sqlite3",
            "STATIC_ROOT": str(tmp_path / "static"),
        },
    )  # fmt: skip
    assert run.stdout.strip() == "[True, True, True, True] 31536000 Lax"


# --- no code from data ---------------------------------------------------------------------------
SOURCES = [p for name in ("croc_annotate", "generation") for p in (ROOT / name).rglob("*.py")]
# May turn bytes into code; `yaml.load` and `torch.load` only without their safe forms.
UNSAFE = {
    ("pickle", "load"), ("pickle", "loads"), ("marshal", "loads"), ("joblib", "load"),
    ("shelve", "open"), ("dill", "loads"), ("cloudpickle", "loads"), ("yaml", "load"),
    ("yaml", "unsafe_load"), ("os", "system"),
}  # fmt: skip


def calls(path: Path):
    """(name of the object, name of the function, keywords) of each call in a file."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call):
            keywords = {k.arg: getattr(k.value, "value", k.value) for k in node.keywords}
            if isinstance(node.func, ast.Attribute):
                yield getattr(node.func.value, "id", "?"), node.func.attr, keywords
            elif isinstance(node.func, ast.Name):
                yield "", node.func.id, keywords


def test_nothing_makes_code_of_data():
    found = [
        f"{path.relative_to(ROOT)}: {thing}.{name}"
        for path in SOURCES
        for thing, name, _ in calls(path)
        if (thing, name) in UNSAFE or (thing == "" and name in {"eval", "exec"})
    ]
    # Rows that only this site writes; they are part of no backup (croc_annotate/operations/backup.py).
    assert [f for f in found if "benchmark/prepared.py: pickle.loads" not in f] == []


def test_checkpoints_are_read_as_tensors_and_no_repository_runs_its_code():
    loads = [
        k for p in SOURCES for thing, name, k in calls(p) if (thing, name) == ("torch", "load")
    ]
    assert loads
    assert all(keywords.get("weights_only") is True for keywords in loads)
    for path in SOURCES:
        for _, name, keywords in calls(path):
            assert not keywords.get("trust_remote_code"), f"{path}: {name}"
            assert not keywords.get("allow_pickle"), f"{path}: {name}"


class Payload:
    """What a hostile pickle does when it is read by an unguarded reader."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, (str(self.path),)


def test_a_hostile_checkpoint_does_not_run(tmp_path: Path):
    torch = pytest.importorskip("torch")
    from croc_annotate.benchmark.metrics.checkpoint_files import read_weights

    marker = tmp_path / "it-ran"
    torch.save({"weight": Payload(marker)}, tmp_path / "pytorch_model.bin")
    with pytest.raises(Exception, match=r"(?i)weights.only|unpickl|unsupported"):
        read_weights(tmp_path, ["weight"])
    assert not marker.exists()


def test_a_hostile_backup_leaves_its_folder_alone_and_unpickles_nothing():
    from croc_annotate.operations.backup import tables

    assert "benchmark.preparedresult" not in {m._meta.label_lower for m in tables()}
    binary = [
        f"{model._meta.label}.{field.name}"
        for model in tables()
        for field in model._meta.concrete_fields
        if field.get_internal_type() == "BinaryField"
    ]
    assert binary == []


def test_each_security_rule_that_is_passed_over_has_its_reason_beside_it():
    bare = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in [*SOURCES, *(ROOT / "deploy").rglob("*.py"), *(ROOT / "tools").rglob("*.py")]
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if re.search(r"# noqa: .*\bS\d", line)
        and not re.search(r"# noqa: [A-Z0-9, ]+(-|#|\() *\w", line)
    ]
    assert bare == []


def test_each_known_hole_that_is_passed_over_has_its_reason_beside_it():
    lines = (ROOT / ".ci" / "audit-exceptions.txt").read_text().splitlines()
    bare = [x for x in lines if x and not x.startswith("#") and not re.search(r"^\S+ +# \S+ ", x)]
    assert bare == []
