"""Connected components of contrast pairs that share a text."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


def connected_components(text_pairs: Sequence[tuple[str, str]]) -> NDArray[np.int64]:
    """Number the component of each pair; two pairs with a common text share a number.

    `text_pairs` holds (prompt, contrast) texts, compared whole. Returns int64 of shape
    (n_pairs,), numbered 0, 1, … in order of first appearance. Union-find with path
    halving, so a chain of n pairs takes close to n steps and no recursion.
    """
    parent = list(range(len(text_pairs)))
    first_with: dict[str, int] = {}
    for index, texts in enumerate(text_pairs):
        for text in texts:
            other = first_with.setdefault(text, index)
            if other != index:
                _join(parent, other, index)
    number_of: dict[int, int] = {}
    labels = [number_of.setdefault(_root(parent, i), len(number_of)) for i in range(len(parent))]
    return np.asarray(labels, dtype=np.int64)


def _root(parent: list[int], node: int) -> int:
    while parent[node] != node:
        parent[node] = parent[parent[node]]
        node = parent[node]
    return node


def _join(parent: list[int], one: int, two: int) -> None:
    # The smaller root wins: labels then depend on the order of the input alone.
    root_one, root_two = sorted((_root(parent, one), _root(parent, two)))
    parent[root_two] = root_one
