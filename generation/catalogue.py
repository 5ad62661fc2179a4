"""Generators that are known by name: a row is made from here when it is first asked for.

Slugs are the third field of the published file names. Licences are those on the model cards;
they concern the use of the weights and of what they draw, so read them before a release.
"""

from __future__ import annotations

from typing import Any

from croc_annotate.candidates.models import Generator

PUBLISHED = ("FLUX_1_dev", "stable_diffusion_3_5_large")

CATALOGUE: dict[str, dict[str, Any]] = {
    "FLUX_1_dev": {
        "label": "FLUX.1 [dev]",
        "pipeline": "flux",
        "model_id": "black-forest-labs/FLUX.1-dev",
        "licence": "FLUX.1 [dev] Non-Commercial License",
        "settings": {"steps": 50, "guidance": 3.5, "max_sequence_length": 512},
    },
    "stable_diffusion_3_5_large": {
        "label": "Stable Diffusion 3.5 Large",
        "pipeline": "sd3",
        "model_id": "stabilityai/stable-diffusion-3.5-large",
        "licence": "Stability AI Community License",
        "settings": {"steps": 28, "guidance": 3.5, "max_sequence_length": 256},
    },
    "FLUX_1_schnell": {
        "label": "FLUX.1 [schnell]",
        "pipeline": "flux",
        "model_id": "black-forest-labs/FLUX.1-schnell",
        "licence": "Apache-2.0",
        "settings": {"steps": 4, "guidance": 0.0, "max_sequence_length": 256},
    },
    "stable_diffusion_3_5_large_turbo": {
        "label": "Stable Diffusion 3.5 Large Turbo",
        "pipeline": "sd3",
        "model_id": "stabilityai/stable-diffusion-3.5-large-turbo",
        "licence": "Stability AI Community License",
        "settings": {"steps": 4, "guidance": 0.0, "max_sequence_length": 256},
    },
    "stable_diffusion_xl": {
        "label": "Stable Diffusion XL 1.0",
        "pipeline": "diffusers",
        "model_id": "stabilityai/stable-diffusion-xl-base-1.0",
        "licence": "CreativeML Open RAIL++-M",
        "settings": {"steps": 50, "guidance": 5.0, "dtype": "float16"},
    },
    "Qwen_Image": {
        "label": "Qwen-Image",
        "pipeline": "diffusers",
        "model_id": "Qwen/Qwen-Image",
        "licence": "Apache-2.0",
        "settings": {"steps": 50, "negative_prompt": " ", "extra": {"true_cfg_scale": 4.0}},
    },
    "openai_gpt_image_1": {
        "label": "OpenAI gpt-image-1",
        "pipeline": "openai-images",
        "model_id": "gpt-image-1",
        "licence": "OpenAI Terms of Use",
        "settings": {"quality": "medium", "price_per_image": 0.042, "max_spend": 10.0},
    },
    "scenes": {
        "label": "Scenes (drawn, not generated)",
        "pipeline": "scenes",
        "licence": "CC0-1.0",
        "is_drawn": True,
        "settings": {"width": 512, "height": 512, "error_rate": 0.3},
    },
}


def find_generator(slug: str) -> Generator:
    """The row of a generator, made from the catalogue if need be; raises LookupError."""
    row = Generator.objects.filter(slug=slug).first()
    if row is not None:
        return row
    if slug not in CATALOGUE:
        rows = Generator.objects.values_list("slug", flat=True)
        raise LookupError(
            f"No generator is called {slug!r}. Known: {', '.join(sorted({*rows, *CATALOGUE}))}. "
            "Others are added on the admin site or with Generator.objects.create(…)."
        )
    return Generator.objects.get_or_create(slug=slug, defaults=CATALOGUE[slug])[0]
