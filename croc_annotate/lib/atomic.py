"""Files and folders that appear complete or not at all.

Everything is written under a temporary name beside its target (the same file system, so
that a rename is one step), flushed to the disk, then renamed. Without ``force`` nothing
that exists is replaced; with it, the old one stays in place until the new one is complete.
"""

from __future__ import annotations

import ctypes
import errno
import os
import secrets
import shutil
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from collections.abc import Iterator

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2


class TargetExistsError(FileExistsError):
    """Something stands at the target and ``force`` was not given."""

    def __init__(self, target: Path) -> None:
        super().__init__(
            errno.EEXIST, "already exists; choose another place or use --force", str(target)
        )


@contextmanager
def atomic_file(path: Path, *, force: bool = False) -> Iterator[BinaryIO]:
    """Write ``path`` through the yielded binary file; on any error no trace is left.

    Raises TargetExistsError when ``path`` exists (also when it appears meanwhile) and not ``force``.
    """
    if not force and _lexists(path):
        raise TargetExistsError(path)
    part = path.with_name(f".{path.name}.{secrets.token_hex(6)}.part")
    try:
        with part.open("xb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        _move_file(part, path, force=force)
        fsync_folder(path.parent)
    finally:
        part.unlink(missing_ok=True)


def write_atomically(path: Path, data: bytes, *, force: bool = False) -> None:
    """``data`` as the whole content of ``path``, or the old state of affairs."""
    with atomic_file(path, force=force) as stream:
        stream.write(data)


@contextmanager
def atomic_folder(path: Path, *, force: bool = False) -> Iterator[Path]:
    """Fill the yielded empty folder; it becomes ``path`` when the block ends without an error."""
    refuse_existing(path, force=force)
    part = path.with_name(f".{path.name}.{secrets.token_hex(6)}.part")
    part.mkdir(parents=True)
    try:
        yield part
        fsync_tree(part)
        publish_folder(part, path, force=force)
    finally:
        if part.exists():
            shutil.rmtree(part)


def refuse_existing(path: Path, *, force: bool) -> None:
    """Raise TargetExistsError unless ``path`` is absent, an empty folder, or ``force`` is given."""
    if force or not _lexists(path):
        return
    if path.is_dir() and not path.is_symlink() and not any(path.iterdir()):
        return
    raise TargetExistsError(path)


def publish_folder(part: Path, path: Path, *, force: bool = False) -> None:
    """Rename the complete folder ``part`` to ``path``.

    With ``force`` an existing target is exchanged in one step where the system can, then
    deleted; a crash between the two leaves the new one in place.
    """
    refuse_existing(path, force=force)
    if _lexists(path) and not _is_empty_folder(path):
        old = retired_name(path)
        _remove(old)
        if _exchange(part, path):
            part.rename(old)
        else:
            path.rename(old)
            part.rename(path)
        fsync_folder(path.parent)
        _remove(old)
    else:
        # Fails where the folder has been filled in between: the loser keeps its hands off.
        part.rename(path)
    fsync_folder(path.parent)


def retired_name(path: Path) -> Path:
    """Where the old folder stands for the moment between the exchange and its deletion."""
    return path.with_name(f".{path.name}.old")


def fsync_folder(path: Path) -> None:
    """Flush a folder's entries, so that a rename survives a power cut."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def fsync_tree(root: Path) -> None:
    """Flush every file and folder under ``root``."""
    for folder, _, names in os.walk(root):
        for name in names:
            handle = os.open(Path(folder, name), os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)
        fsync_folder(Path(folder))


def _move_file(part: Path, path: Path, *, force: bool) -> None:
    if force:
        part.replace(path)
        return
    try:
        # A link fails where the name is taken; a rename would silently replace it.
        os.link(part, path)
    except FileExistsError as error:
        raise TargetExistsError(path) from error


def _exchange(first: Path, second: Path) -> bool:
    """Swap two names in one step (Linux renameat2); False where the system cannot."""
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):
        return False
    return bool(
        rename(_AT_FDCWD, os.fsencode(first), _AT_FDCWD, os.fsencode(second), _RENAME_EXCHANGE) == 0
    )


def _lexists(path: Path) -> bool:
    return os.path.lexists(path)


def _is_empty_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink() and not any(path.iterdir())


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
