"""Seeds as people write them: "1-50", "1,2,7-9"."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_PART = re.compile(r"(\d{1,18})(?:-(\d{1,18}))?")
MAX_SEEDS = 100_000


def parse_seeds(text: str) -> list[int]:
    """Sorted seeds without repeats; raises ValueError that shows the wrong part."""
    seeds: set[int] = set()
    for part in text.replace(" ", "").split(","):
        match = _PART.fullmatch(part)
        if match is None:
            raise ValueError(f"{part!r} is neither a seed nor a range like 1-50")
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first:
            raise ValueError(f"the range {part} runs backwards")
        if len(seeds) + last - first + 1 > MAX_SEEDS:
            raise ValueError(f"more than {MAX_SEEDS:,} seeds")
        seeds.update(range(first, last + 1))
    return sorted(seeds)


def show_seeds(seeds: Iterable[int]) -> str:
    """The shortest text that `parse_seeds` reads back."""
    runs: list[list[int]] = []
    for seed in sorted(set(seeds)):
        if runs and seed == runs[-1][1] + 1:
            runs[-1][1] = seed
        else:
            runs.append([seed, seed])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)
