"""Two-coin Dawid–Skene: how good each annotator is and how probable each verdict.

Each item has a hidden truth (match or not), a match with the prior of its category.
Annotator j accepts a match with probability ``sensitivity`` j and rejects a
non-match with probability ``specificity`` j.  Items whose truth is known (gold)
anchor the annotators and say nothing about the priors, as somebody chose them.

Source: Dawid and Skene (1979), "Maximum likelihood estimation of observer error-rates
using the EM algorithm"; intervals from the observed information (Louis, 1982).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import expit

from croc_annotate.agreement.coefficients import NO_OVERLAP, ONE_VERDICT

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Codes = NDArray[np.int8]

# Half a made-up observation of each kind keeps every probability off 0 and 1, so that
# one annotator with three answers cannot decide an item alone.
SMOOTHING = 0.5
_TINY = 1e-12
_Z95 = 1.959963984540054


@dataclass(frozen=True, slots=True)
class VoteList:
    """Votes as columns, with the category and the known truth (1, 0, -1) of each item."""

    item: Ints
    rater: Ints
    vote: Codes  # 1 accept, 0 reject; "cannot tell" is left out
    category: Ints  # per item
    truth: Codes  # per item; -1 where unknown
    n_raters: int
    n_categories: int

    @property
    def n_items(self) -> int:
        """Number of items, those without a vote included."""
        return self.category.size


@dataclass(frozen=True, slots=True)
class Fit:
    """Estimates; arrays hold NaN where nothing is known, ``reason`` says why there is no fit."""

    posterior: Floats  # per item: P(match)
    sensitivity: Floats  # per rater
    specificity: Floats  # per rater
    prior: Floats  # per category
    iterations: int
    converged: bool
    log_likelihood: float
    sensitivity_interval: Floats = field(default_factory=lambda: np.empty((0, 2)))
    specificity_interval: Floats = field(default_factory=lambda: np.empty((0, 2)))
    reason: str = ""


def fit(
    votes: VoteList,
    *,
    smoothing: float = SMOOTHING,
    tolerance: float = 1e-7,
    max_iterations: int = 2000,
) -> Fit:
    """Fit by expectation–maximisation, started at each item's share of accepts.

    ``tolerance`` is the largest change of a posterior that ends it.  With
    ``smoothing`` 0 it is plain maximum likelihood.
    """
    reason = _why_not(votes)
    if reason:
        return no_fit(votes, reason)
    posterior, iterations, change = _start(votes), 0, np.inf
    rates, log_likelihood = _maximise(votes, posterior, smoothing), float("nan")
    while iterations < max_iterations and change >= tolerance:
        new, log_likelihood = _expect(votes, rates)
        change = float(np.abs(new - posterior).max())
        posterior, rates = new, _maximise(votes, new, smoothing)
        iterations += 1
    sens, spec = _intervals(votes, posterior, rates, smoothing)
    return Fit(
        posterior=_only_judged(votes, posterior),
        sensitivity=_only_active(votes, rates.sensitivity),
        specificity=_only_active(votes, rates.specificity),
        prior=rates.prior,
        iterations=iterations,
        converged=change < tolerance,
        log_likelihood=log_likelihood,
        sensitivity_interval=sens,
        specificity_interval=spec,
    )


def posterior_of(
    votes: VoteList, *, sensitivity: Floats, specificity: Floats, prior: Floats
) -> Floats:
    """Return P(match) of each item under given rates (a frozen fit, or somebody left out)."""
    return _expect(votes, _Rates(sensitivity, specificity, prior))[0]


@dataclass(frozen=True, slots=True)
class _Rates:
    sensitivity: Floats
    specificity: Floats
    prior: Floats


def _why_not(votes: VoteList) -> str:
    if votes.vote.size == 0:
        return "no vote"
    if (votes.truth >= 0).any():
        return ""
    if votes.vote.min() == votes.vote.max():
        return ONE_VERDICT
    if np.bincount(votes.item, minlength=votes.n_items).max() < 2:
        return NO_OVERLAP
    return ""


def _start(votes: VoteList) -> Floats:
    """Share of accepts of each item, pulled to the overall share; the truth where known."""
    accepts = np.bincount(votes.item, weights=votes.vote, minlength=votes.n_items)
    n = np.bincount(votes.item, minlength=votes.n_items)
    share = float(votes.vote.mean())
    return np.where(votes.truth >= 0, votes.truth, (accepts + share) / (n + 1.0))


def _maximise(votes: VoteList, posterior: Floats, smoothing: float) -> _Rates:
    p = posterior[votes.item]
    accept = votes.vote == 1
    size = votes.n_raters
    matches = np.bincount(votes.rater, weights=p, minlength=size)
    all_votes = np.bincount(votes.rater, minlength=size)
    hits = np.bincount(votes.rater, weights=np.where(accept, p, 0.0), minlength=size)
    correct = np.bincount(votes.rater, weights=np.where(accept, 0.0, 1.0 - p), minlength=size)
    free = votes.truth < 0
    judged = np.bincount(votes.item, minlength=votes.n_items) > 0
    use = free & judged
    group = votes.category[use]
    in_category = np.bincount(group, minlength=votes.n_categories)
    matching = np.bincount(group, weights=posterior[use], minlength=votes.n_categories)
    return _Rates(
        sensitivity=_share(hits, matches, smoothing),
        specificity=_share(correct, all_votes - matches, smoothing),
        prior=_share(matching, in_category, smoothing),
    )


def _share(part: NDArray[Any], whole: NDArray[Any], smoothing: float) -> Floats:
    share: Floats = (part + smoothing) / np.maximum(whole + 2.0 * smoothing, _TINY)
    return np.clip(share, _TINY, 1.0 - _TINY)


def _expect(votes: VoteList, rates: _Rates) -> tuple[Floats, float]:
    """Return the posterior of each item and the log-likelihood of the votes."""
    match = np.log(np.stack([1.0 - rates.sensitivity, rates.sensitivity], axis=1))
    other = np.log(np.stack([rates.specificity, 1.0 - rates.specificity], axis=1))
    cell = votes.rater * 2 + votes.vote
    log_match = np.bincount(votes.item, weights=match.ravel()[cell], minlength=votes.n_items)
    log_other = np.bincount(votes.item, weights=other.ravel()[cell], minlength=votes.n_items)
    log_match += np.log(rates.prior)[votes.category]
    log_other += np.log1p(-rates.prior)[votes.category]
    posterior = expit(log_match - log_other)
    known = votes.truth >= 0
    whole = np.logaddexp(log_match, log_other)
    told = np.where(votes.truth == 1, log_match, log_other)
    log_likelihood = float(np.where(known, told, whole).sum())
    return np.where(known, votes.truth, posterior), log_likelihood


def _intervals(
    votes: VoteList, posterior: Floats, rates: _Rates, smoothing: float
) -> tuple[Floats, Floats]:
    """Return 95 % intervals on the logit scale from the observed information.

    What the hidden truths would tell is subtracted from the complete information
    (Louis): with d the difference of the complete score between match and
    non-match, the missing part is Σ P(1-P) d dᵀ.
    """
    logits, spread = _logits_and_errors(votes, posterior, rates, smoothing)
    low, high = logits - _Z95 * spread, logits + _Z95 * spread
    bounds: Floats = expit(np.stack([low, high], axis=1))
    size = votes.n_raters
    idle = np.bincount(votes.rater, minlength=size) == 0
    bounds[: 2 * size][np.concatenate([idle, idle])] = np.nan
    return bounds[:size], bounds[size : 2 * size]


def _logits_and_errors(
    votes: VoteList, posterior: Floats, rates: _Rates, smoothing: float
) -> tuple[Floats, Floats]:
    size, p = votes.n_raters, posterior[votes.item]
    value = np.concatenate([rates.sensitivity, rates.specificity, rates.prior])
    seen = np.concatenate(
        [
            np.bincount(votes.rater, weights=p, minlength=size),
            np.bincount(votes.rater, weights=1.0 - p, minlength=size),
            np.bincount(votes.category[votes.truth < 0], minlength=votes.n_categories),
        ]
    )
    complete = (seen + 2.0 * smoothing) * value * (1.0 - value)
    information = np.diag(complete) - _missing_information(votes, posterior, rates)
    spread = np.sqrt(_inverse_diagonal(information))
    return np.log(value) - np.log1p(-value), spread


def _missing_information(votes: VoteList, posterior: Floats, rates: _Rates) -> Floats:
    free = np.flatnonzero(votes.truth < 0)
    size, rater, y = votes.n_raters, votes.rater, votes.vote.astype(np.float64)
    rows = np.concatenate([votes.item, votes.item, free])
    columns = np.concatenate([rater, size + rater, 2 * size + votes.category[free]])
    entries = np.concatenate(
        [
            y - rates.sensitivity[rater],
            rates.specificity[rater] - (1.0 - y),
            np.ones(free.size),
        ]
    )
    root = np.sqrt(posterior * (1.0 - posterior) * (votes.truth < 0))
    shape = (votes.n_items, 2 * size + votes.n_categories)
    scores = sparse.csr_array((entries * root[rows], (rows, columns)), shape=shape)
    missing: Floats = (scores.T @ scores).toarray()
    return missing


def _inverse_diagonal(information: Floats) -> Floats:
    """Variances; NaN where the votes do not determine a parameter."""
    variances: Floats = np.full(information.shape[0], np.nan)
    known = np.flatnonzero(np.diag(information) > 1e-9)
    values, vectors = np.linalg.eigh(information[np.ix_(known, known)])
    if values.size and values.min() > 0.0:
        variances[known] = ((vectors**2) / values).sum(axis=1)
    return variances


def _only_judged(votes: VoteList, posterior: Floats) -> Floats:
    judged = np.bincount(votes.item, minlength=votes.n_items) > 0
    return np.where(judged, posterior, np.nan)


def _only_active(votes: VoteList, values: Floats) -> Floats:
    active = np.bincount(votes.rater, minlength=votes.n_raters) > 0
    return np.where(active, values, np.nan)


def no_fit(votes: VoteList, reason: str) -> Fit:
    """A fit without estimates, with the reason."""
    raters, bounds = np.full(votes.n_raters, np.nan), np.full((votes.n_raters, 2), np.nan)
    return Fit(
        posterior=np.full(votes.n_items, np.nan),
        sensitivity=raters,
        specificity=raters.copy(),
        prior=np.full(votes.n_categories, np.nan),
        iterations=0,
        converged=False,
        log_likelihood=float("nan"),
        sensitivity_interval=bounds,
        specificity_interval=bounds.copy(),
        reason=reason,
    )
