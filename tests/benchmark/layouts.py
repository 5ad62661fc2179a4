"""Small layouts and scores for the tests of the protocol."""

from __future__ import annotations

import numpy as np

from croc_annotate.benchmark.layout import Layout, Scores, Side


def build(pairs, *, categories=None, generators=None, texts=None):
    """A layout and scores from [(p_images, q_images)], each image a tuple of two scores.

    `generators` mirrors the pairs: [(names of P, names of Q)].
    """
    categories = categories or ["counting"] * len(pairs)
    names = tuple(dict.fromkeys(categories))
    sides, columns, makers = ([], []), ([], []), ([], [])
    for index, images in enumerate(pairs):
        for side in (0, 1):
            sides[side].extend([index] * len(images[side]))
            columns[side].extend(images[side])
            makers[side].extend(
                generators[index][side] if generators else ["g"] * len(images[side])
            )
    known = tuple(sorted({*makers[0], *makers[1]})) or ("g",)
    layout = Layout(
        pair_ids=tuple(f"{c}_{i}" for i, c in enumerate(categories)),
        texts=tuple(texts or [(f"t{i}", f"c{i}") for i in range(len(pairs))]),
        categories=names,
        category=np.array([names.index(c) for c in categories], dtype=np.int64),
        generators=known,
        prompt=_side(sides[0], makers[0], known),
        contrast=_side(sides[1], makers[1], known),
    )
    p = np.array(columns[0], dtype=float).reshape(-1, 2)
    q = np.array(columns[1], dtype=float).reshape(-1, 2)
    return layout, Scores(p[:, 0], p[:, 1], q[:, 0], q[:, 1])


def _side(pairs, makers, known):
    return Side(
        np.array(pairs, dtype=np.int64),
        np.array([known.index(m) for m in makers], dtype=np.int64),
    )
