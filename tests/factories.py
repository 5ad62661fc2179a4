"""Makers of rows for tests: small, valid, named by what they are."""

from __future__ import annotations

import io
import itertools
from typing import Any

from PIL import Image

_count = itertools.count(1)


def png_bytes(*, colour: tuple[int, int, int] | None = None, size: int = 32) -> bytes:
    """A PNG of one colour; another one at each call unless ``colour`` is given."""
    number = next(_count)
    fill = colour or (number % 256, number // 256 % 256, 120)
    out = io.BytesIO()
    Image.new("RGB", (size, size), fill).save(out, "PNG")
    return out.getvalue()


def make_user(role: str = "annotator", **fields: Any):
    from django.contrib.auth import get_user_model

    name = fields.pop("username", f"{role}{next(_count)}")
    return get_user_model().objects.create_user(
        name, password=fields.pop("password", "a good passphrase"), role=role, **fields
    )


def make_pair(category: str = "counting", **fields: Any):
    from croc_annotate.prompts.models import Category, ContrastPair

    # A test with real transactions empties the tables, the migrated categories too.
    Category.objects.get_or_create(
        slug=category, defaults={"label": category.replace("_", " ").capitalize(), "position": 1}
    )
    number = next(_count)
    alt = "an empty table" if category == "negation" else ""
    values = {
        "slug": f"{category}_{number}",
        "prompt": f"{number} red apples on a plate",
        "contrast": f"{number + 1} red apples on a plate, not fewer",
        "alt_contrast": alt,
    }
    return ContrastPair.objects.create(category_id=category, **{**values, **fields})


def make_generator(slug: str | None = None, **fields: Any):
    from croc_annotate.candidates.models import Generator

    slug = slug or f"generator{next(_count)}"
    return Generator.objects.create(slug=slug, **{"label": slug, "licence": "test", **fields})


def make_candidate(
    *,
    pair=None,
    side: str = "prompt",
    generator=None,
    data: bytes | None = None,
    rendered: bool = True,
    **fields: Any,
):
    """A candidate with a small real image, stored through the public function."""
    from croc_annotate.candidates.models import Candidate, Generator
    from croc_annotate.candidates.services import store_image

    pair = pair or make_pair()
    generator = generator or Generator.objects.first() or make_generator()
    fields.setdefault("seed", next(_count))
    candidate = Candidate.objects.create(pair=pair, side=side, generator=generator, **fields)
    if rendered:
        candidate = store_image(candidate=candidate, data=data or png_bytes(), provenance={})
    return candidate


def make_campaign(**fields: Any):
    from croc_annotate.annotation.models import Campaign

    number = next(_count)
    values = {"slug": f"campaign{number}", "title": f"Campaign {number}", "state": "open"}
    return Campaign.objects.create(**{**values, **fields})
