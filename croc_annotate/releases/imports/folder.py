"""A published folder, read and checked before anything is stored. No Django here."""

from __future__ import annotations

import hashlib
import json
import stat
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from croc_annotate.lib.jsontext import parse_json
from croc_annotate.prompts.rules import CATEGORIES
from croc_annotate.releases.archives import HostileArchiveError, safe_path
from croc_annotate.releases.export.workdir import file_sha256
from croc_annotate.releases.published import (
    METADATA_NAME,
    SIDES,
    PublishedLayoutError,
    PublishedRow,
    clean_path,
    parse_image_name,
    read_table,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

_MAX_TABLE = 512 * 1024 * 1024
_MAX_SLUG = 80


@dataclass(frozen=True, slots=True)
class FoundImage:
    """An image of the table with the file behind it."""

    pair_id: str
    side: str
    generator: str
    number: int
    name: str
    file: Path
    sha256: str


@dataclass(frozen=True, slots=True)
class FoundPair:
    """A pair of the table with its images, in the table's order."""

    pair_id: str
    category: str
    prompt: str
    contrast: str
    images: tuple[FoundImage, ...]


@dataclass(frozen=True, slots=True)
class PublishedFolder:
    """A whole published folder, checked."""

    pairs: tuple[FoundPair, ...]
    sha256: str
    unlisted: int
    duplicates: tuple[tuple[str, str], ...]
    generators: dict[str, dict[str, Any]]

    @property
    def n_images(self) -> int:
        """Images in all."""
        return sum(len(pair.images) for pair in self.pairs)


def find_root(folder: Path) -> Path:
    """The folder with the table: itself, its ``crochum/``, or its only folder."""
    inside = [path for path in folder.iterdir() if path.is_dir() and not path.is_symlink()]
    only = inside if len(inside) == 1 else []
    for place in (folder, folder / "crochum", *only):
        if (place / METADATA_NAME).is_file():
            return place
    raise PublishedLayoutError(f"{folder.name}: holds no {METADATA_NAME}")


def read_folder(folder: Path) -> PublishedFolder:
    """Read the table, find every image, hash it; raises PublishedLayoutError at the first fault."""
    root = find_root(folder)
    rows = read_table(_table_text(root))
    expected, generators = _manifest(root)
    seen: dict[str, str] = {}
    twice: dict[tuple[str, str, str, int], str] = {}
    pairs = []
    digest = hashlib.sha256()
    duplicates: list[tuple[str, str]] = []
    for number, row in enumerate(rows, start=2):
        place = f"{METADATA_NAME}, row {number}"
        _check_pair(row, place)
        images = tuple(_images(root, row, place, expected))
        for image in images:
            key = (image.pair_id, image.side, image.generator, image.number)
            if key in twice:
                raise PublishedLayoutError(f"{place}: {image.name} and {twice[key]} are one image")
            twice[key] = image.name
            if image.sha256 in seen:
                duplicates.append((seen[image.sha256], image.name))
            seen.setdefault(image.sha256, image.name)
        category = row.pair_id.rpartition("_")[0]
        pairs.append(
            FoundPair(
                row.pair_id, _category(row.pair_id) or category, row.prompt, row.contrast, images
            )
        )
        described = [row.pair_id, row.prompt, row.contrast, [(i.name, i.sha256) for i in images]]
        digest.update(json.dumps(described, ensure_ascii=False).encode() + b"\n")
    return PublishedFolder(
        pairs=tuple(pairs),
        sha256=digest.hexdigest(),
        unlisted=_count_images(root) - len(twice),
        duplicates=tuple(duplicates),
        generators=generators,
    )


def _table_text(root: Path) -> str:
    path = root / METADATA_NAME
    if path.is_symlink() or path.stat().st_size > _MAX_TABLE:
        raise PublishedLayoutError(f"{METADATA_NAME}: a link, or larger than {_MAX_TABLE} bytes")
    data = path.read_bytes()
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise PublishedLayoutError(f"{METADATA_NAME}: not UTF-8 at byte {error.start}") from error
    if "\0" in text:
        line = text[: text.index("\0")].count("\n") + 1
        raise PublishedLayoutError(f"{METADATA_NAME}, line {line}: holds a NUL character")
    return text


def _check_pair(row: PublishedRow, place: str) -> None:
    if not _category(row.pair_id):
        known = ", ".join(CATEGORIES)
        raise PublishedLayoutError(f"{place}: “{row.pair_id}” begins with no category ({known})")
    if len(row.pair_id) > _MAX_SLUG:
        raise PublishedLayoutError(f"{place}: an id of more than {_MAX_SLUG} characters")
    if row.prompt == row.contrast:
        raise PublishedLayoutError(f"{place}: both texts of {row.pair_id} are the same")


def _category(pair_id: str) -> str:
    return next((name for name in CATEGORIES if pair_id.startswith(f"{name}_")), "")


def _images(
    root: Path, row: PublishedRow, place: str, expected: dict[str, str]
) -> Iterator[FoundImage]:
    for side in SIDES:
        for written in row.paths[side]:
            where = f"{place}, {side}_paths"
            try:
                found = parse_image_name(written)
                path = safe_path(clean_path(written))
            except (PublishedLayoutError, HostileArchiveError) as error:
                raise PublishedLayoutError(f"{where}: {error}") from error
            if (found.pair_id, found.side) != (row.pair_id, side):
                raise PublishedLayoutError(f"{where}: {written!r} is of another pair or side")
            file = _located(root, path, where)
            name = file.relative_to(root).as_posix()
            sha256 = file_sha256(file)
            if expected.get(name, sha256) != sha256:
                raise PublishedLayoutError(f"{where}: {name} does not have the manifest's hash")
            yield FoundImage(row.pair_id, side, found.generator, found.number, name, file, sha256)


def _located(root: Path, path: str, where: str) -> Path:
    """The file of a path: as written, or by its last three parts. Never through a link."""
    parts = PurePosixPath(path).parts
    for candidate in (path, "/".join(parts[-3:])):
        file = root / candidate
        if not file.exists() and not file.is_symlink():
            continue
        if any((root / Path(*file.relative_to(root).parts[: n + 1])).is_symlink()
               for n in range(len(file.relative_to(root).parts))):  # fmt: skip
            raise PublishedLayoutError(f"{where}: {path} is a link or stands behind one")
        if not stat.S_ISREG(file.stat().st_mode):
            raise PublishedLayoutError(f"{where}: {path} is no file")
        return file
    raise PublishedLayoutError(f"{where}: there is no file {path}")


def _count_images(root: Path) -> int:
    return sum(1 for path in root.glob("*/*/*") if "___" in path.name and path.is_file())


def _manifest(root: Path) -> tuple[dict[str, str], dict[str, dict[str, Any]]]:
    """Hashes by path and generators by file-name field, where a manifest of ours stands by."""
    for path, prefix in (
        (root / "manifest.json", ""),
        (root.parent / "manifest.json", f"{root.name}/"),
    ):
        if path.is_file() and not path.is_symlink() and path.stat().st_size < _MAX_TABLE:
            return _parsed_manifest(path, prefix)
    return {}, {}


def _parsed_manifest(path: Path, prefix: str) -> tuple[dict[str, str], dict[str, dict[str, Any]]]:
    try:
        found = parse_json(path.read_bytes())
        hashes = {
            str(entry["path"]).removeprefix(prefix): str(entry["sha256"])
            for entry in found["files"]
            if str(entry["path"]).startswith(prefix)
        }
        generators = {
            str(facts.get("file_name_field", slug)): {"slug": str(slug), **facts}
            for slug, facts in found.get("generators", {}).items()
        }
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise PublishedLayoutError("manifest.json: not a manifest") from error
    return hashes, generators
