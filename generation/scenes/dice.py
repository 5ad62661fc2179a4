"""Chance that is the same on every machine and Python version."""

from __future__ import annotations

import hashlib
import random
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Sequence

T = TypeVar("T")


class Dice:
    """A seeded source of choices; only ``Random.random`` is used, whose stream never changes."""

    def __init__(self, *parts: object) -> None:
        text = "\x1f".join(str(part) for part in parts)
        digest = hashlib.sha256(text.encode("utf-8")).digest()
        self._random = random.Random(int.from_bytes(digest[:8], "big"))  # noqa: S311 - drawings

    def unit(self) -> float:
        """A number in [0, 1)."""
        return self._random.random()

    def between(self, low: float, high: float) -> float:
        """A number in [low, high)."""
        return low + (high - low) * self.unit()

    def choice(self, options: Sequence[T]) -> T:
        """One of the options; raises IndexError without any."""
        return options[int(self.unit() * len(options))]

    def shuffled(self, options: Sequence[T]) -> list[T]:
        """The options in a random order."""
        keys = sorted((self.unit(), index) for index in range(len(options)))
        return [options[index] for _, index in keys]
