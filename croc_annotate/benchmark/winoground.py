"""Sets of two texts and two images: text, image and group score (pure).

After Thrush et al. (2022), "Winoground": caption 0 belongs to image 0, caption 1 to image 1.
All comparisons are strict; a missing score makes its comparisons wrong under "loss" and the
example leave n under "skip".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from croc_annotate.benchmark.layout import Bools, Floats
    from croc_annotate.benchmark.protocol import Missing

CHANCE: Final = {"text": 0.25, "image": 0.25, "group": 1 / 6}


@dataclass(frozen=True)
class WinogroundResult:
    """Shares of examples, and how many had a tie or a missing score."""

    text: float | None
    image: float | None
    group: float | None
    n: int
    ties: int
    missing: int


def score_examples(scores: Floats, *, missing: Missing = "error") -> WinogroundResult:
    """Score an array of shape (examples, 2 captions, 2 images): `scores[e, c, i]` is s(c, i)."""
    holes = np.isnan(scores).any(axis=(1, 2))
    if missing == "error" and holes.any():
        raise ValueError(f"{int(holes.sum())} examples lack a score; choose skip or loss.")
    kept = scores[~holes] if missing == "skip" else scores
    text, image, ties = _compare(kept)
    n = len(kept)
    return WinogroundResult(
        text=float(text.mean()) if n else None,
        image=float(image.mean()) if n else None,
        group=float((text & image).mean()) if n else None,
        n=n,
        ties=int(ties.sum()),
        missing=int(holes.sum()),
    )


def text_accuracy(positive: Floats, negative: Floats) -> tuple[float | None, int, int]:
    """SugarCrepe's statistic: share of images whose caption beats the negative; n and ties."""
    known = ~np.isnan(positive) & ~np.isnan(negative)
    p, q = positive[known], negative[known]
    return (float(np.mean(p > q)) if len(p) else None, len(p), int(np.count_nonzero(p == q)))


def _compare(s: Floats) -> tuple[Bools, Bools, Bools]:
    text = (s[:, 0, 0] > s[:, 1, 0]) & (s[:, 1, 1] > s[:, 0, 1])
    image = (s[:, 0, 0] > s[:, 0, 1]) & (s[:, 1, 1] > s[:, 1, 0])
    ties = (
        (s[:, 0, 0] == s[:, 1, 0])
        | (s[:, 1, 1] == s[:, 0, 1])
        | (s[:, 0, 0] == s[:, 0, 1])
        | (s[:, 1, 1] == s[:, 1, 0])
    )
    return text, image, ties
