"""Which two people agree more than their skill explains (pure).

Given what the *others* say about an item, two people who work on their own agree
with a probability that follows from their sensitivity and specificity.  Hard items
make everybody agree on the same wrong answer, so that a pair is compared with all
pairs, not with zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from croc_annotate.agreement import tables as t

if TYPE_CHECKING:
    from croc_annotate.agreement.tables import VotePairs

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class PairAgreement:
    """Two people a row: common votes, equal ones, equal ones expected, and how unusual that is."""

    first: Ints
    second: Ints
    common: Ints
    equal: Ints
    expected: Floats
    z: Floats  # against the other pairs; NaN with fewer than ten pairs

    @property
    def excess(self) -> Floats:
        """Share of equal votes beyond the expected one."""
        share: Floats = (self.equal - self.expected) / np.maximum(self.common, 1)
        return share


def pair_agreement(
    pairs: VotePairs, *, posterior: Floats, sensitivity: Floats, specificity: Floats
) -> PairAgreement:
    """Compare how often each two people agree with what the model expects of them."""
    votes = pairs.only((pairs.first_verdict != t.UNSURE) & (pairs.second_verdict != t.UNSURE))
    match = _posterior_without_both(votes, posterior, sensitivity, specificity)
    sens_1, sens_2 = sensitivity[votes.first], sensitivity[votes.second]
    spec_1, spec_2 = specificity[votes.first], specificity[votes.second]
    if_match = sens_1 * sens_2 + (1 - sens_1) * (1 - sens_2)
    if_not = spec_1 * spec_2 + (1 - spec_1) * (1 - spec_2)
    chance = match * if_match + (1 - match) * if_not
    equal = votes.first_verdict == votes.second_verdict
    code = votes.first * sensitivity.size + votes.second
    found, place = np.unique(code, return_inverse=True)
    common = np.bincount(place)
    observed = np.bincount(place, weights=equal)
    expected = np.bincount(place, weights=chance)
    variance = np.bincount(place, weights=chance * (1 - chance))
    z = (observed - expected) / np.sqrt(np.maximum(variance, 1e-9))
    return PairAgreement(
        first=found // sensitivity.size,
        second=found % sensitivity.size,
        common=common,
        equal=observed.astype(np.int64),
        expected=expected.astype(np.float64),
        z=_against_all(z),
    )


def _posterior_without_both(
    votes: VotePairs, posterior: Floats, sensitivity: Floats, specificity: Floats
) -> Floats:
    """P(match) of each pair's item from everybody else's votes."""
    known = np.clip(posterior[votes.item], 1e-9, 1 - 1e-9)
    for_accept = np.log(sensitivity) - np.log1p(-specificity)
    for_reject = np.log1p(-sensitivity) - np.log(specificity)
    said = logit(known)
    for rater, verdict in (
        (votes.first, votes.first_verdict),
        (votes.second, votes.second_verdict),
    ):
        said = said - np.where(verdict == t.ACCEPT, for_accept[rater], for_reject[rater])
    without: Floats = expit(said)
    return without


def _against_all(z: Floats) -> Floats:
    """Centre and scale by the median pair, so that hard items do not accuse everybody."""
    if z.size < 10:
        return np.full(z.size, np.nan)
    middle = np.median(z)
    spread = max(1.0, 1.4826 * float(np.median(np.abs(z - middle))))
    scaled: Floats = (z - middle) / spread
    return scaled
