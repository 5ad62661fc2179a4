"""What all dual encoders share: score a batch from embeddings, each text encoded once in a run."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import numpy as np

from croc_annotate.benchmark.metric import (
    ImageInput,
    ImageNeed,
    ScoreBatch,
    as_score,
    check_batch,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

TEXT_CACHE = 20_000  # texts kept; a row of 1,024 floats each is 80 MB
TEXT_BATCH = 64


class DualEncoderScoring(ABC):
    """Gives `score` to a class that can embed images and texts and compare the two."""

    needs: ImageNeed = "pixels"

    def __init__(self) -> None:
        self._texts: dict[str, np.ndarray] = {}
        self._truncated: dict[str, bool] = {}

    @abstractmethod
    def embed_images(self, *, images: Sequence[ImageInput]) -> np.ndarray:
        """float32 [images, width], rows of length 1."""

    @abstractmethod
    def embed_texts(self, *, texts: Sequence[str]) -> np.ndarray:
        """float32 [texts, width], rows of length 1."""

    @abstractmethod
    def similarity(self, *, images: np.ndarray, texts: np.ndarray) -> np.ndarray:
        """float32 [images, texts]: scores from embeddings."""

    @abstractmethod
    def truncated(self, *, texts: Sequence[str]) -> frozenset[str]:
        """Texts that do not fit into the text encoder."""

    def score(self, *, images: Sequence[ImageInput], texts: Sequence[Sequence[str]]) -> ScoreBatch:
        """Each image once, each text once in the life of the metric, then inner products."""
        check_batch(images, texts)
        if not images:
            return ScoreBatch(scores=[])
        self._remember(text for own in texts for text in own)
        pictures = self.embed_images(images=images)
        scores = [
            self._row(picture[None, :], own) for picture, own in zip(pictures, texts, strict=True)
        ]
        cut = {text for own in texts for text in own if self._truncated[text]}
        return ScoreBatch(scores=scores, truncated=frozenset(cut))

    def _row(self, picture: np.ndarray, own: Sequence[str]) -> list[float | None]:
        # One text at a time: the same product whatever else is in the batch, so that a score
        # does not depend on its neighbours.
        return [
            as_score(float(self.similarity(images=picture, texts=self._texts[text][None, :])[0, 0]))
            for text in own
        ]

    def _remember(self, texts: Iterable[str]) -> None:
        wanted = dict.fromkeys(texts)
        if len(self._texts) + len(wanted) > TEXT_CACHE:
            self._texts.clear()
            self._truncated.clear()
        new = [text for text in wanted if text not in self._texts]
        for start in range(0, len(new), TEXT_BATCH):
            part = new[start : start + TEXT_BATCH]
            cut = self.truncated(texts=part)
            for text, row in zip(part, self.embed_texts(texts=part), strict=True):
                self._texts[text] = row
                self._truncated[text] = text in cut


def unit_rows(vectors: np.ndarray) -> np.ndarray:
    """Rows scaled to length 1 in float32; a row of zeros stays zeros."""
    vectors = np.asarray(vectors, dtype=np.float32)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    safe = np.where(lengths > 0, lengths, np.float32(1))
    return np.asarray(vectors / safe, dtype=np.float32)
