"""The order of a release's files, the same on every database and machine."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

SIDE_ORDER = {"prompt": 0, "contrast": 1, "alt_contrast": 2}
_DIGITS = re.compile(r"(\d+)")


def natural(text: str) -> tuple[tuple[int, int, str], ...]:
    """A sort key in which ``counting_7`` stands before ``counting_10``."""
    return tuple(
        (0, int(part), part) if part.isdigit() else (1, 0, part)
        for part in _DIGITS.split(text)
        if part
    )


def pair_key(
    *, category: str, slug: str, version: int, positions: Mapping[str, int]
) -> tuple[object, ...]:
    """Where a pair stands: by category, then by the number in its name."""
    return (positions.get(category, len(positions)), category, natural(slug), version)
