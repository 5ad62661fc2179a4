"""A half-done export that a killed process leaves behind and the next one continues.

Files are written in one fixed order, under their final names, in a folder beside the target.
The journal names those that are complete, in that order, so that continuing is: walk along,
keep what is listed and still has its hash, write the rest. Only a complete folder is renamed.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, BinaryIO, cast

from croc_annotate.lib.atomic import fsync_folder, publish_folder, refuse_existing, retired_name

if TYPE_CHECKING:
    from collections.abc import Iterator
    from concurrent.futures import Future
    from pathlib import Path

_JOURNAL = ".journal"
_CHUNK = 1024 * 1024
# From this size on a piece is worth a thread; so many of them may wait for it in memory.
_LARGE = 64 * 1024
_HASHED_LATER = 4


class BusyError(RuntimeError):
    """Another process writes the same export."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One complete file. ``source_sha256`` is set where an image was re-encoded."""

    path: str
    size: int
    sha256: str
    rows: int = 0
    source_sha256: str = ""


class HashedFile:
    """A file that is hashed while it is written; never sought, so that the hash is right.

    Large pieces are hashed in a thread of its own, beside the writing; ``hexdigest`` waits for it.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._digest = hashlib.sha256()
        self._thread: ThreadPoolExecutor | None = None
        self._hashing: deque[Future[None]] = deque()
        self._small = bytearray()
        self.size = 0
        self.rows = 0
        self.closed = False

    def write(self, data: bytes | bytearray | memoryview) -> int:
        """Append ``data``."""
        self.size += len(data)
        # Only ``bytes`` are sure to stay as they are until the thread comes to them.
        if len(data) >= _LARGE and isinstance(data, bytes):
            self._hash(data)
        else:
            self._small += data
            if len(self._small) >= _LARGE:
                self._hash(b"")
        return self._stream.write(data)

    def _hash(self, data: bytes) -> None:
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="hash")
        for piece in (bytes(self._small), data):
            if piece:
                self._hashing.append(self._thread.submit(self._digest.update, piece))
        self._small = bytearray()
        while len(self._hashing) > _HASHED_LATER:
            self._hashing.popleft().result()

    def tell(self) -> int:
        """Bytes written so far."""
        return self.size

    def flush(self) -> None:
        """Hand on what is buffered."""
        self._stream.flush()

    def close(self) -> None:
        """Writers close their sink; the file itself is closed by its owner."""

    def finish(self) -> None:
        """End the thread; nothing can be written after it."""
        if self._thread is not None:
            self._thread.shutdown(wait=True)

    def readable(self) -> bool:
        """It is written only."""
        return False

    def writable(self) -> bool:
        """It is written only."""
        return True

    def seekable(self) -> bool:
        """It is written only."""
        return False

    def hexdigest(self) -> str:
        """SHA-256 of what was written."""
        while self._hashing:
            self._hashing.popleft().result()
        self._digest.update(self._small)
        self._small = bytearray()
        return self._digest.hexdigest()


class WorkFolder:
    """The folder that becomes the export, and the walk along its journal."""

    def __init__(self, root: Path, journal: IO[bytes], old: list[bytes]) -> None:
        self.root = root
        self._journal, self._old = journal, old
        self._continued = bool(old) or any(path.name != _JOURNAL for path in root.iterdir())
        self._next = 0
        self._folders: set[str] = set()

    def finished(self, path: str) -> Entry | None:
        """The journal's entry for ``path`` if that is the next complete file, else None.

        Once one is missing, all that follow are written anew.
        """
        if self._next >= len(self._old):
            return None
        entry = _parsed(self._old[self._next])
        if entry is None or entry.path != path or not _matches(self.root / path, entry):
            self._forget_rest()
            return None
        self._next += 1
        return entry

    def place(self, path: str) -> Path:
        """Where a file is to be written; its folder is made."""
        target = self.root / path
        folder = path.rpartition("/")[0]
        if folder not in self._folders:
            target.parent.mkdir(parents=True, exist_ok=True)
            self._folders.add(folder)
        return target

    def add(self, entry: Entry) -> None:
        """Note that a file is complete."""
        self._forget_rest()
        self._journal.write(
            _line(
                {
                    "path": entry.path, "size": entry.size, "sha256": entry.sha256,
                    "rows": entry.rows, "source_sha256": entry.source_sha256,
                }
            )
        )  # fmt: skip
        # One write a line: a torn last line is the only damage that a kill can do.
        self._journal.flush()

    @contextmanager
    def create(self, path: str) -> Iterator[HashedFile]:
        """Write one file through the yielded sink and note it; set ``rows`` on the sink."""
        with self.place(path).open("wb") as stream:
            sink = HashedFile(stream)
            try:
                yield sink
                digest = sink.hexdigest()
            finally:
                sink.finish()
        self.add(Entry(path, sink.size, digest, sink.rows))

    def put(self, path: str, data: bytes, *, rows: int = 0) -> Entry:
        """Write one small file whole, or keep it if it is there."""
        entry = self.finished(path)
        if entry is None:
            with self.create(path) as sink:
                sink.write(data)
                sink.rows = rows
            entry = Entry(path, len(data), sink.hexdigest(), rows)
        return entry

    def entries(self) -> Iterator[Entry]:
        """All complete files so far, in the order of writing."""
        self._journal.flush()
        with (self.root / _JOURNAL).open("rb") as journal:
            next(journal)
            for line in journal:
                entry = _parsed(line)
                if entry is not None:
                    yield entry

    def publish(self, target: Path, *, force: bool) -> None:
        """Remove what is not listed, flush to the disk, take the target's place."""
        self._forget_rest()
        if self._continued:
            self._drop_strangers()
        (self.root / _JOURNAL).unlink()
        os.sync()
        fsync_folder(self.root)
        publish_folder(self.root, target, force=force)

    def discard(self) -> None:
        """Give the disk back."""
        shutil.rmtree(self.root, ignore_errors=True)

    def close(self) -> None:
        """Let go of the journal."""
        self._journal.close()

    def _forget_rest(self) -> None:
        if self._next < len(self._old):
            kept = self._old[: self._next]
            self._journal.seek(0)
            head = self._journal.readline()
            self._journal.seek(len(head) + sum(map(len, kept)))
            self._journal.truncate()
        self._old = []
        self._next = 0

    def _drop_strangers(self) -> None:
        """Files of an earlier, longer attempt must not be published unlisted."""
        listed = {entry.path for entry in self.entries()} | {_JOURNAL}
        for folder, _, names in os.walk(self.root, topdown=False):
            relative = os.path.relpath(folder, self.root)
            for name in names:
                path = name if relative == "." else f"{relative}/{name}"
                if path not in listed:
                    (self.root / path).unlink()
            if relative != "." and not os.listdir(folder):  # noqa: PTH208
                os.rmdir(folder)  # noqa: PTH106


