"""What a metric is: a small Protocol, the dataclasses around it, and its fingerprint.

No Django and no torch here. A metric is a class in one file, reached by dotted path from
`registry.py`; it is built with one argument (`options`) and answers `score`. Everything that
decides the numbers it gives is in its `facts`, and equal facts mean equal scores: scores are
stored under the fingerprint and never computed twice.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

from croc_annotate.lib.hashing import canonical_json, sha256_text

if TYPE_CHECKING:
    import numpy as np
    from PIL.Image import Image

ImageNeed = Literal["hash", "bytes", "pixels"]
"""What a metric reads of an image; the runner opens and decodes no more than that."""

TieRule = Literal["loss", "half"]

ReferenceVotes = Mapping[tuple[str, str], bool]
"""(SHA-256 of the image, the text) → the one vote that was kept out of the selection."""


class MetricError(Exception):
    """A metric cannot work: wrong or missing model, no key, no package. One clear sentence."""


class MetricMemoryError(MetricError):
    """The batch did not fit into memory: the caller may halve it and try again."""


@dataclass(frozen=True, slots=True)
class ImageInput:
    """One image as a metric receives it.

    `sha256` names the original bytes. `data` holds them where the metric needs "bytes" or
    "pixels"; `pixels` is 8-bit sRGB by the one rule of `lib.imagefiles.rgb` where it needs "pixels".
    """

    sha256: str
    data: bytes | None = None
    pixels: Image | None = None


@dataclass(frozen=True, slots=True)
class ScoreBatch:
    """The scores of a batch: `scores[i][k]` belongs to `images[i]` and `texts[i][k]`.

    None is a missing score (a failed call, a text that the metric has no score for), never a
    number in disguise; `reasons` then says why, in words and without repeats. `truncated` holds
    the texts of which the model saw a part only.
    """

    scores: list[list[float | None]]
    truncated: frozenset[str] = frozenset()
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricFacts:
    """All that decides a metric's scores (the fingerprint), and a few facts that do not."""

    name: str
    model: str = ""
    revision: str = ""  # a commit, or a digest of the files of a local folder; never a branch
    prompt: str = ""
    preprocessing: str = ""
    image_backend: str = ""
    dtype: str = ""
    code_version: str = "1"  # raised by hand whenever the numbers change
    settings: Mapping[str, str] = field(default_factory=dict)
    # Not part of the fingerprint:
    label: str = ""
    source: str = ""
    deterministic: bool = True  # False: a missing score (a failed call) may be there next time
    ties: TieRule = "loss"  # what a tie counts by this metric's own rule (the human row: half)
    parameters: int | None = None  # of the model, once it is loaded

    def parts(self) -> dict[str, Any]:
        """The parts of the fingerprint as plain JSON values."""
        return {
            "name": self.name,
            "model": self.model,
            "revision": self.revision,
            "prompt": self.prompt,
            "preprocessing": self.preprocessing,
            "image_backend": self.image_backend,
            "dtype": self.dtype,
            "code_version": self.code_version,
            "settings": dict(self.settings),
        }


def fingerprint(facts: MetricFacts) -> str:
    """SHA-256 over the parts that decide the scores: 64 hexadecimal digits."""
    return sha256_text(canonical_json(facts.parts()))


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricOptions:
    """What the caller may choose; None means the metric's own default."""

    model: str | None = None  # an id on the model hub, or a local folder
    revision: str | None = None
    device: str | None = None  # "cpu", "cuda", "cuda:1", "mps"; None: the best that is there
    dtype: str | None = None  # "float32", "bfloat16", "float16"
    prompt: str | None = None
    seed: int = 0
    reference_votes: ReferenceVotes | None = None  # for `human` only
    extra: Mapping[str, str] = field(default_factory=dict)  # --option KEY=VALUE


