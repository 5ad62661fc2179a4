from __future__ import annotations

import io
import struct
import zlib

import numpy as np
import pytest
from PIL import Image, ImageCms, PngImagePlugin

from croc_annotate.lib import imagefiles
from croc_annotate.lib.imagefiles import BadImageError


def picture(size: tuple[int, int] = (48, 32)) -> Image.Image:
    """A gradient whose corners all differ, so that turning it shows."""
    x = np.linspace(0, 255, size[0])[None, :].repeat(size[1], 0)
    y = np.linspace(0, 255, size[1])[:, None].repeat(size[0], 1)
    return Image.fromarray(np.stack([x, y, 255 - x], -1).astype(np.uint8))


def encoded(image: Image.Image, image_format: str = "PNG", **options: object) -> bytes:
    out = io.BytesIO()
    image.save(out, image_format, **options)
    return out.getvalue()


def png_of_size(width: int, height: int) -> bytes:
    """A PNG that claims a size and holds no pixels."""
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)

    def chunk(kind: bytes, body: bytes) -> bytes:
        crc = struct.pack(">I", zlib.crc32(kind + body))
        return struct.pack(">I", len(body)) + kind + body + crc

    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", b"") + chunk(b"IEND", b"")


@pytest.mark.parametrize("image_format", ["PNG", "JPEG", "WEBP", "BMP"])
def test_the_four_formats_are_told_by_content(image_format: str) -> None:
    data = encoded(picture(), image_format)
    facts = imagefiles.inspect_image(data)
    assert (facts.format, facts.width, facts.height) == (image_format, 48, 32)
    assert len(facts.sha256) == 64


@pytest.mark.parametrize("image_format", ["GIF", "TIFF", "PPM", "ICO", "PDF"])
def test_other_formats_are_refused_whatever_they_are_called(image_format: str) -> None:
    with pytest.raises(BadImageError, match="not a readable PNG, JPEG, WebP or BMP"):
        imagefiles.inspect_image(encoded(picture(), image_format))


@pytest.mark.parametrize("data", [b"", b"\0" * 300, b"<svg/>", b"hello"])
def test_what_is_no_image_is_refused(data: bytes) -> None:
    with pytest.raises(BadImageError, match="not a readable"):
        imagefiles.inspect_image(data)


@pytest.mark.parametrize("image_format", ["PNG", "JPEG", "WEBP", "BMP"])
@pytest.mark.parametrize("cut", [0.3, 0.7, 0.95, -8, -2])
def test_truncated_files_are_refused(image_format: str, cut: float) -> None:
    noise = Image.fromarray(np.random.default_rng(0).integers(0, 256, (64, 64, 3), np.uint8))
    data = encoded(noise, image_format)
    end = int(cut) if cut < 0 else int(len(data) * cut)
    with pytest.raises(BadImageError, match=r"truncated|not a readable"):
        imagefiles.inspect_image(data[:end])


