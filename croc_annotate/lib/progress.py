"""Progress of long work: a bar on a terminal, silence elsewhere."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, TextIO, TypeVar

from tqdm import tqdm

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

T = TypeVar("T")


def progress(
    items: Iterable[T], *, total: int | None, label: str, stream: TextIO | None = None
) -> Iterator[T]:
    """Yield ``items``, drawing a bar with rate and ETA on stderr when that is a terminal."""
    out = stream or sys.stderr
    bar = tqdm(
        items,
        total=total,
        desc=label,
        file=out,
        disable=not out.isatty(),
        dynamic_ncols=True,
        mininterval=0.5,
    )
    yield from bar
