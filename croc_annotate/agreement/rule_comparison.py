"""What each rule would verify, and how many of those labels are probably wrong (pure)."""

from __future__ import annotations

from dataclasses import dataclass
from math import comb

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from croc_annotate.lib import bootstrap

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

DRAWS = 400
SEED = 7
_STEPS = 500


@dataclass(frozen=True, slots=True)
class GoldRates:
    """How often people were right on items of known truth, all people together."""

    hits: int
    matches: int
    correct_rejects: int
    others: int

    @property
    def usable(self) -> bool:
        """Both kinds of gold are needed to say anything about errors."""
        return min(self.matches, self.others) >= 5

    def draws(self, n: int, seed: int) -> tuple[Floats, Floats]:
        """Sensitivity and specificity as the gold leaves them open (Jeffreys), n draws."""
        rng = bootstrap.generator(seed, n)
        sens = rng.beta(self.hits + 0.5, self.matches - self.hits + 0.5, n)
        spec = rng.beta(self.correct_rejects + 0.5, self.others - self.correct_rejects + 0.5, n)
        return sens, spec

    @property
    def point(self) -> tuple[float, float]:
        """Sensitivity and specificity with half an observation added on each side."""
        sens = (self.hits + 0.5) / (self.matches + 1)
        return sens, (self.correct_rejects + 0.5) / (self.others + 1)


@dataclass(frozen=True, slots=True)
class LabelError:
    """Share of accepted items that do not match; None with the reason in words."""

    value: float | None
    low: float | None = None
    high: float | None = None
    reason: str = ""


def error_from_model(accepted: Bools, posterior: Floats) -> LabelError:
    """Mean of 1 - P(match) over the accepted items, by the Dawid–Skene fit."""
    chances = posterior[accepted]
    chances = chances[~np.isnan(chances)]
    if chances.size == 0:
        return LabelError(None, reason="no accepted item with a posterior")
    return LabelError(float((1.0 - chances).mean()))


def error_from_gold(
    accepted: Bools, accept: Ints, reject: Ints, category: Ints, gold: GoldRates
) -> LabelError:
    """What the error rates on gold say about the accepted items, with a 95 % interval.

    All people have the pooled rates; the share of matches of each category is the one
    under which its votes are most likely.
    """
    if not gold.usable:
        return LabelError(None, reason="fewer than five gold votes of a kind")
    if not accepted.any():
        return LabelError(None, reason="no accepted item")
    patterns = _patterns(accept, reject, category, accepted)
    sens, spec = (np.atleast_1d(rate) for rate in gold.point)
    point = _error(patterns, sens, spec)
    drawn = _error(patterns, *gold.draws(DRAWS, SEED))
    low, high = np.quantile(drawn, [0.025, 0.975])
    return LabelError(float(point[0]), float(low), float(high))


def majority_error(sensitivity: float, specificity: float, prior: float, votes: int) -> float:
    """Share of wrong accepts of a strict majority of an odd number of votes (closed form)."""
    from_matches = prior * _majority(sensitivity, votes)
    from_others = (1.0 - prior) * _majority(1.0 - specificity, votes)
    return from_others / (from_matches + from_others)


def _majority(p: float, votes: int) -> float:
    least = votes // 2 + 1
    return sum(comb(votes, k) * p**k * (1 - p) ** (votes - k) for k in range(least, votes + 1))


@dataclass(frozen=True, slots=True)
class _Patterns:
    """Items with equal category and votes as one row."""

    accept: Floats
    reject: Floats
    category: Ints
    items: Floats
    accepted: Floats


def _patterns(accept: Ints, reject: Ints, category: Ints, accepted: Bools) -> _Patterns:
    voted = accept + reject > 0
    # One number per row: distinct numbers are found many times quicker than distinct rows.
    span = int(max(accept.max(initial=0), reject.max(initial=0))) + 1
    code = (category * span + accept) * span + reject
    found, place = np.unique(code[voted], return_inverse=True)
    return _Patterns(
        accept=(found // span % span).astype(np.float64),
        reject=(found % span).astype(np.float64),
        category=found // span**2,
        items=np.bincount(place).astype(np.float64),
        accepted=np.bincount(place, weights=accepted[voted]).astype(np.float64),
    )


def _error(patterns: _Patterns, sens: Floats, spec: Floats) -> Floats:
    """Share of wrong accepts per draw of (sensitivity, specificity)."""
    weight = np.outer(np.log(sens) - np.log1p(-spec), patterns.accept)
    weight += np.outer(np.log1p(-sens) - np.log(spec), patterns.reject)
    prior = _priors(patterns, weight)
    match = expit(weight + logit(prior))
    wrong: Floats = (1.0 - match) @ patterns.accepted / patterns.accepted.sum()
    return wrong


def _priors(patterns: _Patterns, weight: Floats) -> Floats:
    """The likeliest share of matches of each row's category (EM over one number each)."""
    groups, place = np.unique(patterns.category, return_inverse=True)
    member = (place[:, None] == np.arange(groups.size)).astype(np.float64)
    size = patterns.items @ member
    prior = np.full((weight.shape[0], groups.size), 0.5)
    for _ in range(_STEPS):
        match = expit(weight + logit(prior)[:, place]) * patterns.items
        new = np.clip(match @ member / size, 1e-6, 1.0 - 1e-6)
        done = float(np.abs(new - prior).max()) < 1e-7
        prior = new
        if done:
            break
    found: Floats = prior[:, place]
    return found
