"""A small campaign with every kind of candidate, built row by row and the same each time."""

from __future__ import annotations

import io
import uuid
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from PIL import Image

from croc_annotate.annotation.models import Campaign, Guideline, Item, Judgement
from croc_annotate.candidates.models import Candidate, Generator
from croc_annotate.candidates.services import fail_candidate, store_image
from croc_annotate.prompts.models import ContrastPair
from croc_annotate.prompts.rules import CATEGORIES
from tests.factories import make_user

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
ALL_ACCEPT = ("accept", "accept", "accept")
ALL_REJECT = ("reject", "reject", "reject")


def picture(number: int, *, mode: str = "RGB", size: int = 24, codec: str = "PNG") -> bytes:
    """An image that no other number has."""
    image = Image.new("RGB", (size, size), (number % 256, number // 256 % 256, 90))
    image.putpixel((number % size, number // size % size), (255, 255, 255))
    out = io.BytesIO()
    image.convert(mode).save(out, codec)
    return out.getvalue()


@dataclass
class World:
    """A campaign and the means to fill it."""

    campaign: Campaign
    generators: list[Generator]
    people: list[Any]
    at: datetime = NOW
    count: int = 0
    candidates: list[Candidate] = field(default_factory=list)

    def pair(self, slug: str, **fields: Any) -> ContrastPair:
        category = next(name for name in CATEGORIES if slug.startswith(f"{name}_"))
        number = slug.rpartition("_")[2]
        values = {
            "prompt": f"{category} text {number}, with three apples",
            "contrast": f"{category} text {number}, with four apples",
            "alt_contrast": f"{category} {number}: a bowl" if category == "negation" else "",
        }
        return ContrastPair.objects.create(
            slug=slug, category_id=category, **{"bank": "test", **values, **fields}
        )

    def candidate(
        self, pair: ContrastPair, side: str = "prompt", *, generator: Generator | None = None,
        seed: int | None = None, state: str = "rendered", data: bytes | None = None,
    ) -> Candidate:  # fmt: skip
        self.count += 1
        row = Candidate.objects.create(
            pair=pair, side=side, generator=generator or self.generators[0],
            seed=self.count if seed is None else seed,
        )  # fmt: skip
        if state == "rendered":
            row = store_image(candidate=row, data=data or picture(self.count), provenance={})
        elif state == "failed":
            fail_candidate(candidate=row, reason="out of memory")
        self.candidates.append(row)
        return row

    def judge(
        self, candidate: Candidate, verdicts: tuple[str, ...], role: str = "own", **fields: Any
    ) -> Item:
        item = Item.objects.create(
            campaign=self.campaign, candidate=candidate, pair=candidate.pair, text_role=role,
            group="g", opened_at=self.at,
            position=len(self.candidates),
            closed_at=self.at if len(verdicts) >= 3 else None,
        )  # fmt: skip
        rows = []
        for person, verdict in zip(self.people, verdicts, strict=False):
            self.at += timedelta(seconds=4)
            rows.append(
                Judgement(
                    campaign=self.campaign, item=item, annotator=person, verdict=verdict,
                    client_key=uuid.uuid4(), answered_at=self.at, created_at=self.at,
                    guideline_version="1", active_ms=2_500, **fields,
                )
            )  # fmt: skip
        Judgement.objects.bulk_create(rows)
        return item

    def verified(self, pair: ContrastPair, side: str = "prompt", **fields: Any) -> Candidate:
        row = self.candidate(pair, side, **fields)
        self.judge(row, ALL_ACCEPT)
        return row


def make_world(**campaign: Any) -> World:
    guideline, _ = Guideline.objects.get_or_create(version="1", defaults={"body": "Judge."})
    values = {"slug": "main", "title": "Main", "guideline": guideline, "state": "open"}
    return World(
        campaign=Campaign.objects.create(**{**values, **campaign}),
        generators=[
            Generator.objects.create(
                slug=slug, label=label, model_id=model, revision="r1", licence=licence
            )
            for slug, label, model, licence in (
                (
                    "FLUX_1_dev",
                    "FLUX.1-dev",
                    "black-forest-labs/FLUX.1-dev",
                    "FLUX.1-dev non-commercial",
                ),
                (
                    "stable_diffusion_3_5_large",
                    "SD 3.5 Large",
                    "stabilityai/sd-3.5",
                    "Stability Community",
                ),
            )
        ],
        people=[make_user(username=f"person{n}@example.org") for n in range(1, 6)],
    )


def full_world(pairs: int = 2, seeds: int = 2, **campaign: Any) -> World:
    """Verified images on both evaluated sides of every category, by both generators."""
    world = make_world(**campaign)
    for category in CATEGORIES:
        for number in range(1, pairs + 1):
            pair = world.pair(f"{category}_{number}")
            for side in pair.generated_sides:
                for generator in world.generators:
                    for seed in range(1, seeds + 1):
                        world.verified(pair, side, generator=generator, seed=seed)
    return world
