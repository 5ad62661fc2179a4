"""The site as strangers meet it."""

from __future__ import annotations

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
    import re

    text = page.read_text()
    scripts = re.findall(r"<script\b(?![^>]*\bsrc=)(?![^>]*application/json)[^>]*>", text)
    assert scripts == []
    assert re.findall(r"<style\b", text) == []
    assert re.findall(r"\sstyle=", text) == []
    assert re.findall(r"\son[a-z]+=\"", text) == []
