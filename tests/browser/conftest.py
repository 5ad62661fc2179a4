"""A real site with real images, driven by a real Chromium."""

from __future__ import annotations

import os

import pytest

# Playwright's sync API runs an event loop in this thread; Django's ORM is used between its calls.
os.environ.setdefault("DJANGO_ALLOW_ASYNC_UNSAFE", "true")

from tests.browser.judging import JudgingPage, World


@pytest.fixture(scope="session")
def base_url() -> str:
    """Addresses are given whole. (The plugin's own fixture warns under this pytest.)"""
    return ""


@pytest.fixture
def world(transactional_db, django_db_blocker) -> World:
    """A small world that is emptied again after the test."""
    return World()


@pytest.fixture
def sign_in(live_server, context):
    """Give the browser the session of a person."""

    def do(user, in_context=None):
        from django.test import Client

        client = Client()
        client.force_login(user)
        cookie = client.cookies["sessionid"]
        (in_context or context).add_cookies(
            [{"name": "sessionid", "value": cookie.value, "url": live_server.url}]
        )
        return user

    return do


@pytest.fixture
def problems(page):
    """Errors that the page's scripts raised; a test that expects none asserts so at its end."""
    found: list[str] = []
    page.on("pageerror", lambda error: found.append(str(error)))
    page.on(
        "console",
        lambda message: (
            found.append(message.text) if "Content Security Policy" in message.text else None
        ),
    )
    return found


@pytest.fixture
def judging(live_server, page, world, sign_in, problems):
    """The judging page of one annotator in an open campaign; call it with the campaign's settings."""

    def start(*, images: int = 12, annotator=None, visit: bool = True, **settings) -> JudgingPage:
        campaign = world.open_campaign(images=images, **settings)
        person = sign_in(annotator or world.annotator())
        judge = JudgingPage(page, live_server.url, campaign, person, problems)
        if visit:
            judge.open()
        return judge

    yield start
    # Leave, and let the last requests end: the database is emptied next.
    if not page.is_closed():
        page.goto("about:blank")
        page.wait_for_timeout(300)
    assert problems == []
