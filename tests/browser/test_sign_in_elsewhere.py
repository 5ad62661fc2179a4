"""Signing in through an organisation, as a person does it: the button, the provider, and back."""

from __future__ import annotations

import pytest

from croc_annotate.accounts import oidc
from croc_annotate.accounts.models import OidcIdentity, User
from tests.accounts.oidc_provider import CLIENT_ID, CLIENT_SECRET, Provider
from tests.browser.judging import JudgingPage
from tests.browser.test_layout import serious

pytestmark = pytest.mark.browser


@pytest.fixture
def provider(settings):
    oidc._made_client.cache_clear()
    with Provider() as running:
        settings.OIDC_ISSUER = running.issuer
        settings.OIDC_CLIENT_ID = CLIENT_ID
        settings.OIDC_CLIENT_SECRET = CLIENT_SECRET
        settings.OIDC_LABEL = "University of Examples"
        yield running
    oidc._made_client.cache_clear()


def test_a_colleague_comes_in_by_the_button_and_judges(
    live_server, page, world, provider, problems
):
    campaign = world.open_campaign(images=6)
    page.goto(f"{live_server.url}/annotate/{campaign.slug}/")
    page.wait_for_url("**/accounts/login/**")
    assert serious(page) == []
    page.click("text=University of Examples")
    page.wait_for_url(f"**/annotate/{campaign.slug}/")
    judge = JudgingPage(page, live_server.url, campaign, User.objects.get(), problems)
    judge.wait_for_item()
    judge.judge("j")
    judge.wait_for_judgements(1)
    page.goto(f"{live_server.url}/accounts/profile/")
    assert page.locator("text=Change password").count() == 0
    page.locator("main").get_by_role("button", name="Log out").click()
    page.wait_for_selector("text=Log out there too")
    assert serious(page) == []
    page.goto("about:blank")
    assert problems == []


def test_a_lost_session_is_renewed_in_another_tab_and_the_queue_replays(judging, context, provider):
    judge = judging(images=20)
    OidcIdentity.objects.create(user=judge.person, issuer=provider.issuer, subject="a7c1")
    judge.wait_for_ahead(3)
    context.clear_cookies()
    shown = judge.judge("j")
    judge.page.wait_for_selector("#signin-dialog[open]")
    with context.expect_page() as opened:
        judge.page.click("#signin-dialog >> text=University of Examples")
    opened.value.wait_for_url(f"**/annotate/{judge.campaign.slug}/")
    opened.value.close()
    judge.page.bring_to_front()
    # Headless Chromium shows all tabs as visible: the event of coming back is sent by hand.
    judge.page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    judge.wait_for_state("saved", 0)
    assert judge.by_image() == {shown: "accept"}
    assert not judge.page.locator("#signin-dialog").is_visible()


@pytest.mark.parametrize("fault", ["wrong nonce", "denied", "down"])
def test_what_goes_wrong_is_said_on_a_page_of_our_own(live_server, page, world, provider, fault):
    world.open_campaign(images=2)
    provider.spoil = fault
    page.goto(f"{live_server.url}/accounts/login/")
    page.click("text=University of Examples")
    page.wait_for_selector("h1:has-text('You are not logged in')")
    assert serious(page) == []
    provider.spoil = ""
    page.click("text=Back to the log-in")
    page.click("text=University of Examples")
    page.wait_for_url("**/annotate/")
    page.goto("about:blank")
