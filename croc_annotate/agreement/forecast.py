"""How many images will be verified in the end (pure).

Images of one contrast pair share their difficulty.  Within a stratum (category,
generator, side) the share of accepts of a pair is taken as beta-distributed; what a
pair has shown so far sharpens its own share, a pair that nobody has judged yet gets
the stratum's.  Future verdicts are then beta-binomial.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from croc_annotate.lib import bootstrap

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

DRAWS = 400
SEED = 11
# An intra-pair correlation as in comparable campaigns, while a stratum has too few pairs
# of its own to tell.
_USUAL_CORRELATION = 0.2
_FEWEST_PAIRS = 5


@dataclass(frozen=True, slots=True)
class Cells:
    """One row per (stratum, contrast pair): decided items, accepted ones, undecided ones."""

    stratum: Ints
    accepted: Ints
    decided: Ints
    remaining: Ints


@dataclass(frozen=True, slots=True)
class Forecast:
    """Expected final number with a 95 % interval, in all or per stratum."""

    value: float | None
    low: float | None
    high: float | None
    reason: str = ""


def forecast(
    cells: Cells, n_strata: int, *, draws: int = DRAWS, seed: int = SEED
) -> tuple[Forecast, list[Forecast]]:
    """Forecast the number of accepted items in all, and per stratum."""
    if cells.decided.sum() == 0:
        none = Forecast(None, None, None, "nothing is decided yet")
        return none, [none] * n_strata
    share, correlation, worth = _strata(cells, n_strata)
    strength = ((1.0 - correlation) / correlation)[cells.stratum]
    rng = bootstrap.generator(seed, draws)
    final = np.zeros((draws, n_strata))
    for k in range(draws):
        # Beta draws may round to 0 or 1, of which no beta distribution can be made.
        drawn = np.clip(rng.beta(share * worth, (1.0 - share) * worth), 1e-6, 1.0 - 1e-6)
        drawn = drawn[cells.stratum]
        a = drawn * strength + cells.accepted
        b = (1.0 - drawn) * strength + cells.decided - cells.accepted
        more = cells.accepted + rng.binomial(cells.remaining, rng.beta(a, b))
        final[k] = np.bincount(cells.stratum, weights=more, minlength=n_strata)
    a = share[cells.stratum] * strength + cells.accepted
    b = (1.0 - share[cells.stratum]) * strength + cells.decided - cells.accepted
    mean = cells.accepted + cells.remaining * a / (a + b)
    means = np.bincount(cells.stratum, weights=mean, minlength=n_strata)
    strata = [_summary(final[:, s], float(means[s])) for s in range(n_strata)]
    return _summary(final.sum(axis=1), float(means.sum())), strata


def _summary(values: Floats, mean: float) -> Forecast:
    low, high = np.quantile(values, [0.025, 0.975])
    return Forecast(mean, float(low), float(high))


def _strata(cells: Cells, n_strata: int) -> tuple[Floats, Floats, Floats]:
    """Share of accepts, intra-pair correlation and worth in independent items of each stratum."""
    decided = np.bincount(cells.stratum, weights=cells.decided, minlength=n_strata)
    accepted = np.bincount(cells.stratum, weights=cells.accepted, minlength=n_strata)
    overall = (accepted.sum() + 0.5) / (decided.sum() + 1.0)
    # One made-up item at the overall share, so that an untouched stratum has a share.
    share = (accepted + overall) / (decided + 1.0)
    correlation = _correlation(cells, share, n_strata)
    # Kish: items of one pair repeat each other.
    n = cells.decided.astype(np.float64)
    repeated = n * (1.0 + (n - 1.0) * correlation[cells.stratum])
    weight = np.bincount(cells.stratum, weights=repeated, minlength=n_strata)
    worth = np.where(decided > 0, decided**2 / np.where(weight > 0, weight, 1.0), 0.0) + 1.0
    return share, correlation, worth


def _correlation(cells: Cells, share: Floats, n_strata: int) -> Floats:
    """Intra-pair correlation per stratum (Kleinman's moments), kept within (0.01, 0.9)."""
    seen = cells.decided >= 2
    stratum, n = cells.stratum[seen], cells.decided[seen].astype(np.float64)
    p = share[stratum]
    spread = (cells.accepted[seen] / n - p) ** 2
    noise = p * (1.0 - p)
    # E(spread) = p(1-p) (1/n + ρ (1 - 1/n))
    top = np.bincount(stratum, weights=spread - noise / n, minlength=n_strata)
    bottom = np.bincount(stratum, weights=noise * (1.0 - 1.0 / n), minlength=n_strata)
    pairs = np.bincount(stratum, minlength=n_strata)
    found = np.where(bottom > 0, top / np.where(bottom > 0, bottom, 1.0), _USUAL_CORRELATION)
    found = np.where(pairs >= _FEWEST_PAIRS, found, _USUAL_CORRELATION)
    return np.clip(found, 0.01, 0.9)
