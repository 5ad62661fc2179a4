"""Reviewing by keyboard alone."""

from __future__ import annotations

import pytest

from croc_annotate.accounts.models import AuditEvent
from croc_annotate.agreement.models import Adjudication
from croc_annotate.agreement.statistics import compute_statistics
from croc_annotate.candidates.models import Candidate
from tests.agreement.rows import judged_campaign
from tests.factories import make_candidate, make_user

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def review(live_server, page, world, sign_in, problems):
    """A queue of three disputed items with real images, opened by a reviewer."""
    judged = judged_campaign(["aru", "aru", "aru"], slug="main")
    for item in judged.items:
        real = make_candidate(pair=item.pair, side="contrast")
        Candidate.objects.filter(pk=item.candidate_id).update(
            image=real.image, display=real.display, preview=real.preview
        )
    compute_statistics(campaign=judged.campaign)
    judged.reviewer = sign_in(make_user("reviewer"))
    page.goto(f"{live_server.url}/review/?campaign=main")
    return judged


def key_of(page) -> str:
    return page.locator("[data-review]").get_attribute("data-skip").split("after=")[1]


def decided(n: int) -> list[tuple[str, str]]:
    rows = Adjudication.objects.order_by("id")
    assert rows.count() == n
    return [(row.verdict, row.reason) for row in rows]


def test_three_items_are_settled_without_a_mouse(review, page, problems):
    first = key_of(page)
    page.keyboard.press("2")  # a detail settles it
    with page.expect_navigation():
        page.keyboard.press("j")
    assert decided(1) == [("accept", "detail")]
    second = key_of(page)
    assert second != first
    with page.expect_navigation():
        page.keyboard.press("s")  # later
    assert key_of(page) != second
    page.keyboard.press("n")
    page.keyboard.type("jfjf")  # letters in the note decide nothing
    page.keyboard.press("Escape")
    with page.expect_navigation():
        page.keyboard.press("f")
    assert decided(2)[1] == ("reject", "clear")
    assert Adjudication.objects.last().note == "jfjf"
    with page.expect_navigation():
        page.keyboard.press("v")
    assert AuditEvent.objects.filter(action="review.revealed").count() == 1
    assert page.get_by_role("heading", name="Who said what").is_visible()
    with page.expect_navigation():
        page.keyboard.press("f")
    assert page.get_by_text("Nothing to review").first.is_visible()
    assert Adjudication.objects.last().blind is False
    assert problems == []


def test_the_page_fits_a_phone(review, page):
    page.set_viewport_size({"width": 360, "height": 740})
    wider = page.evaluate(
        "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    )
    assert wider == 0
    box = page.locator(".review-buttons .button").first.bounding_box()
    assert box["height"] >= 44
