"""Counting wins and ties over all image pairs of a group in O(n log n) (pure, numpy).

A grid compares each value a of one set with each value b of another, group by group. The
b of each group are sorted once; one vectorised binary search then serves all groups.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from croc_annotate.benchmark.groups import Groups
    from croc_annotate.benchmark.layout import Floats, Ints

# The search works on so many values at a time: its arrays then stay in the processor's cache.
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
        values = rows.sorted(b)
        starts = rows.start[a_groups.key]
        keys, own = a_groups.key, a
        if starts.min() < 0:  # some groups have rows of another width, or none
            here = np.flatnonzero(starts >= 0)
            starts, keys, own = starts[here], keys[here], a[here]
        low, high = own - margin, own + margin
        below = _search(values, starts, low, rows.width, side="left")
        wins += _sum(keys, below - starts, n)
        # Most values have no tie: only where the next entry reaches into it, search again.
        tied = np.flatnonzero(values.take(below) <= high)
        if len(tied):
            upto = _search(values, starts[tied], high[tied], rows.width, side="right")
            ties += _sum(keys[tied], upto - below[tied], n)
    return wins, ties


def _search(values: Floats, starts: Ints, wanted: Floats, width: int, *, side: str) -> Ints:
    """Where each wanted value would stand in the sorted row that begins at its start.

    As numpy's searchsorted, for one row a value: left before its equals, right behind them.
    """
    compare = np.less if side == "left" else np.less_equal
    found = starts.copy()
    steps = [width >> k for k in range(1, width.bit_length())]
    block = min(_BLOCK, len(found))
    place, seen, goes_on = np.empty(block, np.int64), np.empty(block), np.empty(block, bool)
    for first in range(0, len(found), block):
        at, key = found[first : first + block], wanted[first : first + block]
        if len(at) < block:
            place, seen, goes_on = place[: len(at)], seen[: len(at)], goes_on[: len(at)]
        for step in steps:
            np.add(at, step - 1, out=place)
            values.take(place, out=seen, mode="clip")  # all are inside: clip only saves a check
            compare(seen, key, out=goes_on)
            np.multiply(goes_on, step, out=place)
            np.add(at, place, out=at)
    return found


def _sum(keys: Ints, numbers: Ints, n: int) -> Ints:
    # bincount adds in float64: exact for whole numbers below 2**53.
    return np.bincount(keys, weights=numbers, minlength=n).astype(np.int64)