@contextmanager
def work_folder(target: Path, digest: str, *, force: bool) -> Iterator[WorkFolder]:
    """The work folder of ``target`` for one export, new or continued.

    Raises TargetExistsError before anything is written, BusyError when somebody else is at it.
    """
    refuse_existing(target, force=force)
    target.parent.mkdir(parents=True, exist_ok=True)
    root = target.with_name(f".{target.name}.partial")
    lock = _locked(root)
    try:
        old = retired_name(target)
        if old.exists():
            shutil.rmtree(old)
        work = _opened(root, digest)
        try:
            yield work
        finally:
            work.close()
    finally:
        os.close(lock)


def _locked(root: Path) -> int:
    """A lock on the work folder itself: it ends with the process and leaves no file behind."""
    for _ in range(10):
        root.mkdir(exist_ok=True)
        lock = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(lock)
            raise BusyError(f"another export writes {root}; wait for it") from error
        # The owner before us may have published the folder meanwhile: then it is no work folder.
        if root.exists() and os.fstat(lock).st_ino == root.stat().st_ino:
            return lock
        os.close(lock)
    raise BusyError(f"{root} is written by others again and again; wait for them")


def _opened(root: Path, digest: str) -> WorkFolder:
    head = _line({"export": digest})
    path = root / _JOURNAL
    lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
    if not lines or lines[0] != head:
        # Another release or other options: nothing of it can be used.
        _empty(root)
        path.write_bytes(head)
        lines = [head]
    old = [line for line in lines[1:] if _parsed(line) is not None]
    journal = path.open("r+b")
    journal.seek(len(head) + sum(map(len, old)))
    journal.truncate()
    return WorkFolder(root, journal, old)


def _empty(root: Path) -> None:
    for item in root.iterdir():
        if item.is_dir() and not item.is_symlink():
            shutil.rmtree(item)
        else:
            item.unlink()


def _parsed(line: bytes) -> Entry | None:
    if not line.endswith(b"\n"):
        return None
    try:
        return Entry(**cast("dict[str, Any]", json.loads(line)))
    except (ValueError, TypeError):
        return None


def _line(values: dict[str, Any]) -> bytes:
    return json.dumps(values, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def _matches(path: Path, entry: Entry) -> bool:
    """Whether the file still is what was noted (after a power cut it may not be)."""
    if not path.is_file() or path.stat().st_size != entry.size:
        return False
    return file_sha256(path) == entry.sha256


def file_sha256(path: Path) -> str:
    """SHA-256 of a file, read in pieces."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while chunk := stream.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()
