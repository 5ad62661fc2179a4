"""Image files: what is accepted, and the one rule by which a file becomes 8-bit sRGB pixels.

The web page, the exporter and the metrics must all see the same picture, so all go
through `rgb`: orientation from EXIF applied, colours brought to sRGB, 16 bits scaled to
8, transparency laid on white. Formats are told by content, never by a name.
"""

from __future__ import annotations

import hashlib
import io
from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageCms, ImageOps

MAX_PIXELS = 50_000_000
PREVIEW_SIDE = 320
DISPLAY_MIME = "image/jpeg"
DISPLAY_SUFFIX = ".jpg"
SUFFIXES = {"PNG": ".png", "JPEG": ".jpg", "WEBP": ".webp", "BMP": ".bmp"}
MIME_TYPES = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".webp": "image/webp",
    ".bmp": "image/bmp",
}

_FORMATS = tuple(SUFFIXES)
_SIXTEEN_BIT = ("I;16", "I;16B", "I;16L", "I;16N", "I")
_WITH_ALPHA = ("RGBA", "LA", "PA", "La", "RGBa")
_MAGIC = {
    b"GIF8": "GIF",
    b"II*\0": "TIFF",
    b"MM\0*": "TIFF",
    b"%PDF": "PDF",
    b"<svg": "SVG",
    b"<?xml": "XML or SVG",
    b"\x89PNG": "a damaged PNG",
    b"\xff\xd8\xff": "a damaged JPEG",
    b"RIFF": "a damaged WebP",
    b"BM": "a damaged BMP",
}
_PNG_END = b"IEND\xaeB`\x82"
# What Pillow raises for a broken file; each codec has its own habit.
_DECODER_ERRORS = (OSError, SyntaxError, ValueError, EOFError, OverflowError, MemoryError)


class BadImageError(ValueError):
    """The bytes are not an image that is accepted; the message is the reason."""


@dataclass(frozen=True)
class ImageFacts:
    """What a file says about itself; sizes are as shown, that is after EXIF rotation."""

    format: str
    width: int
    height: int
    mode: str
    sha256: str
    phash: int


@dataclass(frozen=True)
class Derived:
    """Everything that is made from one original, from one decoding."""

    facts: ImageFacts
    display: bytes
    preview: bytes
    blank: str


def inspect_image(data: bytes, *, max_pixels: int = MAX_PIXELS) -> ImageFacts:
    """Decode the whole file and say what it is; raises BadImageError with the reason."""
    opened, mode = _open_checked(data, max_pixels)
    return _facts(data, opened.format or "", mode, to_rgb(opened))


def rgb(data: bytes, *, max_pixels: int = MAX_PIXELS) -> Image.Image:
    """The file's picture as 8-bit sRGB, mode RGB; raises BadImageError."""
    opened, _ = _open_checked(data, max_pixels)
    return to_rgb(opened)


def display_copy(data: bytes, *, max_pixels: int = MAX_PIXELS) -> bytes:
    """A JPEG of full size without any metadata; raises BadImageError."""
    return _encode(rgb(data, max_pixels=max_pixels), quality=95)


def preview(data: bytes, side: int = PREVIEW_SIDE) -> bytes:
    """A small JPEG that fits into a square of `side` pixels; raises BadImageError."""
    return _preview_of(rgb(data), side)


def derive(data: bytes, *, max_pixels: int = MAX_PIXELS) -> Derived:
    """Facts, display copy and preview from a single decoding; raises BadImageError."""
    opened, mode = _open_checked(data, max_pixels)
    return _derived(data, opened.format or "", mode, to_rgb(opened))


def derive_encoded(data: bytes, picture: Image.Image) -> Derived:
    """As `derive`, for a PNG that was encoded from `picture` (mode RGB) just now."""
    return _derived(data, "PNG", picture.mode, picture)


def _derived(data: bytes, image_format: str, mode: str, picture: Image.Image) -> Derived:
    return Derived(
        facts=_facts(data, image_format, mode, picture),
        display=_encode(picture, quality=95),
        preview=_preview_of(picture, PREVIEW_SIDE),
        blank=blank_reason(picture),
    )


