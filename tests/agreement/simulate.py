"""Simulated annotators with known error rates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from croc_annotate.agreement.dawid_skene import VoteList


@dataclass(frozen=True)
class Simulation:
    """Votes with the truth that made them."""

    votes: VoteList
    truth: np.ndarray
    sensitivity: np.ndarray
    specificity: np.ndarray
    prior: np.ndarray


def simulate(
    seed: int,
    *,
    items: int = 2000,
    raters: int = 12,
    per_item: int = 3,
    categories: int = 3,
    prior: tuple[float, float] = (0.2, 0.5),
    sensitivity: tuple[float, float] = (0.75, 0.97),
    specificity: tuple[float, float] = (0.75, 0.97),
    gold: int = 0,
) -> Simulation:
    """Draw truths, raters of different skill and ``per_item`` votes of each item."""
    rng = np.random.default_rng(seed)
    category = rng.integers(0, categories, items)
    priors = np.linspace(*prior, categories)
    truth = (rng.random(items) < priors[category]).astype(np.int8)
    sens, spec = rng.uniform(*sensitivity, raters), rng.uniform(*specificity, raters)
    rater = rng.random((items, raters)).argpartition(per_item - 1, axis=1)[:, :per_item].ravel()
    item = np.repeat(np.arange(items), per_item)
    accepts = np.where(truth[item] == 1, sens[rater], 1 - spec[rater])
    vote = (rng.random(item.size) < accepts).astype(np.int8)
    known = np.full(items, -1, np.int8)
    known[:gold] = truth[:gold]
    votes = VoteList(item, rater, vote, category, known, raters, categories)
    return Simulation(votes, truth, sens, spec, priors)
