"""A small world for the queue: pairs and rendered candidates made in bulk, without image files."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta

from croc_annotate.annotation.answer_shapes import Answer
from croc_annotate.annotation.checks import check_queue
from croc_annotate.annotation.models import Item
from croc_annotate.annotation.services import (
    claim_items,
    create_campaign,
    set_campaign_state,
    store_answers,
)
from croc_annotate.candidates.models import Candidate, Generator
from croc_annotate.lib.hashing import sha256_text
from croc_annotate.prompts.models import Category, ContrastPair
from tests.factories import make_user

NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)


def later(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def make_pairs(count: int, category: str = "counting") -> list[ContrastPair]:
    # Tests with real connections empty every table afterwards, the categories too.
    Category.objects.get_or_create(slug=category, defaults={"label": category, "position": 99})
    first = ContrastPair.objects.count()
    return ContrastPair.objects.bulk_create(
        ContrastPair(
            slug=f"{category}_{first + i}",
            category_id=category,
            prompt=f"{first + i} red apples on a plate",
            contrast=f"{first + i} green apples on a plate",
            alt_contrast="an empty plate" if category == "negation" else "",
        )
        for i in range(count)
    )


def make_images(
    pairs, *, seeds: int = 1, sides=("prompt", "contrast"), first_seed: int = 0
) -> list[Candidate]:
    """Rendered rows; the image files themselves are not there."""
    generator, _ = Generator.objects.get_or_create(
        slug="tests", defaults={"label": "Tests", "licence": "test"}
    )
    return Candidate.objects.bulk_create(
        Candidate(
            pair=pair,
            side=side,
            generator=generator,
            seed=seed,
            state="rendered",
            image=f"original/{pair.pk}-{side}-{seed}.png",
            display=f"display/{pair.pk}-{side}-{seed}.png",
            preview=f"preview/{pair.pk}-{side}-{seed}.png",
            sha256=sha256_text(f"{pair.pk}-{side}-{seed}"),
            width=64,
            height=64,
        )
        for pair in pairs
        for side in sides
        for seed in range(first_seed, first_seed + seeds)
    )


_made = iter(range(10**9))


def make_open_campaign(*, pairs: int = 10, seeds: int = 1, category="counting", **settings):
    """A campaign that hands out the images of ``pairs`` fresh pairs."""
    number = next(_made)
    bank = make_pairs(pairs, category)
    make_images(bank, seeds=seeds)
    settings.setdefault("title", "Round one")
    campaign = create_campaign(slug=f"c{number}-{uuid.uuid4().hex[:6]}", **settings)
    return set_campaign_state(campaign=campaign, state="open", actor=None)


def make_annotators(count: int):
    return [make_user() for _ in range(count)]


def take(campaign, annotator, count: int = 1, at: float = 0):
    claim, _ = claim_items(slug=campaign.slug, annotator=annotator, count=count, now=later(at))
    return claim


def answer(campaign, annotator, handed, verdict: str = "accept", at: float = 0, **fields):
    results = answer_many(campaign, annotator, [(handed, verdict)], at=at, **fields)
    return results[0]


def answer_many(campaign, annotator, pairs, at: float = 0, **fields):
    answers = [
        Answer(
            client_key=fields.pop("client_key", None) or uuid.uuid4(),
            item_key=handed.item.key,
            assignment=handed.assignment,
            verdict=verdict,
            active_ms=fields.get("active_ms", 1500),
            answered_at=later(at),
        )
        for handed, verdict in pairs
    ]
    results, _ = store_answers(
        slug=campaign.slug, annotator=annotator, answers=answers, now=later(at)
    )
    return results


def fresh(item: Item) -> Item:
    return Item.objects.get(pk=item.pk)


def assert_sound(campaign) -> None:
    campaign.refresh_from_db()
    assert check_queue(campaign) == []
