"""Where a candidate's three files lie: names that tell nothing, behind Django's storage API."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.core.files.base import ContentFile
from django.core.files.storage import FileSystemStorage, default_storage

from croc_annotate.candidates.models import random_key
from croc_annotate.lib.imagefiles import DISPLAY_SUFFIX

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from croc_annotate.candidates.models import Candidate

logger = logging.getLogger(__name__)


FOLDERS = ("originals", "display", "preview")


@dataclass(frozen=True)
class FileNames:
    """Storage names of the original, of the stripped copy and of the thumbnail."""

    image: str
    display: str
    preview: str

    def __iter__(self) -> Iterator[str]:
        return iter((self.image, self.display, self.preview))


def fresh_names(suffix: str) -> FileNames:
    """Names under a new random key; folders by its first byte keep directories small."""
    key = random_key()
    return FileNames(
        image=f"originals/{key[:2]}/{key}{suffix}",
        display=f"display/{key[:2]}/{key}{DISPLAY_SUFFIX}",
        preview=f"preview/{key[:2]}/{key}{DISPLAY_SUFFIX}",
    )


def names_of(candidate: Candidate) -> list[str]:
    """The names that a row holds, announced or stored."""
    return [name for name in (candidate.image, candidate.display, candidate.preview) if name]


def write_file(name: str, data: bytes) -> None:
    """Write one file; raises RuntimeError where the storage would choose another name."""
    written = default_storage.save(name, ContentFile(data))
    if written != name:  # a random 128-bit name that exists already: a broken random source
        default_storage.delete(written)
        raise RuntimeError(f"The storage holds a file named {name} already.")


def all_names(folder: str) -> Iterator[str]:
    """The names of all files below a folder; nothing where the folder is not there."""
    try:
        folders, files = default_storage.listdir(folder)
    except FileNotFoundError:
        return
    for name in sorted(files):
        yield f"{folder}/{name}"
    for name in sorted(folders):
        yield from all_names(f"{folder}/{name}")


def storage_errors() -> tuple[type[Exception], ...]:
    """What the configured storage raises when it cannot be reached or refuses."""
    if isinstance(default_storage, FileSystemStorage):
        return (OSError,)
    from boto3.exceptions import Boto3Error
    from botocore.exceptions import BotoCoreError, ClientError

    return (OSError, Boto3Error, BotoCoreError, ClientError)


def read_file(name: str) -> bytes:
    """The bytes of one file."""
    with default_storage.open(name) as file:
        data: bytes = file.read()
    return data


def delete_file(name: str) -> None:
    """Delete one file; one that is gone already is no error. Raises while the storage is away."""
    default_storage.delete(name)


def abort_uploads(names: set[str]) -> int:
    """End uploads in parts that were broken off: S3 keeps their parts, unseen and paid for.

    Returns how many; always 0 where files lie in a folder.
    """
    bucket = getattr(default_storage, "bucket", None)
    if bucket is None:
        return 0
    begun = [upload for upload in bucket.multipart_uploads.all() if upload.object_key in names]
    for upload in begun:
        upload.abort()
    return len(begun)


def delete_files(names: Iterable[str]) -> None:
    """Delete files that no row needs, as far as the storage is there; `leftovers` tries again."""
    for name in names:
        try:
            delete_file(name)
        except storage_errors():
            logger.warning("Could not delete the unused file %s", name, exc_info=True)
