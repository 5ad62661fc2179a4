"""`random`: the reference row of pure chance, reproducible from a seed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from croc_annotate.benchmark.metric import (
    ImageInput,
    ImageNeed,
    MetricFacts,
    MetricOptions,
    ScoreBatch,
    check_batch,
    check_options,
)
from croc_annotate.lib.hashing import stable_unit

if TYPE_CHECKING:
    from collections.abc import Sequence


class RandomMetric:
    """Uniform in [0, 1) from SHA-256 of seed, image and text: no state, no order, no clock."""

    needs: ImageNeed = "hash"

    def __init__(self, *, options: MetricOptions) -> None:
        check_options(options, "random")
        self._seed = options.seed

    def describe(self) -> MetricFacts:
        """Only the seed decides the scores."""
        return MetricFacts(
            name="random",
            label="Random",
            settings={"seed": str(self._seed)},
            source="SHA-256 of seed, image and text",
        )

    def score(self, *, images: Sequence[ImageInput], texts: Sequence[Sequence[str]]) -> ScoreBatch:
        """One uniform number for each pair of image and text."""
        check_batch(images, texts)
        return ScoreBatch(
            scores=[
                [stable_unit("random", self._seed, image.sha256, text) for text in own]
                for image, own in zip(images, texts, strict=True)
            ]
        )

    def close(self) -> None:
        """Nothing is held."""
