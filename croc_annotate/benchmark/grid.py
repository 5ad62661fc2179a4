"""Counting wins and ties over all image pairs of a group in O(n log n) (pure, numpy).

A grid compares each value a of one set with each value b of another, group by group. The
b of each group are sorted once; one vectorised binary search then serves all groups.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from croc_annotate.benchmark.layout import Floats, Groups, Ints

# Groups of similar size share a padded matrix. Widths grow by this factor, so that one
# group of 10,000 images does not make 10,000 columns for every small one.
_WIDTH_GROWTH = 4


def count_grid(
    a: Floats, a_groups: Groups, b: Floats, b_groups: Groups, *, margin: float = 0.0
) -> tuple[Ints, Ints]:
    """For each a: how many b of its group are lower, and how many tie; NaN never counts.

    Values whose difference is at most `margin` tie. Returns two int64 arrays of a's shape.
    """
    wins = np.zeros(len(a), dtype=np.int64)
    ties = np.zeros(len(a), dtype=np.int64)
    if not len(a) or not len(b):
        return wins, ties
    n_groups = int(max(a_groups.key.max(), b_groups.key.max())) + 1
    sizes = b_groups.counts(n_groups)
    for width in _widths(sizes):
        in_bucket = (sizes < width) & (sizes >= width // _WIDTH_GROWTH) & (sizes > 0)
        chosen = np.flatnonzero(in_bucket[a_groups.key] & ~np.isnan(a))
        if not len(chosen):
            continue
        rows, row_of = _sorted_rows(b, b_groups, in_bucket, width)
        base = row_of[a_groups.key[chosen]] * width
        wins[chosen], ties[chosen] = _search(rows, base, a[chosen], width, margin)
    return wins, ties


def _widths(sizes: Ints) -> list[int]:
    """Matrix widths, each more than the size of the groups that use it."""
    widths = [_WIDTH_GROWTH]
    while widths[-1] <= sizes.max():
        widths.append(widths[-1] * _WIDTH_GROWTH)
    return widths


def _sorted_rows(
    b: Floats, groups: Groups, in_bucket: np.ndarray, width: int
) -> tuple[Floats, Ints]:
    """One sorted row for each group of the bucket, flattened; NaN (missing, padding) last."""
    row_of = np.cumsum(in_bucket) - 1
    rows = np.full((int(in_bucket.sum()), width), np.nan)
    entry = in_bucket[groups.key]
    rows[row_of[groups.key[entry]], groups.slot[entry]] = b[entry]
    rows.sort(axis=1)
    return rows.ravel(), row_of


def _search(rows: Floats, base: Ints, a: Floats, width: int, margin: float) -> tuple[Ints, Ints]:
    """Numbers of row entries below a − margin, and from there up to a + margin."""
    below = base.copy()
    low = a - margin
    for step in _steps(width):
        below += np.where(rows[below + (step - 1)] < low, step, 0)
    wins = below - base
    # Most values have no tie: only where the next entry reaches into it, search again.
    high = a + margin
    tied = np.flatnonzero(rows[below] <= high)
    ties = np.zeros_like(wins)
    if len(tied):
        upto = base[tied]
        for step in _steps(width):
            upto += np.where(rows[upto + (step - 1)] <= high[tied], step, 0)
        ties[tied] = upto - below[tied]
    return wins, ties


def _steps(width: int) -> list[int]:
    """Halving steps for a binary search over fewer than `width` (a power of two) entries."""
    return [width >> k for k in range(1, width.bit_length())]
