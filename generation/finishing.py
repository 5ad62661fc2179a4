"""From a pipeline's outcome to a file that can be stored: encode, look at it, describe it."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from PIL import PngImagePlugin

from croc_annotate.lib.imagefiles import BadImageError, Derived, derive, derive_encoded
from generation.pipeline import RenderedImage, RenderFailure

if TYPE_CHECKING:
    from collections.abc import Mapping

    from PIL import Image

    from generation.pipeline import Outcome

PNG_KEY = "croc-annotate"
# zlib's default (6) takes half as long again for files that are 2 % smaller.
_COMPRESSION = 4


@dataclass(frozen=True)
class FinishedImage:
    """An image ready to be stored."""

    seed: int
    data: bytes
    derived: Derived
    provenance: dict[str, object]


@dataclass(frozen=True)
class Unfinished:
    """An image whose encoding or storing met an error that nobody foresaw."""

    seed: int
    error: Exception


Finished = FinishedImage | RenderFailure | Unfinished


def finish(outcome: Outcome, *, text: str, shared: Mapping[str, object]) -> Finished:
    """Encode an image with its provenance inside; a blank or broken one is a failure.

    Safe to run in any thread: it touches neither database nor storage nor device.
    """
    if isinstance(outcome, RenderFailure):
        return outcome
    provenance = {**shared, "text": text, "seed": outcome.seed, "image": dict(outcome.facts)}
    try:
        data, derived = _encoded(outcome, provenance)
    except BadImageError as error:
        return RenderFailure(outcome.seed, f"unusable image: {error}")
    except Exception as error:  # noqa: BLE001 - e.g. facts that are no JSON; only this image's
        return Unfinished(outcome.seed, error)
    if derived.blank:
        return RenderFailure(outcome.seed, derived.blank)
    return FinishedImage(outcome.seed, data, derived, provenance)


def encode_png(image: Image.Image, provenance: Mapping[str, object]) -> bytes:
    """A PNG that carries its provenance as JSON in a text chunk."""
    info = PngImagePlugin.PngInfo()
    info.add_itxt(PNG_KEY, json.dumps(provenance, ensure_ascii=False, sort_keys=True))
    out = io.BytesIO()
    image.save(out, "PNG", pnginfo=info, compress_level=_COMPRESSION)
    return out.getvalue()


def _encoded(outcome: RenderedImage, provenance: Mapping[str, object]) -> tuple[bytes, Derived]:
    """The file and its copies; a file that came from elsewhere is decoded and checked first."""
    if outcome.data is not None:
        return outcome.data, derive(outcome.data)
    if outcome.image is None:  # the dataclass allows exactly one of the two
        raise TypeError("an outcome without pixels cannot be encoded")
    picture = outcome.image.convert("RGB")
    data = encode_png(picture, provenance)
    return data, derive_encoded(data, picture)
