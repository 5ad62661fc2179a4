"""Which metrics differ: paired differences, Holm's correction, groups as letters (pure)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from croc_annotate.benchmark.intervals import interval_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from croc_annotate.benchmark.layout import Floats

ALPHA = 0.05


@dataclass(frozen=True)
class Difference:
    """One minus the other, on the same draws."""

    first: str
    second: str
    difference: float
    low: float
    high: float
    p: float
    p_holm: float = 1.0

    @property
    def significant(self) -> bool:
        """Whether the two can be told apart at 5 % after Holm's correction."""
        return self.p_holm <= ALPHA


def paired_p(differences: Floats) -> float:
    """Two-sided bootstrap p: twice the smaller tail at zero, each tail with its +1."""
    defined = differences[~np.isnan(differences)]
    below = int(np.count_nonzero(defined <= 0)) + 1
    above = int(np.count_nonzero(defined >= 0)) + 1
    return min(1.0, 2.0 * min(below, above) / (len(defined) + 1))


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down adjusted p-values, in the order given."""
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    adjusted = [0.0] * len(p_values)
    running = 0.0
    for rank, index in enumerate(order):
        running = max(running, (len(p_values) - rank) * p_values[index])
        adjusted[index] = min(1.0, running)
    return adjusted


def smallest_adjusted_p(comparisons: int, draws: int) -> float:
    """The least p that any difference can have: one tail empty but for its +1, and first in Holm's order.

    Above `ALPHA` nothing can be told apart, however clear: with 10,000 draws from 23 metrics on.
    """
    return min(1.0, comparisons * 2.0 / (draws + 1))


def all_differences(values: Mapping[str, float], draws: Mapping[str, Floats]) -> list[Difference]:
    """Every pair of metrics, corrected over all of these pairs; higher value first."""
    ranked = sorted(values, key=lambda name: (-values[name], name))
    found = []
    for first, second in combinations(ranked, 2):
        drawn = draws[first] - draws[second]
        low, high = interval_of(drawn)
        found.append((first, second, low, high, paired_p(drawn)))
    adjusted = holm([f[4] for f in found])
    return [
        Difference(a, b, values[a] - values[b], low, high, p, p_holm)
        for (a, b, low, high, p), p_holm in zip(found, adjusted, strict=True)
    ]


def letter_groups(ranked: Sequence[str], differences: Sequence[Difference]) -> dict[str, str]:
    """Letters for each metric: two share a letter exactly when they cannot be told apart.

    Insert-and-absorb (Piepho 2004): start with one group of all; each significant pair
    splits the groups that hold both; groups inside another one are dropped.
    """
    groups: list[frozenset[str]] = [frozenset(ranked)] if ranked else []
    for pair in differences:
        if pair.significant:
            groups = _absorb(_split(groups, pair.first, pair.second))
    place = {name: index for index, name in enumerate(ranked)}
    groups.sort(key=lambda group: sorted(place[name] for name in group))
    return {
        name: "".join(letter(i) for i, group in enumerate(groups) if name in group)
        for name in ranked
    }


def letter(index: int) -> str:
    """a … z, then a1 … z1, a2 …"""
    round_, place = divmod(index, 26)
    return chr(ord("a") + place) + (str(round_) if round_ else "")


def _split(groups: list[frozenset[str]], one: str, two: str) -> list[frozenset[str]]:
    result: list[frozenset[str]] = []
    for group in groups:
        if one in group and two in group:
            result += [group - {one}, group - {two}]
        else:
            result.append(group)
    return result


def _absorb(groups: list[frozenset[str]]) -> list[frozenset[str]]:
    unique = list(dict.fromkeys(groups))
    return [g for g in unique if not any(g < other for other in unique)]
