"""Retrieval on a release or an image–caption set: embed once, then rank (no torch here)."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from croc_annotate.benchmark.batching import halving
from croc_annotate.benchmark.environment import peak_memory_mb
from croc_annotate.benchmark.flat_index import rank_with_faiss, use_faiss
from croc_annotate.benchmark.metric import DualEncoder, ImageInput, MetricError, Prepares
from croc_annotate.benchmark.retrieval import (
    merge_equal,
    nearest_neighbours,
    pair_pools,
    rank_all,
    rank_pools,
    rsum,
)
from croc_annotate.lib.imagefiles import BadImageError, rgb

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from croc_annotate.benchmark.flat_index import IndexChoice, ScoresOf
    from croc_annotate.benchmark.layout import Floats, Ints
    from croc_annotate.benchmark.metric import Metric
    from croc_annotate.benchmark.retrieval import Ranking


@dataclass(frozen=True)
class RetrievalSet:
    """Images, texts, and which belong together."""

    name: str
    image_keys: tuple[str, ...]
    """SHA-256, or a file name."""
    texts: tuple[str, ...]
    images_of_text: tuple[Ints, ...]
    texts_of_image: tuple[Ints, ...]
    """Empty for an image that is in the pool only."""
    pair_of_image: Ints
    """Group that pools are built around; −1 without one."""


def build_set(
    name: str,
    image_keys: Sequence[str],
    texts_of_image: Sequence[Sequence[str]],
    *,
    groups: Sequence[int] | None = None,
) -> RetrievalSet:
    """A set from each image's own texts; equal texts are merged into one query."""
    flat = [text for own in texts_of_image for text in own]
    texts, numbers = merge_equal(flat)
    owner = np.repeat(np.arange(len(image_keys)), [len(own) for own in texts_of_image])
    images_of_text: list[list[int]] = [[] for _ in texts]
    texts_of: list[list[int]] = [[] for _ in image_keys]
    for text, image in zip(numbers.tolist(), owner.tolist(), strict=True):
        if image not in images_of_text[text]:
            images_of_text[text].append(image)
            texts_of[image].append(text)
    return RetrievalSet(
        name,
        tuple(image_keys),
        tuple(texts),
        tuple(np.array(i, dtype=np.int64) for i in images_of_text),
        tuple(np.array(t, dtype=np.int64) for t in texts_of),
        np.array(groups if groups is not None else [-1] * len(image_keys), dtype=np.int64),
    )


def evaluate_full(
    metric: Metric,
    data: RetrievalSet,
    read: Callable[[int], bytes],
    *,
    batch: int = 32,
    index: IndexChoice = "auto",
) -> dict[str, Any]:
    """All texts against all images, both ways; the metric must embed. Raises MetricError."""
    if not isinstance(metric, DualEncoder):
        raise MetricError(
            "the full pool needs a metric that embeds images and texts apart; "
            "use --pool pair for others."
        )
    start = time.perf_counter()
    images = embed_images(metric, data, read, batch=batch)
    embedded = time.perf_counter()
    texts = np.concatenate(
        [
            part
            for i in range(0, len(data.texts), batch)
            for part in halving(
                lambda own: metric.embed_texts(texts=own), data.texts[i : i + batch]
            )
        ]
    )
    texted = time.perf_counter()
    forward, backward = rank_embedded(metric, data, images, texts, index=index)
    largest = max(len(images), len(texts))
    return _document(
        data, forward, backward, index="faiss" if use_faiss(index, largest) else "exact",
        seconds={"images": embedded - start, "texts": texted - embedded,
                 "ranking": time.perf_counter() - texted},
    )  # fmt: skip


def rank_embedded(
    metric: DualEncoder,
    data: RetrievalSet,
    images: np.ndarray,
    texts: np.ndarray,
    *,
    index: IndexChoice = "auto",
) -> tuple[Ranking, Ranking]:
    """(text → image, image → text), exactly: by products block by block, or with FAISS.

    Sums are taken in float64 and rounded to float32, so that equal embeddings tie wherever they
    stand: sums of a float32 product depend on an item's place in it.
    """

    def of_texts(queries: np.ndarray, items: np.ndarray) -> np.ndarray:
        return metric.similarity(images=items, texts=queries).T.astype(np.float32)

    def of_images(queries: np.ndarray, items: np.ndarray) -> np.ndarray:
        return metric.similarity(images=queries, texts=items).astype(np.float32)

    return (
        _rank(texts, images, data.images_of_text, of_texts, index),
        _rank(images, texts, data.texts_of_image, of_images, index),
    )


def _rank(
    queries: np.ndarray,
    items: np.ndarray,
    relevant: Sequence[Ints],
    scores_of: ScoresOf,
    index: IndexChoice,
) -> Ranking:
    if use_faiss(index, len(items)):
        return rank_with_faiss(queries, items, relevant, scores_of)
    wide = items.astype(np.float64)
    return rank_all(
        len(queries),
        relevant,
        lambda block: scores_of(queries[block].astype(np.float64), wide),
        n_items=len(items),
    )


