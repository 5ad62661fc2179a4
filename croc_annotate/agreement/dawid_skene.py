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
_ITEMS_AT_ONCE = 100_000


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
    design = _design(votes)
    posterior, iterations, change = _start(votes), 0, np.inf
    rates = _maximise(design, posterior, smoothing)
    while iterations < max_iterations and change >= tolerance:
        new = _expect(design, rates)
        change = float(np.abs(new - posterior).max())
        posterior, rates = new, _maximise(design, new, smoothing)
        iterations += 1
    sens, spec = _intervals(votes, posterior, rates, smoothing)
    return Fit(
        posterior=_only_judged(votes, posterior),
        sensitivity=_only_active(votes, rates.sensitivity),
        specificity=_only_active(votes, rates.specificity),
        prior=rates.prior,
        iterations=iterations,
        converged=change < tolerance,
        log_likelihood=_log_likelihood(votes, rates),
        sensitivity_interval=sens,
        specificity_interval=spec,
    )


def posterior_of(
    votes: VoteList, *, sensitivity: Floats, specificity: Floats, prior: Floats
) -> Floats:
    """Return P(match) of each item under given rates (a frozen fit, or somebody left out)."""
    return _expect(_design(votes), _Rates(sensitivity, specificity, prior))


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


@dataclass(frozen=True, slots=True)
class _Design:
    """What stays the same from step to step. A cell is a person's rejects or accepts."""

    votes: VoteList
    cell: Ints  # per vote: 2 · rater + verdict
    votes_in_cell: Ints
    free: Ints  # judged items whose truth is not known
    group: Ints  # their categories
    in_group: Ints


def _design(votes: VoteList) -> _Design:
    cell = votes.rater * 2 + votes.vote
    judged = np.bincount(votes.item, minlength=votes.n_items) > 0
    free = np.flatnonzero((votes.truth < 0) & judged)
    group = votes.category[free]
    return _Design(
        votes=votes,
        cell=cell,
        votes_in_cell=np.bincount(cell, minlength=2 * votes.n_raters),
        free=free,
        group=group,
        in_group=np.bincount(group, minlength=votes.n_categories),
    )


def _maximise(design: _Design, posterior: Floats, smoothing: float) -> _Rates:
    votes = design.votes
    matching = np.bincount(design.cell, weights=posterior[votes.item], minlength=2 * votes.n_raters)
    misses, hits = matching[0::2], matching[1::2]
    others = design.votes_in_cell - matching
    correct, wrong = others[0::2], others[1::2]
    group = np.bincount(design.group, weights=posterior[design.free], minlength=votes.n_categories)
    return _Rates(
        sensitivity=_share(hits, hits + misses, smoothing),
        specificity=_share(correct, correct + wrong, smoothing),
        prior=_share(group, design.in_group, smoothing),
    )


def _share(part: NDArray[Any], whole: NDArray[Any], smoothing: float) -> Floats:
    share: Floats = (part + smoothing) / np.maximum(whole + 2.0 * smoothing, _TINY)
    return np.clip(share, _TINY, 1.0 - _TINY)


def _expect(design: _Design, rates: _Rates) -> Floats:
    """Return the posterior of each item; the truth where it is known."""
    votes = design.votes
    match, other = _log_chances(rates)
    weight = (match - other)[design.cell]
    log_odds = np.bincount(votes.item, weights=weight, minlength=votes.n_items)
    log_odds += (np.log(rates.prior) - np.log1p(-rates.prior))[votes.category]
    return np.where(votes.truth >= 0, votes.truth, expit(log_odds))


def _log_chances(rates: _Rates) -> tuple[Floats, Floats]:
    """Log-probability of each cell's verdict for a match and for a non-match."""
    match = np.stack([np.log1p(-rates.sensitivity), np.log(rates.sensitivity)], axis=1)
    other = np.stack([np.log(rates.specificity), np.log1p(-rates.specificity)], axis=1)
    return match.ravel(), other.ravel()


def _log_likelihood(votes: VoteList, rates: _Rates) -> float:
    cell = votes.rater * 2 + votes.vote
    whole = []
    for chances, prior in zip(
        _log_chances(rates), (np.log(rates.prior), np.log1p(-rates.prior)), strict=True
    ):
        said = np.bincount(votes.item, weights=chances[cell], minlength=votes.n_items)
        whole.append(said + prior[votes.category])
    match, other = whole
    told = np.where(votes.truth == 1, match, other)
    return float(np.where(votes.truth >= 0, told, np.logaddexp(match, other)).sum())


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
    """Σ P(1-P) d dᵀ, added up over blocks of items so that memory does not grow with them."""
    size = 2 * votes.n_raters + votes.n_categories
    missing = np.zeros((size, size))
    root = np.sqrt(posterior * (1.0 - posterior) * (votes.truth < 0))
    for first in range(0, votes.n_items, _ITEMS_AT_ONCE):
        scores = _scores(votes, rates, root, first, min(first + _ITEMS_AT_ONCE, votes.n_items))
        missing += (scores.T @ scores).toarray()
    return missing


def _scores(
    votes: VoteList, rates: _Rates, root: Floats, first: int, last: int
) -> sparse.csr_array:
    """The rows √(P(1-P)) d of items ``first`` … ``last`` - 1."""
    size = votes.n_raters
    block = np.flatnonzero((votes.item >= first) & (votes.item < last))
    item, rater, y = votes.item[block], votes.rater[block], votes.vote[block].astype(np.float64)
    all_items = np.arange(first, last)
    rows = np.concatenate([item, item, all_items])
    columns = np.concatenate([rater, size + rater, 2 * size + votes.category[all_items]])
    entries = np.concatenate(
        [
            y - rates.sensitivity[rater],
            rates.specificity[rater] - (1.0 - y),
            np.ones(all_items.size),
        ]
    )
    shape = (last - first, 2 * size + votes.n_categories)
    return sparse.csr_array((entries * root[rows], (rows - first, columns)), shape=shape)


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
