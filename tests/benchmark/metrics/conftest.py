from __future__ import annotations

import hashlib
import io
import warnings

import numpy as np
import pytest
from PIL import Image, ImageDraw

from croc_annotate.benchmark.metric import ImageInput

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # what third-party packages say while they are imported
    try:
        import torch
    except ModuleNotFoundError:
        torch = None  # tests marked `torch` then skip themselves

TEXTS = [
    "three red apples on a plate",
    "four red apples on a plate",
    "a table with a vase",
    "a table without a vase",
    "a dog left of a cat",
    "a large green circle",
]


def picture(number: int, *, size: tuple[int, int] = (48, 40)) -> Image.Image:
    """A small picture that differs from number to number: coloured discs on a gradient."""
    rng = np.random.default_rng(number)
    width, height = size
    base = np.linspace(0, 255, width)[None, :, None] * rng.uniform(0.2, 1, 3)
    image = Image.fromarray(np.broadcast_to(base, (height, width, 3)).astype(np.uint8).copy())
    draw = ImageDraw.Draw(image)
    for _ in range(4):
        x, y, r = rng.integers(0, width), rng.integers(0, height), rng.integers(4, 14)
        draw.ellipse((x - r, y - r, x + r, y + r), fill=tuple(rng.integers(0, 256, 3).tolist()))
    return image


def as_input(image: Image.Image) -> ImageInput:
    """What the runner hands to a metric that needs pixels."""
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    data = buffer.getvalue()
    return ImageInput(
        sha256=hashlib.sha256(data).hexdigest(), data=data, pixels=image.convert("RGB")
    )


@pytest.fixture(scope="session")
def inputs() -> list[ImageInput]:
    return [as_input(picture(number)) for number in range(16)]


@pytest.fixture(scope="session")
def texts() -> list[list[str]]:
    return [[TEXTS[i % 6], TEXTS[(i + 1) % 6], TEXTS[(i + 3) % 6]] for i in range(16)]


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    if torch is not None:
        torch.set_num_threads(1)


def scores_in_batches(metric, inputs, texts, size: int) -> np.ndarray:
    """All scores, asked for in batches of `size`."""
    rows: list[list[float | None]] = []
    for start in range(0, len(inputs), size):
        part = slice(start, start + size)
        rows += metric.score(images=inputs[part], texts=texts[part]).scores
    return np.array([value for row in rows for value in row], dtype=np.float64)


def margins(scores: np.ndarray, texts) -> np.ndarray:
    """The margin of every comparison within an image and, for equal texts, between images."""
    flat = [(i, text) for i, own in enumerate(texts) for text in own]
    found = [
        scores[a] - scores[b]
        for a in range(len(flat))
        for b in range(a + 1, len(flat))
        if flat[a][0] == flat[b][0] or flat[a][1] == flat[b][1]
    ]
    return np.array(found)


def assert_same_at_any_batch_size(metric, inputs, texts, *, tolerance: float = 1e-5) -> None:
    """Trap 11: the winner of a comparison must not depend on how the rows were batched."""
    single = scores_in_batches(metric, inputs, texts, 1)
    assert np.isfinite(single).all()
    assert len(np.unique(single)) > len(single) // 3, "the scores hardly differ: nothing is tested"
    # Scores come from 32-bit numbers: what differs by a few roundings, on some processors
    # only, is a tie and no win.
    margin = margins(single, texts)
    won = np.abs(margin) > 32 * np.finfo(np.float32).eps * np.abs(single).max()
    assert won.mean() > 0.5, "most comparisons are ties: nothing is tested"
    for size in (2, 3, 16):
        batched = scores_in_batches(metric, inputs, texts, size)
        np.testing.assert_allclose(batched, single, rtol=tolerance, atol=tolerance)
        np.testing.assert_array_equal(np.sign(margins(batched, texts))[won], np.sign(margin)[won])
    backwards = scores_in_batches(metric, inputs[::-1], texts[::-1], 3)
    per_image = single.reshape(len(inputs), -1)
    np.testing.assert_allclose(
        backwards.reshape(len(inputs), -1)[::-1], per_image, rtol=tolerance, atol=tolerance
    )
