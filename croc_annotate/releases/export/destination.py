"""An export to S3: written here, uploaded whole, visible at the end.

S3 has no rename. A new export is uploaded in place with its manifest last: a reader that
sees the manifest sees all. Over an existing one there is an order that never leaves the bucket
without a complete export:

1. the new files are uploaded beside it (``.staging-…``); the old export stands untouched;
2. the old one is copied beside itself (``.old``), its manifest last;
3. in place, the manifest goes, the new files come, the new manifest is the last of them;
4. what is of neither is removed, then the copies.

A refusal in step 3 is answered by putting the old files back. Where S3 refuses even that, the error
names the two complete copies, and the same command goes on from them.
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, BinaryIO, cast
from urllib.parse import urlsplit

import croc_annotate
from croc_annotate.releases.beside.manifest import NAME as MANIFEST
from croc_annotate.releases.export.run import export_to_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from croc_annotate.releases.export.options import ExportOptions
    from croc_annotate.releases.export.run import Plan
    from croc_annotate.releases.models import Release


class DestinationError(RuntimeError):
    """S3 refused, or the address is none; the message says where a complete export stands."""


def is_s3(address: str) -> bool:
    """Whether an address is a bucket's."""
    return address.startswith("s3://")


def export_to_s3(
    *,
    address: str,
    release: Release,
    options: ExportOptions,
    force: bool = False,
    workers: int | None = None,
    tick: Callable[[], object] = lambda: None,
    watch: Watcher | None = None,
) -> Plan:
    """Export to ``s3://bucket/prefix``; raises DestinationError and what a folder's export raises."""
    bucket, prefix = _parsed(address)
    digest = options.digest(release.sha256, croc_annotate.__version__)
    place = Place(bucket, prefix)
    replacing = place.has_export()
    if replacing and not force:
        raise DestinationError(f"{address} already exists; choose another place or use --force")
    # One folder an export, so that a killed one goes on from its files.
    local = Path(tempfile.gettempdir(), "croc-annotate-exports", digest[:32])
    plan = export_to_folder(
        release=release, target=local, options=options, force=True, workers=workers, tick=tick
    )
    try:
        send(local, place, digest=digest, watch=watch)
    finally:
        if place.complete(local):
            shutil.rmtree(local, ignore_errors=True)
    return plan


def send(local: Path, place: Place, *, digest: str, watch: Watcher | None = None) -> None:
    """Make ``place`` hold the export in the folder ``local``; raises DestinationError."""
    place.watch = watch or Watcher()
    staging, old = place.beside(f"staging-{digest[:16]}"), place.beside("old")
    if not place.has_export() and not old.has_export():
        place.upload(local)
        return
    staging.upload(local, trusted=True)
    # Without a manifest in place an earlier attempt was stopped there: the copy is the old export.
    if place.has_export():
        old.copy_from(place)
    try:
        place.copy_from(staging)
    except DestinationError as error:
        raise _put_back(place, old, staging, error) from error
    try:
        place.clear(keep=frozenset(_names(local)))
        staging.clear()
        old.clear()
    except DestinationError as error:
        raise DestinationError(
            f"{error}. The new export is whole at {place}, but files of the old one are left there"
            f" or at {staging} and {old}: give the command again with --force"
        ) from error


def _put_back(
    place: Place, old: Place, staging: Place, error: DestinationError
) -> DestinationError:
    try:
        place.copy_from(old)
        place.clear(keep=frozenset(old.names()))
        old.clear()
    except DestinationError:
        return DestinationError(
            f"{error}. {place} is incomplete now; the old export is whole at {old} and the new one"
            f" at {staging}: give the command again when S3 takes writes"
        )
    return DestinationError(f"{error}. The old export was put back")


class Watcher:
    """Is told what is done with a bucket, and how far it is. This one keeps it to itself."""

    def begin(self, what: str, total: int, unit: str) -> None:
        """``total`` bytes (``B``) or ``files`` are to come."""

    def done(self, count: int) -> None:
        """So many of them are through."""