@runtime_checkable
class Metric(Protocol):
    """A metric: how well does this text describe this image? Higher is better."""

    needs: ImageNeed

    def describe(self) -> MetricFacts:
        """The facts; cheap, without loading weights, and constant over the metric's life."""

    def score(self, *, images: Sequence[ImageInput], texts: Sequence[Sequence[str]]) -> ScoreBatch:
        """Score each image against each of its own texts: `texts[i]` belongs to `images[i]`.

        Each image is encoded once for all its texts. Raises MetricMemoryError when the batch does
        not fit, MetricError when nothing can be scored at all.
        """

    def close(self) -> None:
        """Give memory and connections back; the metric is not used afterwards."""


@runtime_checkable
class DualEncoder(Metric, Protocol):
    """A metric that embeds images and texts apart, so that retrieval is a matrix product."""

    def embed_images(self, *, images: Sequence[ImageInput]) -> np.ndarray:
        """float32 [images, width], rows of length 1."""

    def embed_texts(self, *, texts: Sequence[str]) -> np.ndarray:
        """float32 [texts, width], rows of length 1."""

    def similarity(self, *, images: np.ndarray, texts: np.ndarray) -> np.ndarray:
        """float32 [images, texts]: the metric's own score from two arrays of embeddings."""

    def truncated(self, *, texts: Sequence[str]) -> frozenset[str]:
        """The texts that are longer than the text encoder reads."""


@runtime_checkable
class Prepares(Protocol):
    """A metric whose preprocessing may start in a decoding worker (optional)."""

    def prepare(self, *, image: ImageInput) -> ImageInput:
        """The image made smaller. Safe in threads; `score` answers the same with or without it."""


class MetricFactory(Protocol):
    """What a registry entry points to: usually the metric's class itself."""

    def __call__(self, *, options: MetricOptions) -> Metric:
        """Build the metric; raises MetricError with one sentence on what is missing."""


def check_options(options: MetricOptions, name: str, *known: str, prompt: str | None = None) -> str:
    """Refuse what the metric does not know; the question to ask (`prompt` is the default one).

    A misspelt option that is passed over in silence gives scores that nobody asked for.
    """
    for key in options.extra:
        if key not in known:
            has = f"it has {', '.join(known)}" if known else "it has none"
            raise MetricError(f"Metric {name!r} has no option {key!r}; {has}.")
    if prompt is None:
        if options.prompt is not None:
            raise MetricError(f"Metric {name!r} asks no question: it takes no prompt.")
        return ""
    question = options.prompt if options.prompt is not None else prompt
    if "{text}" not in question:
        raise MetricError(f"The prompt of {name!r} needs {{text}} where the text shall stand.")
    return question


def whole_number(options: MetricOptions, key: str, default: int) -> int:
    """An option that is a whole number, at least 1."""
    stated = options.extra.get(key, str(default))
    if not stated.isdecimal() or int(stated) < 1:
        raise MetricError(f"{key}={stated!r} is no whole number of at least 1.")
    return int(stated)


def as_score(value: float) -> float | None:
    """A finite float, or None: NaN and infinity are missing scores, not numbers."""
    return float(value) if math.isfinite(value) else None


def check_batch(images: Sequence[ImageInput], texts: Sequence[Sequence[str]]) -> None:
    """Refuse a call whose two sides do not fit (swapped arguments, a flat list of texts)."""
    if len(images) != len(texts):
        raise MetricError(f"{len(images)} images came with {len(texts)} lists of texts.")
    for image, own in zip(images, texts, strict=True):
        if not isinstance(image, ImageInput) or isinstance(own, str):
            raise MetricError("score() takes ImageInput objects and, for each, a list of texts.")


def pixels_of(image: ImageInput) -> Image:
    """The decoded image, or a sentence that tells the caller what it left out."""
    if image.pixels is None:
        raise MetricError(f"Image {image.sha256[:12]} came without pixels to a metric of pixels.")
    return image.pixels


def nested(
    flat: Sequence[float | None], texts: Sequence[Sequence[str]]
) -> list[list[float | None]]:
    """Cut a flat list of scores back into one list for each image."""
    result: list[list[float | None]] = []
    start = 0
    for own in texts:
        result.append(list(flat[start : start + len(own)]))
        start += len(own)
    if start != len(flat):
        raise MetricError(f"{len(flat)} scores came for {start} pairs of image and text.")
    return result
