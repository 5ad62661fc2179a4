"""The pages of this room in a real browser: nothing serious for axe, nothing wider than a phone."""

from __future__ import annotations

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.sessions.backends.db import SessionStore

from croc_annotate.annotation.invitations import create_invitation
from croc_annotate.annotation.services import publish_consent_text, publish_guideline
from tests.annotation.test_api import Page as Desk
from tests.annotation.test_crowd import make_study
from tests.annotation.world import make_open_campaign
from tests.factories import make_candidate, make_pair, make_user

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture(scope="session")
def base_url() -> str:
    """Addresses are given whole (the plugin's own fixture warns under this pytest)."""
    return ""


def sign_in(context, live_server, user) -> None:
    session = SessionStore()
    session[SESSION_KEY] = str(user.pk)
    session[BACKEND_SESSION_KEY] = "django.contrib.auth.backends.ModelBackend"
    session[HASH_SESSION_KEY] = user.get_session_auth_hash()
    session.create()
    cookie = {
        "name": settings.SESSION_COOKIE_NAME,
        "value": session.session_key,
        "url": live_server.url,
    }
    context.add_cookies([cookie])


@pytest.fixture
def campaign():
    pair = make_pair()
    for side in ("prompt", "contrast"):
        make_candidate(pair=pair, side=side)
    return make_open_campaign(
        pairs=0,
        consent_text=publish_consent_text(version="c1", body="# What we store\n\nYour answers."),
        guideline=publish_guideline(version="g1", body="# How to judge\n\n| a | b |\n|---|---|\n"),
        session_cap=9,
    )


def look(page, url: str) -> None:
    """No serious or critical finding, and no sideways scrolling at 360 and 1280 px."""
    for width in (360, 1280):
        page.set_viewport_size({"width": width, "height": 800})
        page.goto(url)
        wide = page.evaluate(
            "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )
        assert wide <= 0, f"{url} at {width} px is {wide} px too wide"
    found = Axe().run(page).response["violations"]
    bad = [
        (v["id"], [n["html"][:120] for n in v["nodes"][:3]])
        for v in found
        if v["impact"] in {"serious", "critical"}
    ]
    assert not bad, (url, bad)


def test_the_pages_of_an_annotator(campaign, page, live_server):
    desk = Desk(campaign)
    sign_in(page.context, live_server, desk.user)
    base = f"{live_server.url}/annotate/"
    for path in ("", f"{campaign.slug}/consent/"):
        look(page, base + path)
    desk.client.post(f"/annotate/{campaign.slug}/consent/", {"version": "c1"})
    look(page, f"{base}{campaign.slug}/guideline/")
    desk.client.post(f"/annotate/{campaign.slug}/guideline/", {"version": "g1"})
    desk.answer(desk.claim(1)["items"][0])
    for path in ("me/", "end/"):
        look(page, f"{base}{campaign.slug}/{path}")


def test_the_pages_of_an_admin(campaign, page, live_server):
    admin = make_user("admin")
    make_study(campaign)
    _, token = create_invitation(campaign=campaign, actor=admin, label="Lab")
    desk = Desk(campaign)
    desk.get("session")
    look(page, f"{live_server.url}/join/{token}/")
    sign_in(page.context, live_server, admin)
    for path in ("", "new/", "texts/", f"{campaign.slug}/", f"{campaign.slug}/edit/"):
        look(page, f"{live_server.url}/campaigns/{path}")
