"""Everything that a file says, also under compression, in columns and in an image's metadata."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
from PIL import Image

_IMAGES = (".png", ".jpg", ".jpeg", ".webp", ".bmp")


def contents(name: str, data: bytes) -> Iterator[tuple[str, bytes]]:
    """The name and bytes of a file, then those of all that is in it, with a path to each."""
    yield name, name.encode()
    yield name, data
    inner = {
        ".gz": _gzip, ".tar": _tar, ".zip": _zip, ".parquet": _parquet, ".json": _json,
        ".jsonl": _lines, **dict.fromkeys(_IMAGES, _image),
    }.get(Path(name).suffix.lower())  # fmt: skip
    if inner is not None:
        for inside, found in inner(name, data):
            for path, deeper in contents(inside, found):
                yield f"{name} > {path}", deeper


def contents_of(folder: Path) -> Iterator[tuple[str, bytes]]:
    """The same of every file in a folder."""
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            yield from contents(path.relative_to(folder).as_posix(), path.read_bytes())


def _gzip(name: str, data: bytes) -> Iterator[tuple[str, bytes]]:
    yield Path(name).stem, gzip.decompress(data)


def _tar(name: str, data: bytes) -> Iterator[tuple[str, bytes]]:
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        for member in tar:
            told = f"{member.uname} {member.gname} {member.linkname} {member.pax_headers}"
            yield f"{member.name} head", told.encode()
            stream = tar.extractfile(member)
            if stream is not None:
                yield member.name, stream.read()


def _zip(name: str, data: bytes) -> Iterator[tuple[str, bytes]]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for member in archive.infolist():
            yield f"{member.filename} head", member.comment + member.extra
            yield member.filename, archive.read(member)


def _parquet(name: str, data: bytes) -> Iterator[tuple[str, bytes]]:
    file = pq.ParquetFile(io.BytesIO(data))
    yield "metadata", f"{file.metadata.metadata} {file.schema_arrow.metadata}".encode()
    for row in file.read().to_pylist():
        image = row.pop("image", None)
        yield "row", repr(row).encode()
        if image is not None:
            yield str(image["path"]), image["bytes"]


def _json(name: str, data: bytes) -> Iterator[tuple[str, bytes]]:
    """Without escapes."""
    yield "text", json.dumps(json.loads(data), ensure_ascii=False).encode()


def _lines(name: str, data: bytes) -> Iterator[tuple[str, bytes]]:
    for line in data.splitlines():
        yield from _json(name, line)


def _image(name: str, data: bytes) -> Iterator[tuple[str, bytes]]:
    """Text chunks may be compressed, and EXIF has its own encoding."""
    with Image.open(io.BytesIO(data)) as opened:
        opened.load()
        yield "metadata", f"{opened.info} {dict(opened.getexif())}".encode()
