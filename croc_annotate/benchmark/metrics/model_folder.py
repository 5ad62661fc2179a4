"""A model's folder named by its contents: no torch, no Django."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_WHOLE_FILE = 64 * 2**20  # larger files enter the digest by samples: they may weigh 20 GB
_SAMPLES, _SAMPLE_BYTES = 64, 2**20


def folder_digest(folder: Path) -> str:
    """SHA-256 over names, sizes and contents of the files (large ones by 64 samples of 1 MiB)."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        relative = path.relative_to(folder)
        if not path.is_file() or any(part.startswith(".") for part in relative.parts):
            continue
        size = path.stat().st_size
        digest.update(f"{relative.as_posix()}\0{size}\0".encode())
        with path.open("rb") as file:
            for start, length in _ranges(size):
                file.seek(start)
                digest.update(file.read(length))
    return digest.hexdigest()


def _ranges(size: int) -> Iterator[tuple[int, int]]:
    if size <= _WHOLE_FILE:
        yield 0, size
        return
    step = (size - _SAMPLE_BYTES) / (_SAMPLES - 1)
    for index in range(_SAMPLES):
        yield int(index * step), _SAMPLE_BYTES
