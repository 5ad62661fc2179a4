"""An export to S3: written here, uploaded whole, visible at the end.

S3 has no rename. A new export is uploaded in place with its manifest last: a reader that
sees the manifest sees all. Over an existing one the files are first uploaded beside it and
only then copied within S3, so that a refusal half-way leaves the old export as it was.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import croc_annotate
from croc_annotate.releases.beside.manifest import NAME as MANIFEST
from croc_annotate.releases.export.run import export_to_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from croc_annotate.releases.export.options import ExportOptions
    from croc_annotate.releases.export.run import Plan
    from croc_annotate.releases.models import Release


class DestinationError(RuntimeError):
    """S3 refused, or the address is none; the old export is untouched."""


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
        staging = Place(bucket, f"{prefix}.staging-{digest[:16]}") if replacing else place
        staging.upload(local)
        if replacing:
            place.replace_with(staging, local)
    finally:
        if place.complete(local):
            shutil.rmtree(local, ignore_errors=True)
    return plan


class Place:
    """A prefix of a bucket, through django-storages."""

    def __init__(self, bucket: str, prefix: str) -> None:
        self._prefix = prefix
        self._storage = _storage(bucket)

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

    def upload(self, local: Path) -> None:
        """Every file, the manifest last; those that are there already are kept."""
        there = dict(_asked(lambda: list(self._sizes())))
        for path in _in_order(local):
            name = path.relative_to(local).as_posix()
            # Interrupted uploads leave no object: an object of the right size in a place
            # named by the export's hash is that file.
            if there.get(self._key(name)) != path.stat().st_size or name == MANIFEST:
                _asked(lambda path=path, name=name: self._save(path, name))  # type: ignore[misc]

    def replace_with(self, staging: Place, local: Path) -> None:
        """Copy within S3, the manifest last; then drop what is neither old nor new.

        The old manifest goes first: until the new one stands, nobody takes a mixture for whole.
        """
        wanted = set()
        _asked(lambda: self._storage.delete(self._key(MANIFEST)))
        for path in _in_order(local):
            name = path.relative_to(local).as_posix()
            wanted.add(self._key(name))
            _asked(lambda name=name: self._copy(staging._key(name), self._key(name)))  # type: ignore[misc]
        for key, _ in _asked(lambda: list(self._sizes())):
            if key not in wanted:
                _asked(lambda key=key: self._storage.delete(key))  # type: ignore[misc]
        for key, _ in _asked(lambda: list(staging._sizes())):
            _asked(lambda key=key: self._storage.delete(key))  # type: ignore[misc]

    def _key(self, name: str) -> str:
        return f"{self._prefix}/{name}" if self._prefix else name

    def _save(self, path: Path, name: str) -> None:
        from django.core.files import File

        with path.open("rb") as stream:
            self._storage.save(self._key(name), File(stream))

    def _copy(self, source: str, target: str) -> None:
        bucket = self._storage.bucket
        bucket.copy({"Bucket": bucket.name, "Key": source}, target)

    def _sizes(self) -> Iterator[tuple[str, int]]:
        prefix = f"{self._prefix}/" if self._prefix else ""
        for found in self._storage.bucket.objects.filter(Prefix=prefix):
            yield found.key, found.size


def _in_order(local: Path) -> list[Path]:
    files = sorted(path for path in local.rglob("*") if path.is_file())
    return sorted(files, key=lambda path: path == local / MANIFEST)


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
        raise DestinationError(f"S3 refused: {error}; the old export there is untouched") from error
