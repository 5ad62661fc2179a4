"""Ranking with FAISS: exact, and easier on time and memory where the pool is large.

`IndexFlatIP` compares a query with every item, so nothing is approximate. What it returns is used
to leave items out only: the rank of a relevant item depends on the items that score at least as
high, and a range search finds those. Their scores are then taken as without the index, so ranks
under ties are the same and not merely close. FAISS is optional: pip install 'croc-annotate[faiss]'.
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from croc_annotate.benchmark.metric import MetricError
from croc_annotate.benchmark.retrieval import blocks, rank_one, ranking_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from croc_annotate.benchmark.layout import Floats, Ints
    from croc_annotate.benchmark.retrieval import Ranking

    ScoresOf = Callable[[NDArray[np.float64], NDArray[np.float64]], NDArray[np.float32]]
    """(queries, items) as rows of length 1 → scores of shape (queries, items)."""

IndexChoice = Literal["auto", "exact", "faiss"]
FAISS_FROM: Final = 50_000  # items, for "auto"
_SAMPLE: Final = 200


def use_faiss(choice: IndexChoice, n_items: int) -> bool:
    """Whether to rank with FAISS; raises MetricError when it is asked for and not installed."""
    installed = importlib.util.find_spec("faiss") is not None
    if choice == "faiss" and not installed:
        raise MetricError("--index faiss needs FAISS: pip install 'croc-annotate[faiss]'.")
    return choice == "faiss" or (choice == "auto" and installed and n_items >= FAISS_FROM)


def rank_with_faiss(
    queries: NDArray[np.float32],
    items: NDArray[np.float32],
    relevant: Sequence[Ints],
    scores_of: ScoresOf,
) -> Ranking:
    """As `retrieval.rank_all`, for scores that grow with the inner product of unit rows.

    Raises MetricError for others: an index of inner products cannot rank by them.
    """
    _check_growing(queries, items, scores_of)
    faiss: Any = importlib.import_module("faiss")
    index = faiss.IndexFlatIP(items.shape[1])
    index.add(np.ascontiguousarray(items, dtype=np.float32))
    rows: list[tuple[int, float, float]] = []
    for block in blocks(len(queries), len(items)):
        asked = [q for q in range(block.start, block.stop) if len(relevant[q])]
        rows += _rank_block(index, queries, items, asked, relevant, scores_of)
    return ranking_of(rows, len(items))


def _rank_block(
    index: Any,
    queries: NDArray[np.float32],
    items: NDArray[np.float32],
    asked: Sequence[int],
    relevant: Sequence[Ints],
    scores_of: ScoresOf,
) -> list[tuple[int, float, float]]:
    """A search has one bound for all its queries, and a low one returns much of the pool: so
    queries are searched in groups of about the same bound.
    """
    if not asked:
        return []
    # Float32 sums of d products are off by d·2⁻²⁴ at most; twice that separates the two sides.
    slack = (items.shape[1] + 2) * 2.0**-23
    lowest = np.array([_lowest(queries[q], items[relevant[q]]) - slack for q in asked])
    order = np.argsort(lowest)
    ranks: dict[int, tuple[int, float, float]] = {}
    for part in np.array_split(order, max(1, len(order) // 64)):
        chosen = [asked[k] for k in part]
        limits, _, found = index.range_search(
            np.ascontiguousarray(queries[chosen], dtype=np.float32), float(lowest[part].min())
        )
        for place, query in enumerate(chosen):
            near = np.union1d(found[limits[place] : limits[place + 1]], relevant[query])
            ranks[query] = _rank(queries[query], items, near, relevant[query], scores_of)
    return [ranks[query] for query in asked]


def _rank(
    query: NDArray[np.float32],
    items: NDArray[np.float32],
    near: Ints,
    relevant: Ints,
    scores_of: ScoresOf,
) -> tuple[int, float, float]:
    """The ranks among the items that may stand before a relevant one."""
    wide = query[None, :].astype(np.float64)
    scores = scores_of(wide, items[near].astype(np.float64))[0]
    places = np.searchsorted(near, np.sort(relevant))
    # Where a relevant item's score is the lowest there can be (cut at zero), items further away
    # have the same one and stand before it too.
    if scores[places].min() <= scores_of(wide, -wide)[0, 0]:
        return rank_one(scores_of(wide, items.astype(np.float64))[0], relevant)
    return rank_one(scores, places)


def _lowest(query: NDArray[np.float32], own: NDArray[np.float32]) -> float:
    return float((own.astype(np.float64) @ query.astype(np.float64)).min())


def _check_growing(
    queries: NDArray[np.float32], items: NDArray[np.float32], scores_of: ScoresOf
) -> None:
    some, few = items[:_SAMPLE].astype(np.float64), queries[:1].astype(np.float64)
    if not len(some) or not len(few):
        return
    products: Floats = (few @ some.T)[0]
    scores = scores_of(few, some)[0][np.argsort(products)]
    if (np.diff(scores) < 0).any():
        raise MetricError(
            "this metric's score does not grow with the inner product of its embeddings: "
            "use --index exact."
        )