def test_a_flipped_byte_in_a_png_is_found() -> None:
    data = bytearray(encoded(picture()))
    data[len(data) // 2] ^= 0xFF
    with pytest.raises(BadImageError, match="damaged"):
        imagefiles.inspect_image(bytes(data))


@pytest.mark.parametrize("size", [(8000, 7000), (20_000, 20_000), (2**31 - 1, 2**31 - 1)])
def test_pixel_bombs_are_refused_before_they_are_decoded(size: tuple[int, int]) -> None:
    with pytest.raises(BadImageError, match=r"too many pixels|not a readable"):
        imagefiles.inspect_image(png_of_size(*size))


def test_an_animation_is_refused() -> None:
    frames = [picture(), picture().rotate(180)]
    data = encoded(frames[0], "WEBP", save_all=True, append_images=frames[1:], duration=100)
    with pytest.raises(BadImageError, match="animation"):
        imagefiles.inspect_image(data)


@pytest.mark.field_case(20)
@pytest.mark.parametrize("orientation", range(1, 9))
def test_exif_orientation_is_applied(orientation: int) -> None:
    turns = {
        2: Image.Transpose.FLIP_LEFT_RIGHT,
        3: Image.Transpose.ROTATE_180,
        4: Image.Transpose.FLIP_TOP_BOTTOM,
        5: Image.Transpose.TRANSPOSE,
        6: Image.Transpose.ROTATE_90,
        7: Image.Transpose.TRANSVERSE,
        8: Image.Transpose.ROTATE_270,
    }
    upright = picture()
    stored = upright.transpose(turns[orientation]) if orientation in turns else upright
    exif = Image.Exif()
    exif[0x0112] = orientation
    data = encoded(stored, "PNG", exif=exif)
    assert imagefiles.rgb(data).tobytes() == upright.tobytes()
    facts = imagefiles.inspect_image(data)
    assert (facts.width, facts.height) == upright.size


@pytest.mark.field_case(20)
@pytest.mark.field_case(44)
@pytest.mark.parametrize("mode", ["RGBA", "LA", "P", "RGB-key", "L-key"])
def test_transparency_lies_on_white(mode: str) -> None:
    base = Image.new("RGBA", (40, 20), (200, 0, 0, 255))
    base.paste((0, 0, 0, 0), (0, 0, 20, 20))  # left half: transparent, black beneath
    files = {
        "RGBA": lambda: encoded(base),
        "LA": lambda: encoded(base.convert("LA")),
        "P": lambda: encoded(base.convert("P"), transparency=base.convert("P").getpixel((5, 5))),
        "RGB-key": lambda: encoded(base.convert("RGB"), transparency=(0, 0, 0)),
        "L-key": lambda: encoded(base.convert("L"), transparency=0),
    }
    shown = imagefiles.rgb(files[mode]())
    assert shown.getpixel((5, 5)) == (255, 255, 255)
    assert shown.getpixel((35, 5)) != (255, 255, 255)


def test_half_transparent_pixels_are_mixed_with_white() -> None:
    shown = imagefiles.rgb(encoded(Image.new("RGBA", (4, 4), (0, 0, 0, 128))))
    assert shown.getpixel((0, 0)) == (127, 127, 127)


@pytest.mark.field_case(20)
def test_sixteen_bit_grey_is_scaled_not_clipped() -> None:
    levels = np.linspace(0, 65_535, 64, dtype=np.uint16)[None, :].repeat(16, 0)
    shown = np.asarray(imagefiles.rgb(encoded(Image.fromarray(levels))))
    assert shown[0, 0, 0] == 0
    assert shown[0, -1, 0] == 255
    assert abs(int(shown[0, 32, 0]) - 130) <= 1
    assert len(np.unique(shown)) == 64


def test_cmyk_palette_and_bilevel_become_rgb() -> None:
    for stored, image_format in (
        (picture().convert("CMYK"), "JPEG"),
        (picture().quantize(), "PNG"),
    ):
        shown = np.asarray(imagefiles.rgb(encoded(stored, image_format))).astype(int)
        assert np.abs(shown - np.asarray(picture()).astype(int)).mean() < 12
    assert imagefiles.rgb(encoded(picture().convert("1"))).mode == "RGB"


def test_a_colour_profile_is_honoured_and_a_broken_one_ignored() -> None:
    lab = ImageCms.createProfile("LAB")
    srgb = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    plain = np.asarray(picture()).astype(int)
    for profile in (srgb, b"nonsense", ImageCms.ImageCmsProfile(lab).tobytes()):
        shown = np.asarray(imagefiles.rgb(encoded(picture(), icc_profile=profile))).astype(int)
        assert np.abs(shown - plain).max() <= 1


def test_a_wide_gamut_profile_moves_the_colours() -> None:
    # sRGB with red and blue swapped: what was stored as red must be shown as blue.
    profile = bytearray(ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes())
    red, blue = profile.index(b"rXYZ"), profile.index(b"bXYZ")
    profile[red : red + 4], profile[blue : blue + 4] = b"bXYZ", b"rXYZ"
    data = encoded(Image.new("RGB", (8, 8), (255, 0, 0)), icc_profile=bytes(profile))
    r, _, b = imagefiles.rgb(data).getpixel((0, 0))
    assert b > 200
    assert r < 60


def test_display_copy_and_preview_hold_no_metadata() -> None:
    text = PngImagePlugin.PngInfo()
    text.add_text("croc", '{"model_id": "secret/model", "seed": 7}')
    exif = Image.Exif()
    exif[0x010E] = "secret/model"
    srgb = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    data = encoded(picture(), pnginfo=text, exif=exif, icc_profile=srgb)
    for derived in (imagefiles.display_copy(data), imagefiles.preview(data)):
        assert b"secret" not in derived
        opened = Image.open(io.BytesIO(derived))
        assert opened.mode == "RGB"
        assert not dict(opened.getexif())
        assert set(opened.info) <= {"jfif", "jfif_version", "jfif_unit", "jfif_density"}


def test_a_preview_fits_its_square_and_is_never_enlarged() -> None:
    small = Image.open(io.BytesIO(imagefiles.preview(encoded(picture((900, 300))))))
    assert small.size == (320, 107)
    assert Image.open(io.BytesIO(imagefiles.preview(encoded(picture((20, 10)))))).size == (20, 10)


def test_derive_agrees_with_the_single_functions() -> None:
    data = encoded(picture((400, 300)), "WEBP", lossless=True)
    derived = imagefiles.derive(data)
    assert derived.facts == imagefiles.inspect_image(data)
    assert derived.display == imagefiles.display_copy(data)
    assert derived.preview == imagefiles.preview(data)
    assert derived.blank == ""


@pytest.mark.field_case(48)
def test_blank_images_are_named() -> None:
    assert "black" in imagefiles.blank_reason(Image.new("RGB", (64, 64)))
    assert "white" in imagefiles.blank_reason(Image.new("RGB", (64, 64), "white"))
    assert "one colour" in imagefiles.blank_reason(Image.new("RGB", (64, 64), (90, 20, 20)))
    dark = Image.new("RGB", (64, 64))
    dark.putpixel((3, 3), (40, 40, 40))
    assert imagefiles.blank_reason(dark) == ""


def test_the_perceptual_hash_holds_through_reencoding_and_tells_pictures_apart() -> None:
    shapes = np.zeros((128, 128, 3), np.uint8)
    shapes[20:60, 30:90] = (200, 40, 40)
    first = Image.fromarray(shapes)
    jpeg = Image.open(io.BytesIO(encoded(first.resize((256, 256)), "JPEG", quality=60)))
    hashes = [imagefiles.perceptual_hash(p) for p in (first, jpeg, first.rotate(90))]
    assert imagefiles.hamming(hashes[0], hashes[1]) <= 6
    assert imagefiles.hamming(hashes[0], hashes[2]) > 10
    assert all(0 <= value < 2**64 for value in hashes)
