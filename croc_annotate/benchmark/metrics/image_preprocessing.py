"""From a decoded image to the numbers a vision tower reads: Pillow and NumPy, one backend for all.

The Pillow and the torchvision backends of `transformers` give different pixels for the same
settings, and a squashed image scores quite differently from a cropped one. So each metric says
which `Preprocessing` it uses, and `describe` puts it into the metric's fingerprint.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image

if TYPE_CHECKING:
    from collections.abc import Sequence

    from croc_annotate.benchmark.metric import ImageInput

IMAGE_BACKEND = "pil"


@dataclass(frozen=True, slots=True, kw_only=True)
class Preprocessing:
    """Resize, crop, rescale, normalise, in this order."""

    height: int = 224
    width: int = 224
    shortest_edge: int | None = None  # instead of height and width: keep the shape of the image
    crop: tuple[int, int] | None = None  # height, width around the middle, after resizing
    resample: Image.Resampling = Image.Resampling.BICUBIC
    scale: float = 1 / 255
    offset: float = 0.0
    mean: tuple[float, ...] = (0.0, 0.0, 0.0)
    std: tuple[float, ...] = (1.0, 1.0, 1.0)

    def squashed(self, *, side: int, resample: Image.Resampling) -> Preprocessing:
        """The same numbers from an image squashed to a square."""
        return replace(
            self, height=side, width=side, shortest_edge=None, crop=None, resample=resample
        )

    def shape(self, pixels: Image.Image) -> Image.Image:
        """Resize and crop; an image that has been through it comes back unchanged."""
        resized = pixels.resize(self._target(pixels), resample=self.resample)
        if self.crop is None:
            return resized
        height, width = self.crop
        top, left = (resized.height - height) // 2, (resized.width - width) // 2
        return resized.crop((left, top, left + width, top + height))

    def array(self, images: Sequence[Image.Image]) -> np.ndarray:
        """float32 [images, 3, height, width]."""
        stacked = np.stack([np.asarray(self.shape(image), dtype=np.float32) for image in images])
        stacked *= np.float32(self.scale)
        stacked += np.float32(self.offset)
        stacked -= np.asarray(self.mean, dtype=np.float32)
        stacked /= np.asarray(self.std, dtype=np.float32)
        return np.ascontiguousarray(stacked.transpose(0, 3, 1, 2))

    def describe(self) -> str:
        """One line for the fingerprint."""
        if self.shortest_edge is None:
            how = f"squash {self.height}x{self.width}"
        else:
            how = f"shortest edge {self.shortest_edge}"
        if self.crop is not None:
            how += f", crop {self.crop[0]}x{self.crop[1]}"
        numbers = f"scale {self.scale:.9g}, offset {self.offset:g}"
        mean = " ".join(f"{value:.8g}" for value in self.mean)
        std = " ".join(f"{value:.8g}" for value in self.std)
        return f"{how}, {self.resample.name.lower()}, {numbers}, mean {mean}, std {std}"

    def _target(self, pixels: Image.Image) -> tuple[int, int]:
        if self.shortest_edge is None:
            return self.width, self.height
        short, long = sorted(pixels.size)
        longer = int(self.shortest_edge * long / short)
        wide = pixels.width > pixels.height
        return (longer, self.shortest_edge) if wide else (self.shortest_edge, longer)


def from_image_processor(processor: Any) -> Preprocessing:
    """The settings of an image processor of `transformers` (resize, crop, rescale, normalise)."""
    size = dict(processor.size)
    shortest = size.get("shortest_edge")
    crop = processor.crop_size if getattr(processor, "do_center_crop", False) else None
    return Preprocessing(
        height=int(size.get("height") or 0),
        width=int(size.get("width") or 0),
        shortest_edge=int(shortest) if shortest else None,
        crop=(int(crop["height"]), int(crop["width"])) if crop else None,
        resample=Image.Resampling(int(processor.resample)),
        scale=float(processor.rescale_factor) if processor.do_rescale else 1.0,
        offset=-1.0 if getattr(processor, "rescale_offset", False) else 0.0,
        mean=tuple(processor.image_mean) if processor.do_normalize else (0.0,) * 3,
        std=_std(processor),
    )


def _std(processor: Any) -> tuple[float, ...]:
    std = tuple(processor.image_std) if processor.do_normalize else (1.0,) * 3
    if getattr(processor, "include_top", False):  # EfficientNet divides by it once more
        return tuple(a * b for a, b in zip(std, processor.image_std, strict=True))
    return std


def prepared(image: ImageInput, preprocessing: Preprocessing) -> ImageInput:
    """The image with its pixels resized and cropped: what a decoding worker may do ahead."""
    if image.pixels is None:
        return image
    return replace(image, data=None, pixels=preprocessing.shape(image.pixels))
