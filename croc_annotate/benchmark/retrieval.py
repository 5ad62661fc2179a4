"""Retrieval: each text looks for its images among many, each image for its texts (pure).

Under ties the rank of a relevant item is pessimistic (all tied irrelevant ones stand before
it); the expected rank under a random order of the ties stands beside it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from croc_annotate.benchmark.layout import Floats, Ints

CUTOFFS: Final = (1, 5, 10)
# Similarities of so many query–item pairs are held at once (float32: 64 MB).
_CELLS_AT_ONCE = 16_000_000
_FEW: Final = 40


@dataclass(frozen=True)
class Ranking:
    """What the queries found; all arrays have one entry a query that has a relevant item."""

    first: Ints
    """Pessimistic rank (1 = best) of the best relevant item."""
    expected_first: Floats
    """Its expected rank when ties are broken at random."""
    average_precision: Floats
    """With every relevant item at its pessimistic rank."""
    pool: int
    """Items searched among; the largest number, where queries have pools of their own."""

    def summary(self) -> dict[str, float | int | None]:
        """Recall@1/5/10, MRR, mAP, mean ranks and the number of queries."""
        n = len(self.first)
        result: dict[str, float | int | None] = {
            f"recall@{k}": float(np.mean(self.first <= k)) if n else None for k in CUTOFFS
        }
        result["mrr"] = float(np.mean(1.0 / self.first)) if n else None
        result["map"] = float(np.mean(self.average_precision)) if n else None
        result["median_rank"] = float(np.median(self.first)) if n else None
        result["mean_rank"] = float(np.mean(self.first)) if n else None
        result["mean_expected_rank"] = float(np.mean(self.expected_first)) if n else None
        return result | {"queries": n, "pool": self.pool}


def rank_all(
    n_queries: int,
    relevant: Sequence[Ints],
    scores_of: Callable[[slice], NDArray[np.float32]],
    *,
    n_items: int,
) -> Ranking:
    """Rank every item for every query, block by block.

    `scores_of(block)` gives similarities of shape (queries in block, n_items), higher is
    better; `relevant[q]` are the item numbers that answer query q (those with none are
    left out).
    """
    rows: list[tuple[int, float, float]] = []
    for block in blocks(n_queries, n_items):
        scores = scores_of(block)
        rows += [
            rank_one(own, wanted)
            for own, wanted in zip(scores, relevant[block], strict=True)
            if len(wanted)
        ]
    return ranking_of(rows, n_items)


def rank_pools(
    pools: Sequence[Ints], relevant: Sequence[Ints], scores: Sequence[Floats]
) -> Ranking:
    """Rank within each query's own pool: `scores[q][k]` belongs to item `pools[q][k]`."""
    rows = []
    for pool, wanted, own in zip(pools, relevant, scores, strict=True):
        places = np.flatnonzero(np.isin(pool, wanted))
        if len(places):
            rows.append(rank_one(own, places))
    return ranking_of(rows, max((len(p) for p in pools), default=0))


def rank_one(scores: NDArray[np.floating], relevant: Ints) -> tuple[int, float, float]:
    """(pessimistic rank, expected rank of the best relevant item, average precision).

    A missing score (NaN) of an item that is not relevant counts as lowest, that of a
    relevant one as last.
    """
    values = np.where(np.isnan(scores), -np.inf, scores)
    is_relevant = np.zeros(len(values), dtype=bool)
    is_relevant[relevant] = True
    mine = np.sort(values[is_relevant])[::-1]
    others = values[~is_relevant]
    # For each relevant item: irrelevant items at least as good stand before it.
    before = _at_least(others, mine)
    ranks = before + np.arange(1, len(mine) + 1)
    precision = float(np.mean(np.arange(1, len(mine) + 1) / ranks))
    above = int(np.count_nonzero(others > mine[0]))
    tied_others = int(before[0]) - above
    tied_mine = int(np.count_nonzero(mine == mine[0]))
    # The first of r winners among t tied others stands, on average, after t/(r+1) of them.
    expected = above + tied_others / (tied_mine + 1) + 1
    return int(ranks[0]), expected, precision


def _at_least(others: NDArray[np.floating], mine: NDArray[np.floating]) -> Ints:
    """How many of `others` are at least as high as each of `mine`."""
    if len(mine) <= _FEW:  # counting a few times is quicker than sorting all
        return np.array([np.count_nonzero(others >= value) for value in mine], dtype=np.int64)
    counts: Ints = len(others) - np.searchsorted(np.sort(others), mine, side="left")
    return counts


def merge_equal(texts: Sequence[str]) -> tuple[list[str], Ints]:
    """Distinct texts in order of first appearance, and each text's number among them."""
    index: dict[str, int] = {}
    numbers = np.array([index.setdefault(text, len(index)) for text in texts], dtype=np.int64)
    return list(index), numbers


def relevant_lists(text_of_image: Ints, n_texts: int) -> tuple[list[Ints], list[Ints]]:
    """(images of each text, texts of each image), from each image's text number."""
    order = np.argsort(text_of_image, kind="stable")
    sizes = np.bincount(text_of_image, minlength=n_texts)
    images = np.split(order, np.cumsum(sizes)[:-1]) if n_texts else []
    return list(images), [np.array([t]) for t in text_of_image]


def nearest_neighbours(embeddings: NDArray[np.float32], *, k: int) -> Ints:
    """The k most similar other images of each, by inner product; shape (n, k)."""
    n = len(embeddings)
    k = min(k, n - 1)
    result = np.empty((n, k), dtype=np.int64)
    for block in blocks(n, n):
        scores = embeddings[block] @ embeddings.T
        scores[np.arange(block.stop - block.start), np.arange(block.start, block.stop)] = -np.inf
        near = np.argpartition(-scores, k - 1, axis=1)[:, :k] if k else scores[:, :0].astype(int)
        ordered = np.take_along_axis(
            near, np.argsort(-np.take_along_axis(scores, near, axis=1), axis=1, kind="stable"), 1
        )
        result[block] = ordered
    return result


def pair_pools(pair_of_image: Ints, neighbours: Ints, pairs: Sequence[int]) -> list[Ints]:
    """For each pair its own images and the nearest neighbours of each of them."""
    pools = []
    for pair in pairs:
        own = np.flatnonzero(pair_of_image == pair)
        pools.append(np.unique(np.r_[own, neighbours[own].ravel()]))
    return pools


def rsum(forward: Ranking, backward: Ranking) -> float | None:
    """The sum of Recall@1/5/10 in both directions, in percent (600 is perfect)."""
    values = [r.summary()[f"recall@{k}"] for r in (forward, backward) for k in CUTOFFS]
    return None if any(v is None for v in values) else 100.0 * sum(float(v or 0) for v in values)


def blocks(n_queries: int, n_items: int) -> Iterator[slice]:
    """Queries at once, so that their scores of all items stay in bounds."""
    step = max(1, _CELLS_AT_ONCE // max(n_items, 1))
    for start in range(0, n_queries, step):
        yield slice(start, min(start + step, n_queries))


def ranking_of(rows: list[tuple[int, float, float]], pool: int) -> Ranking:
    """A ranking from `rank_one` of each query."""
    table = np.array(rows, dtype=np.float64).reshape(-1, 3)
    return Ranking(table[:, 0].astype(np.int64), table[:, 1], table[:, 2], pool)
