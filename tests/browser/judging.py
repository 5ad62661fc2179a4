"""What the browser tests stand on: a world of campaigns, and the judging page in words of its users."""

from __future__ import annotations

import io
import itertools
import time
from collections.abc import Callable
from typing import Any

from PIL import Image, ImageDraw
from playwright.sync_api import Locator

from croc_annotate.annotation.models import Assignment, Campaign, Judgement
from croc_annotate.annotation.services import create_campaign, set_campaign_state
from croc_annotate.candidates.models import Candidate, Generator
from croc_annotate.candidates.services import store_image
from croc_annotate.prompts.models import Category, ContrastPair
from tests.factories import make_user

_count = itertools.count(1)
CATEGORIES = [
    "action",
    "body_parts",
    "counting",
    "negation",
    "shapes",
    "size_relation",
    "spatial_relation",
    "things_parts",
]


def picture(number: int, size: int = 256) -> bytes:
    """A picture that differs from every other: ``number`` in dots on a coloured ground."""
    image = Image.new(
        "RGB", (size, size), ((number * 53) % 200 + 50, (number * 97) % 200 + 50, 190)
    )
    draw = ImageDraw.Draw(image)
    for i in range(number % 12 + 1):
        x, y = 10 + (i % 4) * 60, 10 + (i // 4) * 60
        draw.ellipse([x, y, x + 44, y + 44], fill=(30, 30, (i * 20) % 255))
    out = io.BytesIO()
    image.save(out, "PNG")
    return out.getvalue()


def until(page, reached: Callable[[], object], otherwise: Callable[[], str] = str) -> None:
    """Wait for what must come, a minute on a busy machine; a fixed pause would be a guess."""
    end = time.monotonic() + 60
    while not reached():
        assert time.monotonic() < end, otherwise()
        page.wait_for_timeout(50)


class World:
    """Makes campaigns through the public functions."""

    def __init__(self) -> None:
        # A flush between tests empties what the migrations put there.
        for position, slug in enumerate(CATEGORIES):
            Category.objects.get_or_create(
                slug=slug,
                defaults={"label": slug.replace("_", " ").capitalize(), "position": position},
            )

    def annotator(self, **fields: Any):
        return make_user(**fields)

    def pair(self, text: str | None = None, category: str = "counting") -> ContrastPair:
        number = next(_count)
        return ContrastPair.objects.create(
            slug=f"{category}_{number}",
            category_id=category,
            prompt=text or f"number {number}: three red apples on a plate",
            contrast=(text or f"number {number}: four red apples on a plate") + " today",
        )

    def images(self, pair: ContrastPair, count: int = 1, size: int = 256) -> list[Candidate]:
        generator, _ = Generator.objects.get_or_create(
            slug="tests", defaults={"label": "Tests", "licence": "test"}
        )
        made = []
        for _ in range(count):
            number = next(_count)
            row = Candidate.objects.create(
                pair=pair, side="prompt", generator=generator, seed=number
            )
            made.append(store_image(candidate=row, data=picture(number, size), provenance={}))
        return made

    def open_campaign(
        self,
        *,
        images: int = 12,
        per_text: int = 1,
        texts: list[str] | None = None,
        size: int = 256,
        **settings: Any,
    ) -> Campaign:
        for i in range(images // per_text):
            pair = self.pair(texts[i] if texts and i < len(texts) else None)
            self.images(pair, per_text, size)
        settings.setdefault("min_judgements", 1)
        settings.setdefault("max_judgements", max(1, settings["min_judgements"]))
        campaign = create_campaign(
            slug=f"round-{next(_count)}", title="Round one", min_distance=0, **settings
        )
        return set_campaign_state(campaign=campaign, state="open", actor=None)


class JudgingPage:
    """The judging page as a person uses it."""

    def __init__(self, page, base: str, campaign, person, problems) -> None:
        self.page, self.base, self.campaign, self.person = page, base, campaign, person
        self.problems = problems

    @property
    def url(self) -> str:
        return f"{self.base}/annotate/{self.campaign.slug}/"

    def open(self) -> JudgingPage:
        self.page.goto(self.url)
        return self.wait_for_item()

    def wait_for_item(self) -> JudgingPage:
        self.page.wait_for_selector(".judge-stage img", state="visible")
        self.page.wait_for_selector("[data-act=accept]:not([disabled])")
        return self

    @property
    def text(self) -> str:
        return self.page.locator("[data-text]").inner_text().strip("“”")

    @property
    def image(self) -> str:
        return self.page.locator(".judge-stage img").first.get_attribute("src")

    def press(self, *keys: str) -> JudgingPage:
        for key in keys:
            self.page.keyboard.press(key)
        return self

    def judge(self, key: str) -> str:
        """Judge the picture on the screen; returns its address once the next one is there."""
        self.wait_for_item()
        shown = self.image
        self.press(key)
        self.page.wait_for_function(
            # An empty stage is not the next picture: it only waits for it.
            """(src) => {
                const next = document.querySelector('.judge-stage img')?.getAttribute('src');
                return (next && next !== src) || document.querySelector('#judge.has-end');
            }""",
            arg=shown,
        )
        return shown

    def state(self) -> tuple[str, int]:
        button = self.page.locator(".judge-state")
        return button.get_attribute("data-state"), int(button.get_attribute("data-waiting"))

    def wait_for_state(self, state: str, waiting: int | None = None, timeout: int = 60_000) -> None:
        count = "" if waiting is None else f'[data-waiting="{waiting}"]'
        self.page.wait_for_selector(f'.judge-state[data-state="{state}"]{count}', timeout=timeout)

    def ahead(self) -> list[dict[str, Any]]:
        """What the page has ready behind the picture on the screen."""
        return self.page.evaluate(
            """async () => {
                const { page } = await import("/static/js/judge/main.js");
                return page.ahead.queue.map((entry) => ({
                    item: entry.item.item, state: entry.state, image: entry.item.image,
                    decoded: Boolean(entry.image && entry.image.complete && entry.image.naturalWidth),
                }));
            }"""
        )

    def wait_for_ahead(self, count: int = 2) -> None:
        until(
            self.page,
            lambda: self._ready_in_order() >= count,
            lambda: f"fewer than {count} pictures ahead are ready: {self.ahead()}",
        )

    def _ready_in_order(self) -> int:
        # They are shown in this order: one that loads still holds those behind it.
        states = [entry["state"] for entry in self.ahead()]
        return next((i for i, state in enumerate(states) if state != "ready"), len(states))

    def wait_for_other_text(self, before: str) -> str:
        """Until another text is there with its pictures; returns it."""
        self.page.wait_for_function(
            """(before) => {
                const text = document.querySelector('[data-text]').innerText;
                return text && text !== `“${before}”`;
            }""",
            arg=before,
        )
        self.wait_for_item()
        return self.text

    def judge_until_none_is_ready(self) -> Locator:
        """Accept what is there, until the page says what it waits for; returns that."""
        cover = self.page.locator("[data-cover]:not([hidden])")
        until(self.page, lambda: self.press("j") and cover.count())
        return cover

    def wait_for_image(self, source: str) -> None:
        until(self.page, lambda: self.image == source, lambda: f"{self.image}, not {source}")

    def wait_for_verdicts(self, wanted: dict[str, str]) -> None:
        """Until the database holds these and no others."""
        until(self.page, lambda: self.by_image() == wanted, lambda: str(self.by_image()))

    # --- what the database says ----------------------------------------------------------

    def judgements(self) -> list[Judgement]:
        """Current judgements of this person, oldest first."""
        return list(
            Judgement.objects.current()
            .filter(campaign=self.campaign, annotator=self.person)
            .select_related("item__candidate")
            .order_by("id")
        )

    def wait_until_kept(self, count: int) -> None:
        """Until so many answers wait in the browser's own store: a closed tab cannot lose them then."""
        until(
            self.page,
            lambda: (
                self.page.evaluate(
                    """async () => {
                    const { page } = await import("/static/js/judge/main.js");
                    return (await page.store.all()).length;
                }"""
                )
                == count
            ),
        )

    def wait_for_judgements(self, count: int) -> list[Judgement]:
        until(
            self.page,
            lambda: len(self.judgements()) >= count,
            lambda: f"{len(self.judgements())} of {count} judgements arrived",
        )
        return self.judgements()

    def by_image(self) -> dict[str, str]:
        """Verdicts by the address of the picture that was judged."""
        from django.urls import reverse

        return {
            reverse("candidates:display", args=[row.item.candidate.key]): row.verdict
            for row in self.judgements()
        }

    def leases(self):
        return Assignment.objects.filter(item__campaign=self.campaign, annotator=self.person)
