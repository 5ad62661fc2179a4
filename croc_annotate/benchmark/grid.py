"""Counting wins and ties over all image pairs of a group in O(n log n) (pure, numpy).

A grid compares each value a of one set with each value b of another, group by group. The
b of each group are sorted once; one vectorised binary search then serves all groups.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from croc_annotate.benchmark.groups import Groups, Rows
    from croc_annotate.benchmark.layout import Floats, Ints

# So many values are compared at a time: the arrays in between stay in the processor's cache, and
# are small enough for the allocator to hand the same ones out again instead of mapping new pages.
_BLOCK = 1 << 13


def count_grid(
    a: Floats, a_groups: Groups, b: Floats, b_groups: Groups, *, margin: float = 0.0
) -> tuple[Ints, Ints]:
    """For each group: how many (a, b) have b lower, and how many tie; NaN never counts.

    Values whose difference is at most `margin` tie. Returns two int64 arrays of shape
    (n_groups,).
    """
    n = b_groups.n_groups
    wins, ties = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    if not len(a) or not len(b):
        return wins, ties
    for rows in b_groups.rows:
        lower, equal = _count_rows(rows, rows.sorted(b), a, a_groups.key, margin)
        wins += a_groups.sum(lower)
        if equal is not None:
            ties += a_groups.sum(equal)
    return wins, ties


def _count_rows(
    rows: Rows, values: Floats, a: Floats, keys: Ints, margin: float
) -> tuple[Ints, Ints | None]:
    """For each a: how many of its group's sorted row are lower, and how many tie (None: none)."""
    search = _Search(values, rows.width, block=min(_BLOCK, len(a)))
    lower = np.zeros(len(a), dtype=np.int64)
    equal: Ints | None = None
    for first in range(0, len(a), _BLOCK):
        own, starts = a[first : first + _BLOCK], rows.start.take(keys[first : first + _BLOCK])
        into: Ints | slice = slice(first, first + len(own))
        if starts.min() < 0:  # some groups have rows of another width, or none
            here = np.flatnonzero(starts >= 0)
            own, starts, into = own[here], starts[here], first + here
        # Nothing is lost by leaving a margin of zero out: x − 0 is x.
        low, high = (own - margin, own + margin) if margin else (own, own)
        below = search(starts, low, np.less)
        lower[into] = below - starts
        # Most values have no tie: only where the next entry reaches into it, search again.
        tied = np.flatnonzero(values.take(below) <= high)
        if len(tied):
            equal = np.zeros(len(a), dtype=np.int64) if equal is None else equal
            upto = search(starts[tied], high[tied], np.less_equal)
            equal[first + tied if isinstance(into, slice) else into[tied]] = upto - below[tied]
    return lower, equal


class _Search:
    """numpy's searchsorted, for a sorted row of its own for each value."""

    def __init__(self, values: Floats, width: int, *, block: int) -> None:
        self.values = values
        self.steps = [width >> k for k in range(1, width.bit_length())]
        self.place, self.seen = np.empty(block, np.int64), np.empty(block)
        self.goes_on = np.empty(block, bool)

    def __call__(self, starts: Ints, wanted: Floats, compare: np.ufunc) -> Ints:
        """Where each wanted value would stand in the row that begins at its start.

        With `np.less` left before its equals, with `np.less_equal` right behind them.
        """
        n, at = len(starts), starts.copy()
        place, seen, goes_on = self.place[:n], self.seen[:n], self.goes_on[:n]
        for step in self.steps:
            np.add(at, step - 1, out=place)
            # All are inside: "clip" only saves a check.
            self.values.take(place, out=seen, mode="clip")
            compare(seen, wanted, out=goes_on)
            np.multiply(goes_on, step, out=place)
            np.add(at, place, out=at)
        return at
