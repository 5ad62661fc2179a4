"""With FAISS or without: the same ranks, ties and all."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from croc_annotate.benchmark import flat_index
from croc_annotate.benchmark.flat_index import FAISS_FROM, use_faiss
from croc_annotate.benchmark.metric import MetricError
from croc_annotate.benchmark.metrics.dual_encoder import unit_rows
from croc_annotate.benchmark.retrieving import build_set, rank_embedded

needs_faiss = pytest.mark.skipif(
    importlib.util.find_spec("faiss") is None, reason="needs the faiss extra"
)


class Cosine:
    """What a dual encoder does with two arrays of embeddings."""

    def similarity(self, *, images, texts):
        return images @ texts.T


class Clip(Cosine):
    """As CLIPScore: negative cosines are all equal."""

    def similarity(self, *, images, texts):
        return np.maximum(100 * (images @ texts.T), 0)


class Distance(Cosine):
    def similarity(self, *, images, texts):
        return -(images @ texts.T)


def world(seed, *, images=300, texts=60, width=16, kinds=40):
    """Images of few kinds, so that many are equal and tie; each text is near one kind."""
    rng = np.random.default_rng(seed)
    base = rng.normal(size=(kinds, width))
    kind = rng.integers(0, kinds, images)
    own = [[f"text {t}"] for t in rng.integers(0, texts, images)]
    data = build_set("test", [f"i{n}" for n in range(images)], own)
    pictures = unit_rows(base[kind])
    words = unit_rows(
        np.stack([base[kind[rows[0]]] + rng.normal(size=width) for rows in data.images_of_text])
    )
    return data, pictures, words


def table(rankings):
    return [
        (r.first.tolist(), r.expected_first.tolist(), r.average_precision.tolist(), r.pool)
        for r in rankings
    ]


@needs_faiss
@given(seed=st.integers(0, 10_000), metric=st.sampled_from([Cosine(), Clip()]))
@settings(max_examples=40, deadline=None)
def test_ranks_with_faiss_are_those_of_the_matrix_product(seed, metric):
    data, pictures, words = world(seed)
    exact = rank_embedded(metric, data, pictures, words, index="exact")
    assert table(rank_embedded(metric, data, pictures, words, index="faiss")) == table(exact)
    assert (exact[0].first > exact[0].expected_first).any()  # there are ties to get wrong


@needs_faiss
def test_a_metric_that_says_nothing_ranks_alike():
    """All scores are cut at zero: everything ties with everything."""
    data, pictures, words = world(3)
    pictures, words = np.abs(pictures), -np.abs(words)
    exact = rank_embedded(Clip(), data, pictures, words, index="exact")
    assert table(rank_embedded(Clip(), data, pictures, words, index="faiss")) == table(exact)
    assert exact[0].first.min() > 200


@needs_faiss
def test_a_large_pool_in_many_blocks_ranks_alike(monkeypatch):
    monkeypatch.setattr("croc_annotate.benchmark.retrieval._CELLS_AT_ONCE", 30_000)
    data, pictures, words = world(4, images=5_000, texts=700, width=64, kinds=2_000)
    exact = rank_embedded(Cosine(), data, pictures, words, index="exact")
    assert table(rank_embedded(Cosine(), data, pictures, words, index="faiss")) == table(exact)


@needs_faiss
def test_a_score_that_does_not_grow_with_the_product_is_refused_in_words():
    data, pictures, words = world(5)
    with pytest.raises(MetricError, match="use --index exact"):
        rank_embedded(Distance(), data, pictures, words, index="faiss")
    rank_embedded(Distance(), data, pictures, words, index="exact")


def test_it_is_taken_from_the_stated_size_on_where_it_is_installed(monkeypatch):
    monkeypatch.setattr(flat_index.importlib.util, "find_spec", lambda name: object())
    assert not use_faiss("auto", FAISS_FROM - 1)
    assert use_faiss("auto", FAISS_FROM)
    assert use_faiss("faiss", 10)
    assert not use_faiss("exact", 10**9)
    monkeypatch.setattr(flat_index.importlib.util, "find_spec", lambda name: None)
    assert not use_faiss("auto", 10**9)
    with pytest.raises(MetricError, match=r"pip install 'croc-annotate\[faiss\]'"):
        use_faiss("faiss", 10)


def test_equal_embeddings_tie_wherever_they_stand():
    """Sums of a float32 product depend on an item's place in it; ranks must not."""
    rng = np.random.default_rng(1)
    image = unit_rows(rng.normal(size=(1, 768)))
    data = build_set("test", [f"i{n}" for n in range(257)], [["a text"]] + [[]] * 256)
    words = unit_rows(rng.normal(size=(1, 768)))
    forward, _ = rank_embedded(Cosine(), data, np.repeat(image, 257, axis=0), words, index="exact")
    assert (forward.first[0], forward.expected_first[0]) == (257, 129)
