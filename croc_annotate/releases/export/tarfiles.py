"""Tar archives byte by byte the same: no owner, no time, no permission of the machine."""

from __future__ import annotations

import tarfile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_CHUNK = 1024 * 1024


def tar_header(name: str, size: int) -> bytes:
    """The head of a regular file."""
    info = tarfile.TarInfo(name)
    info.size, info.mtime, info.mode = size, 0, 0o644
    info.uid = info.gid = 0
    info.uname = info.gname = ""
    return info.tobuf(tarfile.PAX_FORMAT, "utf-8", "strict")


def tar_padding(size: int) -> bytes:
    """What fills the last block of a file."""
    return b"\0" * (-size % tarfile.BLOCKSIZE)


def tar_entry(name: str, data: bytes) -> bytes:
    """A whole small file."""
    return tar_header(name, len(data)) + data + tar_padding(len(data))


def tar_file(path: Path, write: Callable[[bytes], object]) -> None:
    """Copy a file's content into an archive, to the end of its last block."""
    size = 0
    with path.open("rb") as stream:
        while chunk := stream.read(_CHUNK):
            size += len(chunk)
            write(chunk)
    write(tar_padding(size))


def end_of_tar() -> bytes:
    """Two empty blocks."""
    return b"\0" * (2 * tarfile.BLOCKSIZE)
