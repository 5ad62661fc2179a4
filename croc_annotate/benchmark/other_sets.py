"""Files of other benchmarks: Winoground, SugarCrepe, Karpathy splits, FG captions (no Django)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from croc_annotate.benchmark.retrieving import RetrievalSet, build_set
from croc_annotate.lib.jsontext import parse_json

if TYPE_CHECKING:
    from pathlib import Path


class SetFileError(ValueError):
    """A benchmark's file cannot be read; the message says where and why."""


@dataclass(frozen=True)
class PairedExample:
    """Two captions and two images (Winoground), or two captions and one image (SugarCrepe)."""

    key: str
    captions: tuple[str, str]
    images: tuple[str, ...]
    """File names relative to the folder of images."""


def read_winoground(path: Path) -> list[PairedExample]:
    """`examples.jsonl`: id, caption_0, caption_1, image_0, image_1 (file ending optional)."""
    examples = []
    for number, line in enumerate(_text(path).splitlines(), start=1):
        if not line.strip():
            continue
        entry = _object(line, path, number)
        try:
            examples.append(
                PairedExample(
                    str(entry["id"]),
                    (entry["caption_0"], entry["caption_1"]),
                    (_with_ending(entry["image_0"]), _with_ending(entry["image_1"])),
                )
            )
        except KeyError as error:
            raise SetFileError(f"{path}, line {number}: no {error.args[0]!r}.") from error
    return _some(examples, path)


def read_sugarcrepe(path: Path) -> list[PairedExample]:
    """One subset: {index: {filename, caption, negative_caption}}."""
    examples = []
    for key, entry in _json_object(path).items():
        try:
            examples.append(
                PairedExample(
                    f"{path.stem}/{key}",
                    (entry["caption"], entry["negative_caption"]),
                    (entry["filename"],),
                )
            )
        except (KeyError, TypeError) as error:
            raise SetFileError(f"{path}, entry {key!r}: {error}.") from error
    return _some(examples, path)


def read_karpathy(path: Path, *, split: str = "test", fold: int | None = None) -> RetrievalSet:
    """Karpathy's JSON of COCO or Flickr30K: the images of a split with their captions.

    `fold` 0…4 takes the fold'th thousand of COCO's 5,000 test images.
    """
    data = _json_object(path)
    try:
        images = [image for image in data["images"] if image["split"] == split]
        if fold is not None:
            images = images[1000 * fold : 1000 * (fold + 1)]
        names = [
            f"{image['filepath']}/{image['filename']}" if image.get("filepath")
            else image["filename"]
            for image in images
        ]  # fmt: skip
        texts = [[s["raw"].strip() for s in image["sentences"]] for image in images]
    except (KeyError, TypeError) as error:
        raise SetFileError(f"{path}: not in Karpathy's form: {error}.") from error
    if not names:
        raise SetFileError(f"{path}: no image in split {split!r}.")
    name = f"{data.get('dataset', path.stem)} {split}" + (
        f" fold {fold}" if fold is not None else ""
    )
    return build_set(name, names, texts)


def read_fine_grained(path: Path, *, pool: Path | None = None) -> RetrievalSet:
    """MSCOCO-FG or Flickr30K-FG: {image name: [captions]}, and a list of further pool images."""
    captions = _json_object(path)
    extra: list[str] = []
    if pool is not None:
        listed = _json(pool)
        if not isinstance(listed, list):
            raise SetFileError(f"{pool}: expected a list of image names.")
        extra = [str(name) for name in listed if str(name) not in captions]
    names = [*captions, *extra]
    texts: list[list[str]] = [list(captions[name]) for name in captions]
    return build_set(path.stem, names, [*texts, *([] for _ in extra)])


def _with_ending(name: str) -> str:
    return name if "." in name.rsplit("/", 1)[-1] else f"{name}.png"


def _some(examples: list[PairedExample], path: Path) -> list[PairedExample]:
    if not examples:
        raise SetFileError(f"{path}: holds no example.")
    return examples


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise SetFileError(f"{path}: cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise SetFileError(f"{path}: is not UTF-8 (byte {error.start}).") from error


def _object(line: str, path: Path, number: int) -> dict[str, Any]:
    try:
        entry = parse_json(line)
    except ValueError as error:
        raise SetFileError(f"{path}, line {number}: is not JSON: {error}") from error
    if not isinstance(entry, dict):
        raise SetFileError(f"{path}, line {number}: expected an object.")
    return entry


def _json(path: Path) -> Any:
    try:
        return parse_json(_text(path))
    except ValueError as error:
        raise SetFileError(f"{path}: is not JSON: {error}") from error


def _json_object(path: Path) -> dict[str, Any]:
    data = _json(path)
    if not isinstance(data, dict):
        raise SetFileError(f"{path}: expected a JSON object.")
    return data
