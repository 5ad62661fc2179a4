"""Trap 12: every kind of image file reaches a metric as 8-bit sRGB by one rule."""

from __future__ import annotations

import hashlib
import io

import numpy as np
import pytest
from PIL import Image

from croc_annotate.benchmark import registry
from croc_annotate.benchmark.metric import ImageInput
from croc_annotate.lib import imagefiles
from tests.benchmark.metrics.conftest import TEXTS, picture

BASE = picture(3, size=(64, 48))


def encoded(image: Image.Image, kind: str = "PNG", **settings: object) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **settings)
    return buffer.getvalue()


def from_file(data: bytes) -> ImageInput:
    return ImageInput(
        sha256=hashlib.sha256(data).hexdigest(), data=data, pixels=imagefiles.rgb(data)
    )


def see_through(colour_below: tuple[int, int, int]) -> Image.Image:
    """The left half shows the picture, the right half hides this colour."""
    image = Image.new("RGBA", BASE.size, (*colour_below, 0))
    image.paste(BASE.crop((0, 0, 32, 48)).convert("RGBA"), (0, 0))
    return image


def on_white() -> Image.Image:
    image = Image.new("RGB", BASE.size, "white")
    image.paste(BASE.crop((0, 0, 32, 48)), (0, 0))
    return image


def turned() -> bytes:
    """Stored turned, with the EXIF mark that turns it back."""
    exif = Image.Exif()
    exif[0x0112] = 6
    return encoded(BASE.transpose(Image.Transpose.ROTATE_90), exif=exif)


def with_clear_colour() -> bytes:
    image = Image.new("P", (64, 48), 1)
    image.putpalette([255, 0, 255, 0, 128, 0] + [0] * 750)
    image.paste(0, (32, 0, 64, 48))
    return encoded(image, transparency=0)


GREY = BASE.convert("L")
CASES = {
    "RGBA": (encoded(see_through((255, 0, 255))), on_white()),
    "LA": (
        encoded(Image.merge("LA", (GREY, Image.new("L", GREY.size, 255)))),
        GREY.convert("RGB"),
    ),
    "P with transparency": (
        with_clear_colour(),
        Image.composite(
            Image.new("RGB", (64, 48), (0, 128, 0)),
            Image.new("RGB", (64, 48), "white"),
            Image.fromarray(np.repeat([[255] * 32 + [0] * 32], 48, axis=0).astype(np.uint8)),
        ),
    ),
    "L": (encoded(GREY), GREY.convert("RGB")),
    "I;16": (
        encoded(Image.fromarray(np.asarray(GREY).astype(np.uint16) * 257)),
        GREY.convert("RGB"),
    ),
    "EXIF-rotated": (turned(), BASE),
}


@pytest.fixture(scope="module")
def metric():
    return registry.create("onnx-dual-encoder")


@pytest.mark.field_case(44)
@pytest.mark.parametrize("name", CASES)
def test_the_mode_of_the_file_does_not_change_the_score(metric, name):
    data, plain = CASES[name]
    got = metric.score(images=[from_file(data)], texts=[TEXTS]).scores
    wanted = metric.score(images=[from_file(encoded(plain))], texts=[TEXTS]).scores
    np.testing.assert_allclose(got, wanted, atol=2e-3)


@pytest.mark.field_case(44)
def test_cmyk_is_scored_close_to_its_rgb(metric):
    data = encoded(BASE.convert("CMYK"), "JPEG", quality=98)
    got = metric.score(images=[from_file(data)], texts=[TEXTS]).scores
    wanted = metric.score(images=[from_file(encoded(BASE, "JPEG", quality=98))], texts=[TEXTS])
    np.testing.assert_allclose(got, wanted.scores, atol=0.1)


@pytest.mark.field_case(44)
def test_colours_hidden_under_transparency_are_never_seen(metric):
    files = [from_file(encoded(see_through(colour))) for colour in ((255, 0, 0), (0, 0, 255))]
    first, second = metric.score(images=files, texts=[TEXTS, TEXTS]).scores
    assert first == second