def blank_reason(picture: Image.Image) -> str:
    """Why an image shows nothing, or "": all pixels (nearly) one colour.

    Safety checkers and overflows in half precision answer with such images.
    """
    extremes = picture.convert("RGB").getextrema()
    if any(high - low > 4 for low, high in extremes):  # type: ignore[misc]  # one pair a band
        return ""
    levels = [(low + high) // 2 for low, high in extremes]  # type: ignore[misc]
    name = {(True, False): "black", (False, True): "white"}.get(
        (max(levels) <= 4, min(levels) >= 251), f"one colour {tuple(levels)}"
    )
    return f"blank image: {name}"


def hamming(first: int, second: int) -> int:
    """In how many of their 64 bits two perceptual hashes differ."""
    return (first ^ second).bit_count()


def perceptual_hash(picture: Image.Image) -> int:
    """64-bit DCT hash: signs of the lowest 8×8 frequencies about their median.

    Equal for re-encodings, within about 6 bits for near-duplicates. Method: Zauner 2010.
    """
    grey = picture.convert("L").resize((32, 32), Image.Resampling.LANCZOS)
    levels = np.asarray(grey, dtype=np.float64)  # (32, 32)
    low = (_DCT @ levels @ _DCT.T).ravel()  # (64,), row 0 is the mean grey
    bits = low > np.median(low[1:])
    return int(sum(1 << i for i, bit in enumerate(bits) if bit))


def to_rgb(opened: Image.Image) -> Image.Image:
    """An opened image as upright 8-bit sRGB on white, mode RGB."""
    icc = opened.info.get("icc_profile")
    upright = ImageOps.exif_transpose(opened)
    eight_bit = _eight_bit(upright)
    if eight_bit.mode in _WITH_ALPHA or "transparency" in eight_bit.info:
        layers = eight_bit.convert("RGBA")
        alpha = layers.getchannel("A")
        colours = _to_srgb(layers.convert("RGB"), icc)
        white = Image.new("RGB", layers.size, (255, 255, 255))
        return Image.composite(colours, white, alpha)
    return _clean(_to_srgb(eight_bit, icc))


def _clean(picture: Image.Image) -> Image.Image:
    """The same pixels without info, so that no encoder can write metadata by itself."""
    picture.info = {}
    return picture


def _eight_bit(opened: Image.Image) -> Image.Image:
    # Pillow's own conversion of 16-bit grey clips everything above 255 to white.
    if opened.mode not in _SIXTEEN_BIT:
        return opened
    levels = np.asarray(opened).astype(np.int64)
    scaled = (np.clip(levels, 0, 65_535) * 255 + 32_767) // 65_535
    grey = Image.fromarray(scaled.astype(np.uint8))
    transparent = opened.info.get("transparency")
    if not isinstance(transparent, int):
        return grey
    alpha = Image.fromarray(np.where(levels == transparent, 0, 255).astype(np.uint8))
    return Image.merge("LA", (grey, alpha))


def _to_srgb(picture: Image.Image, icc: object) -> Image.Image:
    if isinstance(icc, bytes) and icc:
        converted = _by_profile(picture, icc)
        if converted is not None:
            return converted
    return picture.convert("RGB")


def _by_profile(picture: Image.Image, icc: bytes) -> Image.Image | None:
    """The picture through its colour profile; None where the profile does not fit it."""
    try:
        profile = ImageCms.ImageCmsProfile(io.BytesIO(icc))
        space = profile.profile.xcolor_space.strip()
        mode = {"RGB": "RGB", "GRAY": "L", "CMYK": "CMYK"}.get(space)
        if mode is None or (mode == "CMYK") != (picture.mode == "CMYK"):
            return None
        return ImageCms.profileToProfile(
            picture.convert(mode), profile, ImageCms.createProfile("sRGB"), outputMode="RGB"
        )
    except (ImageCms.PyCMSError, OSError):
        # A damaged profile says nothing about the pixels: show them as they are.
        return None


def _open_checked(data: bytes, max_pixels: int) -> tuple[Image.Image, str]:
    """An image fully decoded, and its mode; one decoding, plus a checksum pass for PNG."""
    try:
        opened = Image.open(io.BytesIO(data), formats=_FORMATS)
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise BadImageError(f"too many pixels: {error}") from error
    except _DECODER_ERRORS as error:
        raise BadImageError(
            f"not a readable PNG, JPEG, WebP or BMP ({_what_it_is(data)})"
        ) from error
    if opened.width * opened.height > max_pixels:
        raise BadImageError(
            f"too many pixels: {opened.width} × {opened.height}, at most {max_pixels:,} allowed"
        )
    if getattr(opened, "is_animated", False) and opened.format != "MPO":
        raise BadImageError("an animation, not one image")
    _refuse_cut(data, opened.format or "")
    try:
        opened.load()
    except _DECODER_ERRORS as error:
        raise BadImageError(f"truncated or damaged: {error}") from error
    if opened.format == "MPO":  # a phone's JPEG with a second picture; the first is the image
        opened.format = "JPEG"
    return opened, opened.mode


def _refuse_cut(data: bytes, image_format: str) -> None:
    """Raise BadImageError for an end that the decoders would forgive."""
    if image_format == "PNG":
        try:
            Image.open(io.BytesIO(data), formats=("PNG",)).verify()  # checksums, up to IEND
        except _DECODER_ERRORS as error:
            raise BadImageError(f"truncated or damaged: {error}") from error
        if _PNG_END not in data:  # Pillow does not check the last chunk's checksum
            raise BadImageError("truncated or damaged: the PNG has no end mark")
    elif image_format in ("JPEG", "MPO") and data.rfind(b"\xff\xd9") < data.rfind(b"\xff\xda"):
        raise BadImageError("truncated or damaged: the JPEG has no end mark")
    elif image_format == "WEBP" and len(data) < int.from_bytes(data[4:8], "little") + 8:
        raise BadImageError("truncated or damaged: the WebP is shorter than it says")


def _what_it_is(data: bytes) -> str:
    """Name the content for the person who has to find the wrong file."""
    if not data:
        return "the file is empty"
    for magic, name in _MAGIC.items():
        if data.startswith(magic):
            return f"it is {name}"
    return "unknown content"


def _facts(data: bytes, image_format: str, mode: str, picture: Image.Image) -> ImageFacts:
    return ImageFacts(
        format=image_format,
        width=picture.width,
        height=picture.height,
        mode=mode,
        sha256=hashlib.sha256(data).hexdigest(),
        phash=perceptual_hash(picture),
    )


def _preview_of(picture: Image.Image, side: int) -> bytes:
    small = picture.copy()
    small.thumbnail((side, side), Image.Resampling.LANCZOS, reducing_gap=3.0)
    return _encode(small, quality=85)


def _encode(picture: Image.Image, *, quality: int) -> bytes:
    out = io.BytesIO()
    # No chroma subsampling: thin coloured details decide judgements.
    picture.save(out, "JPEG", quality=quality, subsampling=0)
    return out.getvalue()


def _dct_rows(size: int, keep: int) -> np.ndarray:
    """The first `keep` rows of the type-II cosine transform of length `size`."""
    k = np.arange(keep)[:, None]
    n = np.arange(size)[None, :]
    return np.cos(np.pi * k * (2 * n + 1) / (2 * size))


_DCT = _dct_rows(32, 8)  # (8, 32)