def evaluate_pools(
    metric: Metric,
    data: RetrievalSet,
    read: Callable[[int], bytes],
    neighbours: np.ndarray,
    *,
    batch: int = 16,
) -> dict[str, Any]:
    """Each pair's texts against its own images and their neighbours (any metric can do it).

    `neighbours` comes from a frozen encoder that is not the one evaluated.
    """
    start = time.perf_counter()
    pools, queries = _pools(data, neighbours)
    scores = _score_pools(metric, data, read, pools, queries, batch)
    forward = rank_pools(pools, [data.images_of_text[q] for q in queries], scores)
    document = _document(data, forward, None, seconds={"scoring": time.perf_counter() - start})
    return {**document, "pool": "pair"}


def neighbours_of(
    encoder: Metric,
    data: RetrievalSet,
    read: Callable[[int], bytes],
    *,
    k: int = 50,
    batch: int = 32,
) -> np.ndarray:
    """The k visually nearest images of each image; raises MetricError for a metric that cannot."""
    if not isinstance(encoder, DualEncoder):
        raise MetricError("the encoder of the neighbours must embed images.")
    return nearest_neighbours(embed_images(encoder, data, read, batch=batch), k=k)


def embed_images(
    metric: DualEncoder, data: RetrievalSet, read: Callable[[int], bytes], *, batch: int
) -> np.ndarray:
    """float32 [images, width]: each image is read, decoded and encoded once."""
    parts = []
    for start in range(0, len(data.image_keys), batch):
        rows = range(start, min(start + batch, len(data.image_keys)))
        images = [image_input(metric, data, read, i) for i in rows]
        parts += halving(lambda own: metric.embed_images(images=own), images)
    return np.concatenate(parts)


def score_pairs(
    metric: Metric, pairs: Sequence[tuple[ImageInput, Sequence[str]]]
) -> list[list[float | None]]:
    """The scores of each image with its own texts, in smaller batches where memory runs out."""
    parts = halving(
        lambda own: (
            metric.score(images=[i for i, _ in own], texts=[list(t) for _, t in own]).scores
        ),
        pairs,
    )
    return [row for part in parts for row in part]


def image_input(
    metric: Metric, data: RetrievalSet, read: Callable[[int], bytes], row: int
) -> ImageInput:
    """One image as the metric wants it; raises MetricError for one that cannot be read."""
    if metric.needs == "hash":
        return ImageInput(sha256=data.image_keys[row])
    try:
        content = read(row)
        pixels = rgb(content) if metric.needs == "pixels" else None
    except (OSError, BadImageError) as error:
        raise MetricError(f"image {data.image_keys[row]} cannot be read: {error}") from error
    image = ImageInput(sha256=data.image_keys[row], data=content, pixels=pixels)
    return metric.prepare(image=image) if isinstance(metric, Prepares) else image


def _pools(data: RetrievalSet, neighbours: np.ndarray) -> tuple[list[Ints], list[int]]:
    queries, pools = [], []
    for query, images in enumerate(data.images_of_text):
        groups = sorted(set(data.pair_of_image[images].tolist()) - {-1})
        if groups:
            queries.append(query)
            pools.append(
                np.unique(np.concatenate(pair_pools(data.pair_of_image, neighbours, groups)))
            )
    return pools, queries


def _score_pools(
    metric: Metric,
    data: RetrievalSet,
    read: Callable[[int], bytes],
    pools: Sequence[Ints],
    queries: Sequence[int],
    batch: int,
) -> list[Floats]:
    """Scores in the shape of the pools; each image is decoded once for all its queries."""
    asked: dict[int, list[int]] = {}
    for position, pool in enumerate(pools):
        for image in pool.tolist():
            asked.setdefault(image, []).append(position)
    scores = [np.full(len(pool), np.nan) for pool in pools]
    place = [{image: k for k, image in enumerate(pool.tolist())} for pool in pools]
    images = sorted(asked)
    for start in range(0, len(images), batch):
        chunk = images[start : start + batch]
        rows = score_pairs(
            metric,
            [
                (image_input(metric, data, read, i), [data.texts[queries[p]] for p in asked[i]])
                for i in chunk
            ],
        )
        for image, values in zip(chunk, rows, strict=True):
            for position, value in zip(asked[image], values, strict=True):
                if value is not None:
                    scores[position][place[position][image]] = value
    return scores


def _document(
    data: RetrievalSet,
    forward: Ranking,
    backward: Ranking | None,
    *,
    seconds: dict[str, float],
    index: str = "exact",
) -> dict[str, Any]:
    queries = len(forward.first)
    return {
        "set": data.name,
        "images": len(data.image_keys),
        "texts": len(data.texts),
        "text_to_image": forward.summary(),
        "image_to_text": backward.summary() if backward is not None else None,
        "rsum": rsum(forward, backward) if backward is not None else None,
        "seconds": {key: round(value, 4) for key, value in seconds.items()},
        "milliseconds_per_query": round(1000 * sum(seconds.values()) / max(queries, 1), 4),
        "index": index,
        "peak_memory_mb": peak_memory_mb(),
        "limits": "matches that nobody judged count as misses; ranks are pessimistic under ties",
    }
