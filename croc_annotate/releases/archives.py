"""Opening a tar archive that a stranger made: refused whole at the first thing that is wrong.

Nothing is trusted but bytes that were counted: names, sizes and types are checked before
a file is made, reading is capped, and everything lands in an empty folder of our own.
"""

from __future__ import annotations

import gzip
import io
import os
import tarfile
import zlib
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, BinaryIO, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_CHUNK = 256 * 1024
# The library reads a header of any claimed size in one call; ours are a few hundred bytes.
_MAX_READ = 4 * 1024 * 1024
_MAX_NAME = 1_024
_MAX_COMPONENT = 255


class HostileArchiveError(ValueError):
    """The archive is refused; the message names the entry and the reason."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How much an archive may hold. The published benchmark has about 24,000 files and 40 GB."""

    entries: int = 300_000
    file_bytes: int = 256 * 1024 * 1024
    total_bytes: int = 400 * 1024**3
    # Images hardly shrink, and a table not a hundredfold.
    ratio: int = 100
    ratio_from: int = 8 * 1024 * 1024


def unpack(
    archive: Path,
    folder: Path,
    *,
    limits: Limits | None = None,
    wanted: Callable[[str], bool] = lambda path: True,
) -> int:
    """Unpack a ``.tar.gz`` or ``.tar`` into the empty ``folder``; return the number of files.

    Entries that are not ``wanted`` are checked and counted, but not written. Raises HostileArchiveError; what was written until then is the caller's folder to remove.
    """
    limits = limits or Limits()
    try:
        # Once through without writing: a million files, a bomb or a cut end are met here.
        files = sum(1 for _ in _entries(archive, limits, wanted))
        if not files:
            raise HostileArchiveError(f"{archive.name}: holds no files of the published layout")
        for tar, member, path in _entries(archive, limits, wanted):
            _write(tar, member, folder.joinpath(path), limits)
    except (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise HostileArchiveError(f"{archive.name}: damaged or cut short ({error})") from error
    return files


def _entries(
    archive: Path, limits: Limits, wanted: Callable[[str], bool]
) -> Iterator[tuple[tarfile.TarFile, tarfile.TarInfo, str]]:
    """The wanted files of an archive with their safe paths; every entry is checked."""
    with archive.open("rb") as raw, _opened(raw, archive, limits) as tar:
        for member, path in _checked(tar, limits):
            if member.isreg() and wanted(path):
                yield tar, member, path


class _Counted(io.RawIOBase):
    """A forward-only view of the decompressed bytes that counts them and caps each read."""

    def __init__(self, source: BinaryIO, raw: BinaryIO, limits: Limits) -> None:
        super().__init__()
        self._source, self._raw, self._limits = source, raw, limits
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        if whence == os.SEEK_CUR:
            offset += self._position
        if whence == os.SEEK_END or offset < self._position:
            raise HostileArchiveError("an entry points backwards")
        while self._position < offset:
            if not self.read(min(_CHUNK, offset - self._position)):
                break
        return self._position

    def read(self, size: int = -1) -> bytes:
        if size < 0 or size > _MAX_READ:
            raise HostileArchiveError(f"a header claims {size} bytes")
        data = self._source.read(size)
        self._position += len(data)
        self._check()
        return data

    def _check(self) -> None:
        if self._position > self._limits.total_bytes:
            raise HostileArchiveError(f"unpacks to more than {self._limits.total_bytes} bytes")
        if self._position > self._limits.ratio_from:
            packed = max(1, self._raw.tell())
            if self._position > packed * self._limits.ratio:
                raise HostileArchiveError(
                    f"grows more than {self._limits.ratio}-fold: a decompression bomb"
                )


def _opened(raw: BinaryIO, archive: Path, limits: Limits) -> tarfile.TarFile:
    magic = raw.read(2)
    raw.seek(0)
    source = cast("BinaryIO", gzip.GzipFile(fileobj=raw)) if magic == b"\x1f\x8b" else raw
    counted = _Counted(source, raw, limits)
    try:
        return tarfile.open(
            fileobj=cast("BinaryIO", counted), mode="r:", format=tarfile.PAX_FORMAT, errorlevel=2
        )
    except tarfile.ReadError as error:
        raise HostileArchiveError(f"{archive.name}: not a tar archive ({error})") from error


def _checked(tar: tarfile.TarFile, limits: Limits) -> Iterator[tuple[tarfile.TarInfo, str]]:
    """Each entry with its safe relative path, in the archive's order."""
    seen: set[str] = set()
    count = 0
    while (member := tar.next()) is not None:
        # The library keeps every entry it has seen, which a million of them would exploit.
        tar.members.clear()  # type: ignore[attr-defined]
        count += 1
        if count > limits.entries:
            raise HostileArchiveError(f"holds more than {limits.entries} entries")
        path = safe_path(member.name)
        _check_type(member, limits)
        if not path:
            continue
        if path.casefold() in seen and not member.isdir():
            raise HostileArchiveError(f"{member.name!r}: stands in the archive twice")
        seen.add(path.casefold())
        yield member, path


def safe_path(name: str) -> str:
    """``name`` as a plain relative path ("" for the top folder); raises HostileArchiveError."""
    if "\0" in name or "\\" in name or any(ord(char) < 32 for char in name):
        raise HostileArchiveError(f"{name!r}: a character that no file name needs")
    if name.startswith("/") or PurePosixPath(name).is_absolute():
        raise HostileArchiveError(f"{name!r}: an absolute path")
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise HostileArchiveError(f"{name!r}: leads out of the folder")
    if len(name) > _MAX_NAME or any(len(os.fsencode(part)) > _MAX_COMPONENT for part in parts):
        raise HostileArchiveError(f"{name[:80]!r}…: a name that is too long")
    return "/".join(parts)


def _check_type(member: tarfile.TarInfo, limits: Limits) -> None:
    if member.issym() or member.islnk():
        raise HostileArchiveError(f"{member.name!r}: a link")
    if not (member.isreg() or member.isdir()) or member.issparse():
        raise HostileArchiveError(f"{member.name!r}: neither a file nor a folder")
    if member.size < 0 or member.size > limits.file_bytes:
        raise HostileArchiveError(
            f"{member.name!r}: {member.size} bytes; {limits.file_bytes} are allowed for a file"
        )


def _write(tar: tarfile.TarFile, member: tarfile.TarInfo, path: Path, limits: Limits) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644)
    except (FileExistsError, NotADirectoryError, IsADirectoryError) as error:
        raise HostileArchiveError(f"{member.name!r}: collides with another entry") from error
    source = tar.extractfile(member)
    written = 0
    with os.fdopen(handle, "wb") as target:
        while source is not None and (chunk := source.read(_CHUNK)):
            written += len(chunk)
            target.write(chunk)
    if written != member.size or written > limits.file_bytes:
        raise HostileArchiveError(f"{member.name!r}: cut short after {written} bytes")
