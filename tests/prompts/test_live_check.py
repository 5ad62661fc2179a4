"""The rules, checked in the browser while a pair is written."""

from __future__ import annotations

import os

import pytest
from django.urls import reverse

os.environ.setdefault("DJANGO_ALLOW_ASYNC_UNSAFE", "true")

from django.test import Client
from playwright.sync_api import expect

from croc_annotate.prompts.models import Category
from tests.factories import make_candidate, make_pair, make_user

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture(scope="session")
def base_url() -> str:
    return ""


@pytest.fixture
def site(live_server, context, page):
    """The site, opened by an admin; fails the test on any script error."""
    for category in ("counting", "negation"):  # an earlier test may have emptied the database
        Category.objects.get_or_create(slug=category, defaults={"label": category, "position": 9})
    client = Client()
    client.force_login(make_user("admin"))
    cookie = client.cookies["sessionid"].value
    context.add_cookies([{"name": "sessionid", "value": cookie, "url": live_server.url}])
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    yield live_server.url
    assert errors == []


def test_rules_are_checked_and_words_marked_while_writing(site, page) -> None:
    make_pair(slug="counting_1", prompt="two cats", contrast="three cats")
    page.goto(site + reverse("prompts:new") + "?category=counting")
    result = page.locator("[data-check-result]")
    expect(result).to_be_hidden()
    page.fill("[name=prompt]", "two cats")
    page.fill("[name=contrast]", "Two cats.")
    expect(result).to_contain_text("says the same as the prompt")
    expect(result).to_contain_text("“counting_1” has this text, too")
    page.fill("[name=contrast]", "five cats")
    expect(result).to_contain_text("All rules are kept.")
    assert result.locator("[data-check-contrast] mark").inner_text() == "five"
    page.select_option("[name=category]", "negation")
    expect(result).to_contain_text("Alternative contrast: is required for negation")


def test_when_the_server_is_away_writing_goes_on(site, page) -> None:
    page.goto(site + reverse("prompts:new"))
    page.route("**/api/v1/prompts/check", lambda route: route.abort())
    page.fill("[name=prompt]", "two cats")
    expect(page.locator("[data-check-state]")).to_contain_text("cannot be checked now")
    assert page.input_value("[name=prompt]") == "two cats"


def test_images_come_to_the_pair_page(site, page) -> None:
    candidate = make_candidate(pair=make_pair(slug="counting_1"))
    page.goto(site + reverse("prompts:pair", args=["counting_1"]))
    image = page.locator(f"img[src*='{candidate.key}']")
    expect(image).to_be_visible()
    page.wait_for_function("el => el.complete && el.naturalWidth > 0", arg=image.element_handle())
