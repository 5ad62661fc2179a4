"""Scoring on CROCsyn: pseudo-labelled images, several a prompt, the best one decides (pure).

A unit is one prompt, its contrast and one image generator, with n images of each text. Chance
holds for independent scores only: correlated ones can do better or worse without any skill.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from croc_annotate.benchmark.layout import Direction, Floats, Ints


@dataclass(frozen=True)
class UnitScores:
    """One row an image number of a unit, with all four scores of one metric, NaN if missing."""

    unit: Ints
    number: Ints
    """The image's number within its unit."""
    orig_orig: Floats
    """s(own text, own image)."""
    contrast_orig: Floats
    """s(contrast text, own image)."""
    contrast_contrast: Floats
    orig_contrast: Floats
    """s(own text, contrast image)."""

    def sides(self, direction: Direction) -> tuple[Floats, Floats]:
        """(the score that should be higher, the one that should be lower)."""
        return {
            "text_forward": (self.orig_orig, self.contrast_orig),
            "text_inverse": (self.contrast_contrast, self.orig_contrast),
            "image_forward": (self.orig_orig, self.orig_contrast),
            "image_inverse": (self.contrast_contrast, self.contrast_orig),
        }[direction]


def unit_outcomes(scores: UnitScores, direction: Direction, n_units: int) -> Floats:
    """1.0 right, 0.0 wrong, NaN where a unit has no own score, shape (n_units,)."""
    higher, lower = scores.sides(direction)
    if direction.startswith("text"):
        return _text_outcomes(scores, higher, lower, n_units)
    top_own, top_other = (_unit_max(scores.unit, s, n_units) for s in (higher, lower))
    return np.where(np.isnan(top_own), np.nan, (top_own > top_other).astype(np.float64))


def chance(direction: Direction, n: int, m: int) -> float:
    """The accuracy of independent scores: n own images, m contrast images."""
    return n / (n + 1) if direction.startswith("text") else n / (n + m)


def scaled(accuracy: float, chance_level: float) -> float:
    """Accuracy on −1…1 with chance at 0: always wrong −1, always right 1."""
    distance = accuracy - chance_level
    return distance / (1 - chance_level) if distance > 0 else distance / chance_level


def images_per_unit(unit: Ints) -> int:
    """The most common number of images of a unit (the larger one if two are as common)."""
    sizes = np.bincount(unit)
    counts = np.bincount(sizes[sizes > 0])
    return int(len(counts) - 1 - np.argmax(counts[::-1]))


def _text_outcomes(scores: UnitScores, own: Floats, other: Floats, n_units: int) -> Floats:
    kept = np.flatnonzero(~np.isnan(own))
    # Best own score first; among equals the lowest image number.
    order = kept[np.lexsort((scores.number[kept], -own[kept], scores.unit[kept]))]
    units, first = np.unique(scores.unit[order], return_index=True)
    best = order[first]
    outcome = np.full(n_units, np.nan)
    outcome[units] = own[best] > other[best]
    return outcome


def _unit_max(unit: Ints, values: Floats, n_units: int) -> Floats:
    top = np.full(n_units, -np.inf)
    known = ~np.isnan(values)
    np.maximum.at(top, unit[known], values[known])
    seen = np.zeros(n_units, dtype=bool)
    seen[unit[known]] = True
    return np.where(seen, top, np.nan)
