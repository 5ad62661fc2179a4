"""The generation page and the wall of images in a real browser."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone
from playwright.sync_api import expect

from croc_annotate.candidates.models import Candidate, Worker
from croc_annotate.candidates.services import fail_candidate, store_image
from tests import factories
from tests.generation.fakes import noise

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def png(seed: int) -> bytes:
    import io

    out = io.BytesIO()
    noise("wall", seed, size=96).resize((256, 256)).save(out, "PNG")
    return out.getvalue()


@pytest.fixture
def work(transactional_db) -> Candidate:
    """Two generators at work, one failure, one image that waits: it is returned."""
    one = factories.make_generator("FLUX_1_dev", label="FLUX.1 [dev]", pipeline="flux")
    two = factories.make_generator("stable_diffusion_3_5_large", pipeline="sd3")
    for category in ("action", "counting", "shapes"):
        pair = factories.make_pair(category)
        for seed in range(1, 5):
            factories.make_candidate(pair=pair, generator=one, seed=seed, data=png(seed))
            factories.make_candidate(pair=pair, generator=two, seed=seed, data=png(seed + 50))
    failed = factories.make_candidate(pair=pair, generator=two, seed=9, rendered=False)
    fail_candidate(candidate=failed, reason="blank image: black")
    now = timezone.now()
    for name, ago in (("gpu-box-1:812:3f", 2), ("gpu-box-2:77:aa", 900)):
        Worker.objects.create(
            name=name, device="NVIDIA H100 80GB HBM3", doing="FLUX_1_dev · shapes_3 · prompt",
            images_done=412, started_at=now, heartbeat_at=now - timedelta(seconds=ago),
        )  # fmt: skip
    return factories.make_candidate(pair=pair, generator=one, seed=10, rendered=False)


def picture(page, name: str) -> None:
    """Keep a picture where PICTURES names a folder."""
    if os.environ.get("PICTURES"):
        page.screenshot(path=Path(os.environ["PICTURES"]) / f"{name}.png", full_page=True)


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (360, "dark")])
def test_the_page_follows_the_work_without_being_loaded_again(
    page, live_server, sign_in, problems, work: Candidate, width: int, scheme: str
) -> None:
    sign_in(factories.make_user("admin"))
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme=scheme)
    page.goto(f"{live_server.url}/generation/")
    page.evaluate("window.sameDocument = true")
    row = page.get_by_role("row").filter(
        has=page.get_by_role("rowheader", name="shapes", exact=True)
    )
    expect(row).to_contain_text("4 / 5")
    picture(page, f"generation_{width}_{scheme}")
    store_image(candidate=work, data=png(99), provenance={})
    row.get_by_text("5 / 5").first.wait_for(timeout=60_000)
    assert page.evaluate("window.sameDocument") is True
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    again = page.get_by_role("button", name="Ask again").bounding_box()
    assert again["x"] + again["width"] <= width  # in sight without moving the table
    page.get_by_role("button", name="Ask again").click()
    page.get_by_text("1 image is asked for again.").wait_for()
    assert Candidate.objects.requested().count() == 1
    assert problems == []


@pytest.mark.parametrize(("width", "scheme"), [(1280, "dark"), (360, "light")])
def test_the_wall_filters_by_its_address_and_leads_to_an_image(
    page, live_server, sign_in, problems, work: Candidate, width: int, scheme: str
) -> None:
    sign_in(factories.make_user("reviewer"))
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme=scheme)
    page.goto(f"{live_server.url}/images/?category=counting")
    page.get_by_text("8 images").wait_for()
    picture(page, f"wall_{width}_{scheme}")
    page.get_by_label("Generator").select_option("FLUX_1_dev")
    page.get_by_text("4 images").wait_for()
    assert "generator=FLUX_1_dev" in page.url
    page.locator(".thumb").first.click()
    page.get_by_role("heading", level=1).wait_for()
    shown = page.locator("figure img")
    assert (
        shown.evaluate(
            "image => image.complete ? image.naturalWidth : image.decode().then(() => image.naturalWidth)"
        )
        == 256
    )
    picture(page, f"image_{width}_{scheme}")
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    assert problems == []
