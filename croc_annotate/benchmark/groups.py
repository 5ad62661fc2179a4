"""Images in groups, and each group's values as one sorted row of a matrix (pure, numpy)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from croc_annotate.benchmark.layout import Bools, Floats, Ints

# Groups share one matrix as long as its padding stays below this multiple of the entries. Else
# they are split by size, each width being _GROWTH times the last, so that one group of 10,000
# images does not make 10,000 columns for every small one.
_MOST_PADDING = 4
_GROWTH = 4


class Groups:
    """A partition of n entries into `n_pairs` × `per_pair` groups.

    `key` names each entry's group: pair · per_pair + k with 0 ≤ k < per_pair, shape (n,).
    """

    def __init__(self, key: Ints, n_pairs: int, per_pair: int = 1) -> None:
        self.key = key
        self.n_pairs = n_pairs
        self.per_pair = per_pair

    # What is derived from the key is not kept between visits: it is quicker made than read.
    def __getstate__(self) -> dict[str, Any]:
        return {"key": self.key, "n_pairs": self.n_pairs, "per_pair": self.per_pair}

    @property
    def n_groups(self) -> int:
        """Number of groups, the empty ones too."""
        return self.n_pairs * self.per_pair

    @cached_property
    def sizes(self) -> Ints:
        """Number of entries of each group, shape (n_groups,)."""
        return np.bincount(self.key, minlength=self.n_groups)

    @cached_property
    def runs(self) -> Ints:
        """Where the group changes from one entry to the next, the first entry too, shape (n_runs,)."""
        changes = np.flatnonzero(self.key[1:] != self.key[:-1]) + 1
        return np.r_[0, changes] if len(self.key) else changes

    def count(self, keep: Bools) -> Ints:
        """Number of entries of each group where `keep` is true, shape (n_groups,)."""
        return self.sizes if keep.all() else self.sum(keep)

    def sum(self, numbers: Ints | Bools) -> Ints:
        """Whole numbers, one an entry, summed up by group, shape (n_groups,).

        Tables list a pair's images one after another: each such run is summed in one pass, which
        is ten times as fast as looking up every entry's group. Any other order is right, too.
        """
        if not len(self.key):
            return np.zeros(self.n_groups, dtype=np.int64)
        by_run = np.add.reduceat(numbers, self.runs, dtype=np.int64)
        # bincount adds in float64: exact for whole numbers below 2**53.
        total = np.bincount(self.key[self.runs], weights=by_run, minlength=self.n_groups)
        return total.astype(np.int64)

    def by_pair(self, numbers: Ints) -> Ints:
        """One number a group, summed up by pair: shape (n_groups,) → (n_pairs,)."""
        total: Ints = numbers.reshape(self.n_pairs, self.per_pair).sum(axis=1)
        return total

    @cached_property
    def slot(self) -> Ints:
        """Each entry's place 0, 1, … within its group, shape (n,)."""
        if len(self.runs) == np.count_nonzero(self.sizes):  # each group stands in one piece
            lengths = np.diff(self.runs, append=len(self.key))
            return np.arange(len(self.key)) - np.repeat(self.runs, lengths)
        # numpy sorts 16-bit integers by radix, ten times faster than wider ones.
        small = self.n_groups <= 2**16
        order = np.argsort(self.key.astype(np.uint16) if small else self.key, kind="stable")
        first = np.cumsum(self.sizes) - self.sizes
        slot = np.empty(len(order), dtype=np.int64)
        slot[order] = np.arange(len(order)) - np.repeat(first, self.sizes)
        return slot

    @cached_property
    def rows(self) -> tuple[Rows, ...]:
        """Where each entry goes in the matrices that hold a row for each group."""
        found, narrower = [], 1
        for width in self._widths():
            inside = (self.sizes >= narrower) & (self.sizes < width)
            if inside.any():
                found.append(self._rows(inside, width))
            narrower = width
        return tuple(found)

    def _widths(self) -> list[int]:
        """Powers of two, each more than the sizes of the groups that use it."""
        largest = int(self.sizes.max(initial=0))
        width = 1 << largest.bit_length()
        if np.count_nonzero(self.sizes) * width <= _MOST_PADDING * len(self.key):
            return [width]
        widths = [_GROWTH]
        while widths[-1] <= largest:
            widths.append(widths[-1] * _GROWTH)
        return widths

    def _rows(self, inside: Bools, width: int) -> Rows:
        start = np.where(inside, (np.cumsum(inside) - 1) * width, -1)
        place = start[self.key] + self.slot
        entries = None
        if not inside[self.key].all():
            entries = np.flatnonzero(inside[self.key])
            place = place[entries]
        return Rows(width, int(np.count_nonzero(inside)), start, entries, place)


@dataclass(frozen=True)
class Rows:
    """The groups of about one size as rows of a matrix, laid flat."""

    width: int
    """A power of two, more than the size of any group in it."""
    n: int
    """Number of rows."""
    start: Ints
    """Where each group's row begins, −1 for a group that has none here; shape (n_groups,)."""
    entries: Ints | None
    """The entries that are in it; None for all."""
    place: Ints
    """Where each of them goes."""

    def sorted(self, values: Floats) -> Floats:
        """The entries' values in sorted rows, laid flat; NaN (missing, padding) last."""
        rows = np.full(self.n * self.width, np.nan)
        rows[self.place] = values if self.entries is None else values[self.entries]
        rows.reshape(self.n, self.width).sort(axis=1)
        return rows
