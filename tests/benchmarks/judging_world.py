"""``python -m tests.benchmarks.judging_world ITEMS``: two campaigns of real images and a session.

Prints JSON with the session's cookie and the campaigns' addresses. Run with the environment
(DATABASE_URL, MEDIA_ROOT) of the server that is measured.
"""

from __future__ import annotations

import io
import json
import random
import sys

PER_TEXT = 10


def photograph(number: int, size: int = 1024) -> bytes:
    """A JPEG of the size and weight of a generated image: noise in patches, no flat colour."""
    from PIL import Image

    rng = random.Random(number)
    small = Image.new("RGB", (64, 64))
    small.putdata([tuple(rng.randrange(256) for _ in range(3)) for _ in range(64 * 64)])
    out = io.BytesIO()
    small.resize((size, size), Image.Resampling.BICUBIC).save(out, "JPEG", quality=88)
    return out.getvalue()


def build(items: int) -> dict[str, str]:
    """Texts with ten images each, judged in focus mode by one campaign, in a grid by the other."""
    from django.contrib.auth import get_user_model
    from django.test import Client

    from croc_annotate.annotation.services import create_campaign, set_campaign_state
    from croc_annotate.candidates.models import Candidate, Generator
    from croc_annotate.candidates.services import store_image
    from croc_annotate.prompts.models import ContrastPair

    generator = Generator.objects.create(slug="bench", label="Bench", licence="test")
    for i in range(items // PER_TEXT):
        pair = ContrastPair.objects.create(
            slug=f"counting_{i}",
            category_id="counting",
            prompt=f"{i} red apples on a wooden table",
            contrast=f"{i} green apples on a wooden table",
        )
        for seed in range(PER_TEXT):
            row = Candidate.objects.create(pair=pair, side="prompt", generator=generator, seed=seed)
            data = photograph(i * PER_TEXT + seed)
            store_image(candidate=row, data=data, provenance={})
    for mode in ("focus", "grid"):
        campaign = create_campaign(
            slug=mode,
            title=mode.capitalize(),
            mode=mode,
            grid_size=PER_TEXT,
            min_judgements=1,
            max_judgements=1,
            min_distance=0,
        )
        set_campaign_state(campaign=campaign, state="open", actor=None)
    client = Client()
    client.force_login(get_user_model().objects.create_user("bench", role="annotator"))
    return {"session": client.cookies["sessionid"].value}


if __name__ == "__main__":
    import os

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "croc_annotate.settings")
    import django

    django.setup()
    print(json.dumps(build(int(sys.argv[1]))))