class Place:
    """A prefix of a bucket, through django-storages."""

    def __init__(self, bucket: str, prefix: str, *, storage: Any = None) -> None:
        self._bucket, self._prefix = bucket, prefix
        self._storage = storage or _storage(bucket)
        self.watch = Watcher()

    def __str__(self) -> str:
        return f"s3://{self._bucket}/{self._prefix}"

    def beside(self, name: str) -> Place:
        """The place of a copy of this one."""
        found = Place(self._bucket, f"{self._prefix}.{name}", storage=self._storage)
        found.watch = self.watch
        return found

    def has_export(self) -> bool:
        """Whether a complete export stands here."""
        return bool(_asked(lambda: self._storage.exists(self._key(MANIFEST))))

    def complete(self, local: Path) -> bool:
        """Whether exactly this export stands here."""
        try:
            with self._storage.open(self._key(MANIFEST)) as file:
                return bool(file.read() == (local / MANIFEST).read_bytes())
        except _missing():
            return False

    def names(self) -> list[str]:
        """What stands here, the manifest last."""
        return _manifest_last(self._tags())

    def upload(self, local: Path, *, trusted: bool = False) -> None:
        """Every file, the manifest last; those that are there already are kept.

        Interrupted uploads leave no object. In a place that is named by the export's hash
        (``trusted``) an object of the right size is that file; elsewhere it may be of another export.
        """
        there = self._tags()
        sizes = {name: (local / name).stat().st_size for name in _names(local)}
        self.watch.begin("uploading", sum(sizes.values()), "B")
        for name, length in sizes.items():
            path = local / name
            size, tag = there.get(name, (-1, ""))
            kept = size == length and (trusted or tag == _md5(path))
            if kept and name != MANIFEST:
                self.watch.done(length)
            else:
                _asked(lambda path=path, name=name: self._save(path, name))  # type: ignore[misc]

    def copy_from(self, source: Place) -> None:
        """Take every object of ``source`` within S3, with the manifest removed first and put last.

        Until the new manifest stands, nobody takes a mixture for whole. What is the same in both
        places is not copied, so that this takes as long as what changed, not as the whole.
        """
        theirs, ours = source._tags(), self._tags()
        _asked(lambda: self._storage.delete(self._key(MANIFEST)))
        self.watch.begin("copying in the bucket", len(theirs), "files")
        for name in _manifest_last(theirs):
            if name == MANIFEST or theirs[name] != ours.get(name):
                _asked(lambda name=name: self._copy(source._key(name), self._key(name)))  # type: ignore[misc]
            self.watch.done(1)

    def clear(self, *, keep: frozenset[str] = frozenset()) -> None:
        """Remove every object but those to ``keep``, the manifest first."""
        going = [name for name in reversed(self.names()) if name not in keep]
        self.watch.begin("tidying the bucket", len(going), "files")
        for name in going:
            _asked(lambda name=name: self._storage.delete(self._key(name)))  # type: ignore[misc]
            self.watch.done(1)

    def _key(self, name: str) -> str:
        return f"{self._prefix}/{name}"

    def _save(self, path: Path, name: str) -> None:
        from django.core.files import File

        with path.open("rb") as stream:
            told = cast("IO[Any]", _Told(stream, self.watch.done))
            self._storage.save(self._key(name), File(told))

    def _copy(self, source: str, target: str) -> None:
        bucket = self._storage.bucket
        bucket.copy({"Bucket": bucket.name, "Key": source}, target)

    def _tags(self) -> dict[str, tuple[int, str]]:
        """Size and tag of each object by its name."""
        prefix = self._key("")
        objects = self._storage.bucket.objects.filter(Prefix=prefix)
        return _asked(  # type: ignore[no-any-return]
            lambda: {
                found.key[len(prefix) :]: (found.size, found.e_tag.strip('"')) for found in objects
            }
        )


class _Told:
    """A file that tells how far it was read, once for each byte however often that is sent."""

    def __init__(self, stream: BinaryIO, done: Callable[[int], None]) -> None:
        self._stream, self._done = stream, done
        self._told = 0

    def read(self, size: int = -1) -> bytes:
        """The next piece."""
        data = self._stream.read(size)
        at = self._stream.tell()
        if at > self._told:
            self._done(at - self._told)
            self._told = at
        return data

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _names(local: Path) -> list[str]:
    """The files of an export, the manifest last."""
    files = (path.relative_to(local).as_posix() for path in local.rglob("*") if path.is_file())
    return _manifest_last(files)


def _manifest_last(names: Iterable[str]) -> list[str]:
    return sorted(names, key=lambda name: (name == MANIFEST, name))


def _md5(path: Path) -> str:
    """S3's own tag of an object that was uploaded in one piece."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()


def _storage(bucket: str) -> Any:
    from django.conf import settings
    from storages.backends.s3 import S3Storage

    own = settings.STORAGES["default"].get("OPTIONS", {}) if settings.S3_BUCKET else {}
    # Endpoint and keys: those of the site's own storage where it has one, else boto's rules.
    kept = {name: own[name] for name in _SHARED if own.get(name)}
    return S3Storage(bucket_name=bucket, file_overwrite=True, default_acl=None, **kept)


_SHARED = ("endpoint_url", "access_key", "secret_key", "region_name", "addressing_style")


def _parsed(address: str) -> tuple[str, str]:
    parts = urlsplit(address)
    prefix = parts.path.strip("/")
    if not parts.netloc or not prefix or parts.query or parts.fragment:
        raise DestinationError(f"{address}: write it like s3://bucket/prefix")
    return parts.netloc, prefix


def _refusals() -> tuple[type[Exception], ...]:
    from boto3.exceptions import Boto3Error
    from botocore.exceptions import BotoCoreError, ClientError

    return (BotoCoreError, ClientError, Boto3Error)


def _missing() -> tuple[type[Exception], ...]:
    return (OSError, *_refusals())


def _asked(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except _refusals() as error:
        raise DestinationError(f"S3 refused: {error}") from error
