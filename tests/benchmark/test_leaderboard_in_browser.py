"""The leaderboard's pages with something on them: drawn, sound, and fit for a phone."""

from __future__ import annotations

import os
from datetime import date
from io import StringIO

import pytest
from django.core.cache import cache
from django.core.management import call_command
from django.urls import reverse
from playwright.sync_api import expect

os.environ.setdefault("DJANGO_ALLOW_ASYNC_UNSAFE", "true")

from croc_annotate.benchmark.models import ExternalResult, MetricVersion
from croc_annotate.candidates.models import Candidate
from croc_annotate.lib.hashing import stable_unit
from croc_annotate.releases.models import Release
from tests.benchmark.fakes import Counting
from tests.benchmark.world import small_release
from tests.browser.test_layout import serious

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
FAKE = "tests.benchmark.fakes:Counting"


@pytest.fixture(scope="session")
def base_url() -> str:
    return ""


@pytest.fixture
def board(settings, live_server):
    settings.CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}
    cache.clear()
    Counting.reset()
    release = small_release(pairs=12, images=2)
    for revision, name in (("1", "first"), ("2", "second with a rather long name indeed")):
        call_command(
            "run_benchmark", metric=[FAKE], revision=revision, option=[f"name={name}"],
            stdout=StringIO(),
        )  # fmt: skip
    call_command("run_benchmark", metric=["random"], stdout=StringIO())
    Release.objects.filter(pk=release.pk).update(is_public=True)
    return live_server.url


@pytest.fixture
def complaints(page):
    """What the browser's console had to say."""
    found: list[str] = []
    page.on("pageerror", lambda error: found.append(str(error)))
    page.on("console", lambda m: found.append(m.text) if m.type in {"error", "warning"} else None)
    return found


def test_pages_are_drawn_sound_and_fit_a_phone(board, page, complaints):
    pages = {
        reverse("benchmark:leaderboard"): 5,
        reverse("benchmark:metric", args=["first"]): 2,
        reverse("benchmark:compare"): 0,
    }
    for address, charts in pages.items():
        for scheme, width in (("light", 1280), ("dark", 360)):
            page.set_viewport_size({"width": width, "height": 740})
            page.emulate_media(color_scheme=scheme)
            page.goto(board + address, wait_until="networkidle")
            page.wait_for_function(
                f"document.querySelectorAll('[data-chart] svg').length >= {charts}"
            )
            assert serious(page) == [], (address, scheme)
            assert page.evaluate("document.documentElement.scrollWidth") <= width, address
    assert complaints == []


OUTSIDE = """() => [...document.querySelectorAll("[data-chart] svg")].flatMap((svg) => {
  const room = svg.getBoundingClientRect();
  return [...svg.querySelectorAll("text")]
    .filter((text) => {
      const { left, right } = text.getBoundingClientRect();
      return left < room.left - 0.5 || right > room.right + 0.5;
    })
    .map((text) => text.textContent);
})"""


def test_a_long_name_is_shortened_and_does_not_leave_its_drawing(board, page, complaints):
    MetricVersion.objects.filter(name="first").update(
        label="VQAScore with a rather long name of a model (Qwen2.5-VL-7B-Instruct-2025-01-26)"
    )
    for width in (1280, 360):
        page.set_viewport_size({"width": width, "height": 740})
        page.goto(board + reverse("benchmark:leaderboard"), wait_until="networkidle")
        page.wait_for_function("document.querySelectorAll('[data-chart] svg').length >= 5")
        assert page.locator("[data-chart=dots] svg text", has_text="VQAScore").count() == 1
        # Slanted heads of columns lean out of their own box, not out of what is shown.
        assert [t for t in page.evaluate(OUTSIDE) if t.startswith("VQAScore")] == [], width


def test_results_from_elsewhere_are_not_one_word_a_line_on_a_phone(board, page, complaints):
    ExternalResult.objects.create(
        board="MS-COCO (Hard)", metric="SigLIP 400M", configuration="zero-shot",
        measure="Recall@1", value=30.4, unit="%", source_date=date(2024, 5, 31),
        source="A paper with a name of some length, and the board where its rows stand",
    )  # fmt: skip
    page.set_viewport_size({"width": 360, "height": 740})
    page.goto(board + reverse("benchmark:leaderboard"))
    row = page.locator("[data-table=external] tbody tr")
    assert row.bounding_box()["height"] < 130
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_from_a_cell_to_the_pairs_that_fail_most(board, page, complaints):
    page.set_viewport_size({"width": 1280, "height": 900})
    page.goto(board + reverse("benchmark:leaderboard"))
    page.locator("[data-chart=heatmap] svg a[href*='metric/first/']").first.click()
    page.wait_for_url("**/leaderboard/metric/**by=text**")
    cards = page.locator(".pair-card")
    # Only pairs with an image whose own text does not score higher: by the fake's own formula.
    wrong = {
        image.pair_id
        for image in Candidate.objects.select_related("pair")
        if stable_unit("1", image.sha256, image.pair.own_text(image.side))
        <= stable_unit("1", image.sha256, image.pair.other_text(image.side))
    }
    assert 0 < len(wrong) <= 12
    expect(cards).to_have_count(len(wrong))
    picture = cards.first.locator("img").first
    page.wait_for_function("img => img.complete", arg=picture.element_handle())
    assert picture.evaluate("img => img.naturalWidth") > 0
    page.select_option("#f-order", "best")
    page.wait_for_url("**order=best**")
    expect(page.locator("#pairs h2")).to_have_text("Pairs that it gets right")
    assert complaints == []
