"""A crowd worker's way in the browser: consent, training, work, the end with its one code."""

from __future__ import annotations

import pytest
from django.utils import timezone

from croc_annotate.annotation.models import Flag, Judgement, Participation, Study, Submission
from croc_annotate.annotation.services import (
    make_known_item,
    publish_consent_text,
    publish_guideline,
)
from tests.browser.judging import JudgingPage, until
from tests.browser.test_layout import SMALL, serious

pytestmark = pytest.mark.browser
CODES = {"completed": "DONE1234", "screened_out": "SCREEN12", "no_consent": "NOCONS12"}
PLATFORM_ID = "5f3e9c1b7d2a4e0001aabbcc"


@pytest.fixture
def worker(live_server, page, world, problems):
    """A phone on a study's link; call it with the campaign's settings."""

    def start(**settings) -> JudgingPage:
        campaign = world.open_campaign(
            images=6,
            consent_text=publish_consent_text(version="c1", body="We keep **your answers**."),
            guideline=publish_guideline(version="g1", body="Look *closely*."),
            **settings,
        )
        Study.objects.create(
            campaign=campaign,
            study_id="study1",
            session_cap=3,
            code_completed=CODES["completed"],
            code_screened_out=CODES["screened_out"],
            code_no_consent=CODES["no_consent"],
        )
        page.set_viewport_size({"width": 360, "height": 740})
        page.goto(
            f"{live_server.url}/study/?PROLIFIC_PID={PLATFORM_ID}"
            "&STUDY_ID=study1&SESSION_ID=session1"
        )
        person = Participation.objects.get().annotator
        return JudgingPage(page, live_server.url, campaign, person, problems)

    yield start
    page.goto("about:blank")
    page.wait_for_timeout(300)
    assert problems == []


def sound(page) -> None:
    """No code, no platform id, nothing serious for axe, targets for fingers."""
    html = page.content() + page.url
    assert not any(code in html for code in CODES.values())
    assert PLATFORM_ID not in html
    assert serious(page) == []
    # The site's own head and foot have smaller links; all that is done here is done in `main`.
    assert (
        page.evaluate(SMALL.replace("[...document.", "[...document.querySelector('main').")) == []
    )


def agree_and_read(page) -> None:
    page.wait_for_url("**/consent/")
    sound(page)
    for box in page.locator("main input[type=checkbox]").all():
        box.check()
    page.locator("main .button-primary").first.click()
    page.wait_for_url("**/guideline/")
    sound(page)
    page.locator("main .button-primary").first.click()


def assert_code(page, kind: str) -> None:
    page.wait_for_url("**/end/")
    html = page.content()
    assert CODES[kind] in html
    assert not any(code in html for name, code in CODES.items() if name != kind)
    href = page.locator(f"a[href*='{CODES[kind]}']").get_attribute("href")
    assert href == f"https://app.prolific.com/submissions/complete?cc={CODES[kind]}"
    assert serious(page) == []


@pytest.mark.field_case(21, 24)
def test_the_whole_way_to_the_code_of_completion(worker):
    judge = worker()
    page = judge.page
    agree_and_read(page)
    judge.wait_for_item()
    sound(page)
    for _ in range(3):
        judge.wait_for_item()
        judge.judge("j")
    page.wait_for_selector("#judge[data-end]")
    judge.wait_for_state("saved", 0)
    sound(page)
    page.locator(".judge-end a.button-primary").click()
    assert_code(page, "completed")
    page.reload()  # seen twice, ended once
    assert_code(page, "completed")
    assert Submission.objects.get().outcome == "completed"
    assert Judgement.objects.count() == 3


@pytest.mark.field_case(26)
def test_declining_leads_to_its_own_code(worker):
    judge = worker()
    page = judge.page
    page.wait_for_url("**/consent/")
    page.locator("main button[formaction$='/decline/']").click()
    assert_code(page, "no_consent")
    page.goto(judge.url)
    assert page.locator(".judge-stage img").count() == 0
    assert Judgement.objects.count() == 0


@pytest.mark.field_case(26)
def test_enter_in_a_remark_is_a_new_line_and_no_answer(worker):
    judge = worker()
    page = judge.page
    agree_and_read(page)
    judge.wait_for_item()
    shown = judge.image
    judge.press("r")
    page.wait_for_selector("#flag-dialog[open]")
    page.locator("#flag-dialog input[value=unclear_text]").check()
    page.locator("#flag-remark").press_sequentially("three or")
    page.locator("#flag-remark").press("Enter")
    page.locator("#flag-remark").press_sequentially("four")
    assert page.locator("#flag-dialog[open]").count() == 1
    page.click("#flag-dialog .button-primary")
    until(page, Flag.objects.exists)
    assert Flag.objects.get().remark == "three or\nfour"
    assert judge.image == shown
    assert Judgement.objects.count() == 0


@pytest.mark.field_case(23)
def test_a_failed_quiz_leads_to_the_code_of_screening_and_to_no_work(worker, world):
    judge = worker(quiz_items=2, quiz_pass_mark=1.0)
    for _ in range(2):
        (candidate,) = world.images(world.pair())
        make_known_item(
            campaign=judge.campaign,
            candidate=candidate,
            verdict="accept",
            purpose="training",
            is_quiz=True,
            explanation="",
            now=timezone.now(),
        )
    page = judge.page
    agree_and_read(page)
    judge.wait_for_item()
    assert page.locator(".judge-bar .badge").inner_text() == "Quiz"
    sound(page)
    judge.judge("f")
    judge.wait_for_item()
    judge.press("f")
    page.wait_for_selector("#judge[data-end=ended]")
    sound(page)
    page.locator(".judge-end a.button-primary").click()
    assert_code(page, "screened_out")
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(judge.url)
    page.wait_for_selector("#judge[data-end=ended]")
    page.wait_for_timeout(1500)
    assert page.locator(".judge-stage img").count() == 0
    assert len([url for url in asked if url.endswith("/session")]) == 1  # no endless reload
