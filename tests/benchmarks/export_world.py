"""Run as a program: a frozen release of N images in the database of DATABASE_URL, files in MEDIA_ROOT."""

from __future__ import annotations

import hashlib
import io
import sys
import zlib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import django
import numpy as np
from django.db import transaction
from PIL import Image

AT = datetime(2026, 3, 1, tzinfo=UTC)
BASES = 40
PER_PAIR = 60
AT_ONCE = 2_000


def base_images(side: int) -> list[bytes]:
    """A few pictures with the noise of a photograph, as PNG."""
    images = []
    for number in range(BASES):
        chance = np.random.default_rng(number)
        coarse = chance.integers(0, 255, (side // 32, side // 32, 3), dtype=np.uint8)
        picture = np.asarray(Image.fromarray(coarse).resize((side, side), Image.Resampling.BICUBIC))
        grain = chance.integers(0, 2, (side, side, 1), dtype=np.uint8)
        out = io.BytesIO()
        Image.fromarray(np.clip(picture + grain, 0, 255).astype(np.uint8)).save(out, "PNG")
        images.append(out.getvalue())
    return images


def numbered(data: bytes, number: int) -> bytes:
    """The same picture as a file of its own: a text chunk with its number before the end."""
    body = b"tEXtNumber\0" + str(number).encode()
    chunk = len(body[4:]).to_bytes(4, "big") + body + zlib.crc32(body).to_bytes(4, "big")
    return data[:-12] + chunk + data[-12:]


def build(images: int, side: int) -> None:
    """400 pairs at 23,800 images; everything verified by three people.

    Made and stored a few thousand at a time, each in one transaction: a quarter of a million images
    take no more memory than the first thousands, and no `fsync` for every batch of rows.
    """
    from croc_annotate.annotation.models import Campaign
    from croc_annotate.releases.services import freeze_release
    from tests.factories import make_user

    pairs = make_pairs(-(-images // PER_PAIR))
    generators = make_generators()
    campaign = Campaign.objects.create(slug="main", title="Main")
    people = [make_user(username=f"p{n}") for n in range(3)]
    bases = base_images(side)
    for start in range(0, images, AT_ONCE):
        numbers = range(start, min(start + AT_ONCE, images))
        with transaction.atomic():
            rows = [
                candidate(number, pairs[number // PER_PAIR], generators, bases, side)
                for number in numbers
            ]
            judge(campaign, people, type(rows[0]).objects.bulk_create(rows), start)
    freeze_release(name="bench", campaign=campaign, now=AT)


def make_pairs(count: int) -> list[Any]:
    """Pairs of all categories in turn."""
    from croc_annotate.prompts.models import ContrastPair
    from croc_annotate.prompts.rules import CATEGORIES

    return ContrastPair.objects.bulk_create(
        [
            ContrastPair(
                slug=f"{CATEGORIES[n % 8]}_{n // 8 + 1}", category_id=CATEGORIES[n % 8],
                prompt=f"a plate with {n} apples", contrast=f"a plate with {n} pears, not apples",
                alt_contrast="pears" if CATEGORIES[n % 8] == "negation" else "",
            )
            for n in range(count)
        ],
        batch_size=2_000,
    )  # fmt: skip


def make_generators() -> list[Any]:
    """The two of the published benchmark."""
    from croc_annotate.candidates.models import Generator

    return [
        Generator.objects.create(slug=slug, label=slug)
        for slug in ("FLUX_1_dev", "stable_diffusion_3_5_large")
    ]


def candidate(number: int, pair: Any, generators: list[Any], bases: list[bytes], side: int) -> Any:
    """One image: its file is written, its row is returned."""
    from django.conf import settings

    from croc_annotate.candidates.models import Candidate

    data = numbered(bases[number % BASES], number)
    key = f"{number:032x}"
    path = Path(settings.MEDIA_ROOT) / "originals" / key[-2:] / f"{key}.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    place = number % PER_PAIR
    return Candidate(
        pair=pair, side=pair.generated_sides[place % 2], generator=generators[place // 2 % 2],
        seed=place // 4 + 1, state="rendered", key=key, image=f"originals/{key[-2:]}/{key}.png",
        sha256=hashlib.sha256(data).hexdigest(), width=side, height=side, rendered_at=AT,
    )  # fmt: skip


def judge(campaign: Any, people: list[Any], candidates: list[Any], start: int) -> None:
    """Three accepts for each, and a rejected answer here and there."""
    from croc_annotate.annotation.models import Item, Judgement

    items = Item.objects.bulk_create(
        [
            Item(
                campaign=campaign, candidate=row, pair_id=row.pair_id, group="g",
                position=start + number, key=row.key, opened_at=AT, closed_at=AT,
            )
            for number, row in enumerate(candidates)
        ]
    )  # fmt: skip
    for number, person in enumerate(people):
        Judgement.objects.bulk_create(
            [
                Judgement(
                    campaign=campaign, item=item, annotator=person, active_ms=2_000,
                    verdict="reject" if number == 2 and item.position % 7 == 0 else "accept",
                    answered_at=AT, created_at=AT,
                )
                for item in items
            ]
        )  # fmt: skip


if __name__ == "__main__":
    django.setup()
    from django.conf import settings as _settings
    from django.core.management import call_command

    _settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    call_command("migrate", verbosity=0)
    build(int(sys.argv[1]), int(sys.argv[2]))
