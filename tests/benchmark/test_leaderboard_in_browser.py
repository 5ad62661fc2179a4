"""The leaderboard's pages with something on them: drawn, sound, and fit for a phone."""

from __future__ import annotations

import os
from io import StringIO

import pytest
from django.core.cache import cache
from django.core.management import call_command
from django.urls import reverse

os.environ.setdefault("DJANGO_ALLOW_ASYNC_UNSAFE", "true")

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
    assert 0 < cards.count() == len(wrong) <= 12
    picture = cards.first.locator("img").first
    page.wait_for_function("img => img.complete", arg=picture.element_handle())
    assert picture.evaluate("img => img.naturalWidth") > 0
    page.select_option("#f-order", "best")
    page.wait_for_url("**order=best**")
    assert page.locator("#pairs h2").inner_text() == "Pairs that it gets right"
    assert complaints == []
