"""How many images at once: grow while it pays, halve when memory runs out (pure)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeVar

from croc_annotate.benchmark.metric import MetricMemoryError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

T = TypeVar("T")
R = TypeVar("R")

_START: Final = 4
_LIMIT: Final = 256
# Twice the batch must be at least this much faster an image to be worth its memory.
_GAIN: Final = 1.08
_TRIALS: Final = 2


@dataclass
class BatchSize:
    """The size of the next batch. Give `size` to fix it; 0 finds it by doubling."""

    size: int = 0
    automatic: bool = field(init=False)
    _best_rate: float = field(default=0.0, init=False)
    _rates: list[float] = field(default_factory=list, init=False)
    _ceiling: int = field(default=_LIMIT, init=False)
    _settled: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self.automatic = self.size <= 0
        self._settled = not self.automatic
        if self.automatic:
            self.size = _START

    def report(self, *, images: int, seconds: float) -> None:
        """Learn from a batch that worked. The first batch of a run warms up and is ignored."""
        if self._settled or images < self.size or seconds <= 0:
            return
        self._rates.append(images / seconds)
        if len(self._rates) <= _TRIALS:
            return
        rate = max(self._rates[1:])
        self._rates = []
        if self._best_rate and rate < self._best_rate * _GAIN:
            self.size, self._settled = max(self.size // 2, 1), True
            return
        self._best_rate = rate
        if self.size * 2 > self._ceiling:
            self._settled = True
        else:
            self.size *= 2

    def shrink(self) -> bool:
        """After memory ran out: halve, and never grow back. False when one image is too many."""
        if self.size <= 1:
            return False
        self._ceiling = self.size - 1
        self.size //= 2
        self._settled = True
        return True


def halving(call: Callable[[Sequence[T]], R], items: Sequence[T]) -> list[R]:
    """The answers for all items: one, or those of ever smaller parts where memory runs out.

    Raises MetricMemoryError when a single item is too large.
    """
    try:
        return [call(items)]
    except MetricMemoryError:
        if len(items) <= 1:
            raise
    half = len(items) // 2
    return [*halving(call, items[:half]), *halving(call, items[half:])]
