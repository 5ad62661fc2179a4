"""Scenes (drawn, not generated): a renderer that needs neither a GPU nor weights.

It parses sentences of a small grammar and draws them with Pillow. With a stated, seeded error
rate it draws the wrong value of the property under test, and says so in the provenance: the
truth of each image is known. It feeds the demo, the training of annotators, tests and load
benchmarks; it is no text-to-image model and is labelled so everywhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import PIL

from generation.pipeline import RenderedImage, RenderFailure
from generation.render_settings import SettingsError
from generation.scenes.dice import Dice
from generation.scenes.drawing import draw
from generation.scenes.grammar import SceneError, parse, wrong

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from generation.pipeline import GeneratorSpec, Outcome

SLUG = "scenes"
LABEL = "Scenes (drawn, not generated)"
LICENCE = "CC0-1.0"
DRAWING_VERSION = "1"


class ScenesPipeline:
    """Draws sentences of the scene grammar, wrongly at the error rate of its settings."""

    defaults: ClassVar[Mapping[str, object]] = {
        "width": 512,
        "height": 512,
        "error_rate": 0.3,
        "batch_size": 16,
    }

    def __init__(self, spec: GeneratorSpec) -> None:
        if spec.settings.width != spec.settings.height:
            raise SettingsError("Drawn scenes are square: set width and height to the same value.")
        self.spec = spec

    def load(self) -> None:
        """Nothing to load."""

    def render(self, text: str, seeds: Sequence[int]) -> Iterator[Outcome]:
        """Yield one drawing per seed; a sentence outside the grammar fails with its reason."""
        settings = self.spec.settings
        # Two rows of this pipeline are two generators: they must not draw the same pictures.
        hand = "" if self.spec.slug == SLUG else self.spec.slug
        try:
            asked = parse(text)
        except SceneError as error:
            yield from (RenderFailure(seed, str(error)) for seed in seeds)
            return
        for seed in seeds:
            dice = Dice("error", hand, text, seed)
            truth = dice.unit() >= settings.error_rate
            scene = asked if truth else wrong(asked, dice)
            facts = {
                "renderer": SLUG,
                "truth": truth,
                "error_rate": settings.error_rate,
                "drawn": scene.as_facts(),
            }
            yield RenderedImage(seed, image=draw(scene, seed, settings.width, hand), facts=facts)

    def describe(self) -> dict[str, object]:
        """Provenance that all drawings share."""
        return {
            "renderer": SLUG,
            "label": LABEL,
            "drawing_version": DRAWING_VERSION,
            "pillow": PIL.__version__,
            "settings": self.spec.settings.as_json(),
        }

    def close(self) -> None:
        """Nothing to give back."""
