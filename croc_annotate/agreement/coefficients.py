"""Inter-rater agreement for two verdicts, from counts of accepts and rejects per item.

Everything but Cohen's κ is a function of seven sums over items, and Cohen's κ of
four, so that one set of functions serves the point estimate and, row by row, the
draws of a bootstrap.  Undefined values are NaN inside the arrays and a
``Coefficient`` without a value, but with its reason in words, at the border.

Sources: Krippendorff (2011), "Computing Krippendorff's alpha-reliability";
Gwet (2008), "Computing inter-rater reliability and its variance in the presence of
high agreement"; Fleiss (1971); Cohen (1960).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

NO_OVERLAP = "no item has two votes"
ONE_VERDICT = "all votes are equal, so chance agreement cannot be told from real agreement"
UNEQUAL_VOTES = "items have different numbers of votes"
NOT_TWO_RATERS = "needs exactly two raters"

# Columns of the sums over items (an item counts here only with two votes or more).
ITEMS, AGREE, SHARE, ACCEPTS, REJECTS, DISCORD, VOTES = range(7)
N_SUMS = 7


@dataclass(frozen=True, slots=True)
class Coefficient:
    """A value, or None with the reason in words."""

    value: float | None
    reason: str = ""


def item_sums(accept: Ints, reject: Ints) -> Floats:
    """Return the (n_items, 7) terms whose sums determine raw, α, AC1 and Fleiss' κ."""
    a = np.asarray(accept, dtype=np.float64)
    r = np.asarray(reject, dtype=np.float64)
    m = a + r
    pairable = m >= 2
    a, r, m = a * pairable, r * pairable, np.where(pairable, m, 2.0)
    terms = np.empty((a.size, N_SUMS))
    terms[:, ITEMS] = pairable
    terms[:, AGREE] = (a * (a - 1) + r * (r - 1)) / (m * (m - 1))
    terms[:, SHARE] = a / m
    terms[:, ACCEPTS] = a
    terms[:, REJECTS] = r
    terms[:, DISCORD] = a * r / (m - 1)
    terms[:, VOTES] = a + r
    return terms


def raw_from_sums(sums: Floats) -> Floats:
    """Mean over items of the share of equal pairs of votes; NaN without such items."""
    return _ratio(sums[..., AGREE], sums[..., ITEMS])


def alpha_from_sums(sums: Floats) -> Floats:
    """Krippendorff's nominal α; NaN where only one verdict occurs."""
    # 1 - D_o / D_e with D_o = 2 Σ a·r/(m-1) / n and D_e = 2·A·R / (n·(n-1)).
    expected = sums[..., ACCEPTS] * sums[..., REJECTS]
    return 1.0 - _ratio((sums[..., VOTES] - 1.0) * sums[..., DISCORD], expected)


def ac1_from_sums(sums: Floats) -> Floats:
    """Gwet's AC1; defined whenever an item has two votes, as chance is at most ½."""
    raw = raw_from_sums(sums)
    share = _ratio(sums[..., SHARE], sums[..., ITEMS])
    chance = 2.0 * share * (1.0 - share)
    return (raw - chance) / (1.0 - chance)


def fleiss_from_sums(sums: Floats) -> Floats:
    """Fleiss' κ, for sums over items with equally many votes; NaN for one verdict only."""
    p = _ratio(sums[..., ACCEPTS], sums[..., VOTES])
    chance = p * p + (1.0 - p) * (1.0 - p)
    mixed = sums[..., ACCEPTS] * sums[..., REJECTS] > 0
    return _ratio(raw_from_sums(sums) - chance, np.where(mixed, 1.0 - chance, 0.0))


def cohen_from_joint(joint: Floats) -> Floats:
    """Cohen's κ from (..., 4) counts: both accept, only first, only second, both reject."""
    n = joint.sum(axis=-1)
    observed = _ratio(joint[..., 0] + joint[..., 3], n)
    first = _ratio(joint[..., 0] + joint[..., 1], n)
    second = _ratio(joint[..., 0] + joint[..., 2], n)
    chance = first * second + (1.0 - first) * (1.0 - second)
    # Chance is 1 exactly where both gave one and the same verdict throughout.
    mixed = (joint[..., 0] < n) & (joint[..., 3] < n)
    return _ratio(observed - chance, np.where(mixed, 1.0 - chance, 0.0))


def raw_agreement(accept: Ints, reject: Ints) -> Coefficient:
    """Mean over items with two votes of the share of equal pairs of votes."""
    sums = item_sums(accept, reject).sum(axis=0)
    return _coefficient(raw_from_sums(sums), NO_OVERLAP)


def krippendorff_alpha(accept: Ints, reject: Ints) -> Coefficient:
    """Krippendorff's α for nominal data and unequal numbers of raters."""
    sums = item_sums(accept, reject).sum(axis=0)
    return _coefficient(alpha_from_sums(sums), _why_one_verdict(sums))


def gwet_ac1(accept: Ints, reject: Ints) -> Coefficient:
    """Gwet's AC1 with π = mean over items of the share of accepts."""
    sums = item_sums(accept, reject).sum(axis=0)
    return _coefficient(ac1_from_sums(sums), NO_OVERLAP)


def fleiss_kappa(accept: Ints, reject: Ints) -> Coefficient:
    """Fleiss' κ; undefined unless all items with two votes have equally many."""
    if not equally_many_votes(accept, reject):
        return Coefficient(None, UNEQUAL_VOTES)
    sums = item_sums(accept, reject).sum(axis=0)
    return _coefficient(fleiss_from_sums(sums), _why_one_verdict(sums))


def cohen_kappa(first: NDArray[np.int8], second: NDArray[np.int8]) -> Coefficient:
    """Cohen's κ of two raters' verdicts (1 accept, 0 reject, -1 missing) on the same items."""
    joint = joint_terms(first, second).sum(axis=0)
    reason = NO_OVERLAP if joint.sum() == 0 else ONE_VERDICT
    return _coefficient(cohen_from_joint(joint), reason)


def joint_terms(first: NDArray[np.int8], second: NDArray[np.int8]) -> Floats:
    """Return the (n_items, 4) indicator terms that ``cohen_from_joint`` sums up."""
    both = (first >= 0) & (second >= 0)
    kinds = [(1, 1), (1, 0), (0, 1), (0, 0)]
    columns = [both & (first == a) & (second == b) for a, b in kinds]
    return np.stack(columns, axis=1).astype(np.float64)


def equally_many_votes(accept: Ints, reject: Ints) -> bool:
    """Tell whether every item with at least two votes has the same number of them."""
    votes = np.asarray(accept) + np.asarray(reject)
    votes = votes[votes >= 2]
    return votes.size == 0 or bool(votes.min() == votes.max())


def _ratio(top: Floats, bottom: Floats) -> Floats:
    """Divide, with NaN where the bottom is zero."""
    safe = np.where(bottom == 0, np.nan, bottom)
    quotient: Floats = top / safe
    return quotient


def _why_one_verdict(sums: Floats) -> str:
    return NO_OVERLAP if sums[ITEMS] == 0 else ONE_VERDICT


def _coefficient(value: Floats, reason: str) -> Coefficient:
    number = float(value)
    return Coefficient(None, reason) if np.isnan(number) else Coefficient(number)
