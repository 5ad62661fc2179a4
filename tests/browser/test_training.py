"""Consent, guideline, practice with feedback, quiz, work: as a new person meets them."""

from __future__ import annotations

import pytest
from django.utils import timezone

from croc_annotate.annotation.models import Participation
from croc_annotate.annotation.services import (
    make_known_item,
    publish_consent_text,
    publish_guideline,
)

pytestmark = pytest.mark.browser


@pytest.fixture
def trained(judging, world):
    """A campaign with two practice and two quiz items: the right answers are accept."""

    def start(**settings):
        judge = judging(
            visit=False,
            images=6,
            consent_text=publish_consent_text(version="c1", body="We keep **your answers**."),
            guideline=publish_guideline(version="g1", body="Look *closely*."),
            practice_items=2,
            quiz_items=2,
            quiz_pass_mark=0.5,
            **settings,
        )
        for is_quiz in (False, False, True, True):
            (candidate,) = world.images(world.pair())
            make_known_item(
                campaign=judge.campaign,
                candidate=candidate,
                verdict="accept",
                purpose="training",
                is_quiz=is_quiz,
                explanation="All three apples are there.",
                now=timezone.now(),
            )
        return judge

    return start


def read_on(judge) -> None:
    """Consent and guideline, as pages of their own."""
    page = judge.page
    page.goto(judge.url)
    page.wait_for_url("**/consent/")
    for box in page.locator("main input[type=checkbox]").all():
        box.check()
    page.locator("main .button-primary").first.click()
    page.wait_for_url("**/guideline/")
    page.locator("main .button-primary").first.click()
    judge.wait_for_item()


@pytest.mark.field_case(23)
def test_a_new_person_is_led_from_consent_to_work(trained):
    judge = trained()
    page = judge.page
    read_on(judge)
    assert page.locator(".judge-bar .badge").inner_text() == "Practice"
    assert page.locator("[data-act=undo]").is_disabled()

    judge.press("j")
    page.wait_for_selector("#feedback-dialog[open][data-correct=true]")
    assert "All three apples" in page.locator("#feedback-text").inner_text()
    judge.press("f")  # dead while the feedback is read
    judge.press("Enter")
    judge.wait_for_item()
    judge.press("f")
    page.wait_for_selector("#feedback-dialog[open][data-correct=false]")
    assert "Look again" in page.locator("#feedback-title").inner_text()
    judge.press("Enter")

    page.wait_for_selector(".judge-bar .badge >> text=Quiz")
    judge.judge("j")
    judge.wait_for_item()
    assert not page.locator("#feedback-dialog").is_visible()
    judge.press("j")
    page.wait_for_selector("#judge[data-stage=work] .judge-stage img")
    assert page.locator(".judge-bar .badge").count() == 0
    assert Participation.objects.get(annotator=judge.person).qualified_at is not None
    judge.wait_for_item()
    judge.judge("j")
    judge.wait_for_judgements(5)


def test_examples_of_the_category_stand_beside_the_guideline(trained):
    judge = trained()
    read_on(judge)
    judge.press("g")
    judge.page.wait_for_selector("#guide-dialog[open]")
    shown = judge.page.locator("[data-example]:not([hidden])")
    assert shown.count() == 2
    assert "All three apples" in shown.first.inner_text()
    assert "closely" in judge.page.locator("#guide-dialog").inner_text()
    judge.page.wait_for_function(
        "() => document.querySelector('[data-example]:not([hidden]) img').naturalWidth > 0"
    )


@pytest.mark.field_case(24)
def test_the_page_holds_no_known_answer_of_the_quiz(trained):
    judge = trained()
    replies = []
    judge.page.on(
        "response", lambda reply: replies.append(reply) if "/claim" in reply.url else None
    )
    read_on(judge)
    for _ in range(2):
        judge.wait_for_item()
        judge.press("j")
        judge.page.wait_for_selector("#feedback-dialog[open]")
        judge.press("Enter")
    judge.page.wait_for_selector("#judge[data-stage=quiz] .judge-stage img")
    told = judge.page.content() + str(replies[-1].json())
    for secret in ("known_verdict", "is_quiz", "explanation'", "gold", "training"):
        assert secret not in told
