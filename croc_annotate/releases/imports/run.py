"""``import_published``: a published folder or archive becomes a release."""

from __future__ import annotations

import tempfile
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.utils import timezone

from croc_annotate.accounts.services import record_audit
from croc_annotate.releases.archives import unpack
from croc_annotate.releases.export.run import default_workers
from croc_annotate.releases.imports.folder import read_folder
from croc_annotate.releases.imports.store import ImageStore, store_folder
from croc_annotate.releases.models import PUBLISHED, Release
from croc_annotate.releases.published import (
    IMAGE_SUFFIXES,
    METADATA_NAME,
    PublishedLayoutError,
)
from croc_annotate.releases.reasons import REASONS
from croc_annotate.releases.services import check_name, next_version, one_snapshot, seal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime

    from croc_annotate.accounts.models import User
    from croc_annotate.releases.archives import Limits
    from croc_annotate.releases.imports.folder import PublishedFolder

DEFAULT_NAME = "crochum"


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What came in. ``created`` is False where the same benchmark was here already."""

    release: Release
    created: bool
    pairs: int
    images: int
    unlisted: int
    duplicates: tuple[tuple[str, str], ...]


def import_published(
    *,
    source: Path,
    name: str = "",
    actor: User | None = None,
    now: datetime | None = None,
    limits: Limits | None = None,
    workers: int | None = None,
    started: Callable[[int], object] = lambda total: None,
    tick: Callable[[], object] = lambda: None,
) -> ImportReport:
    """Import a folder, ``.tar`` or ``.tar.gz`` in the published layout.

    Everything is checked first; nothing is changed when anything is wrong. Raises
    PublishedLayoutError, HostileArchiveError, ReleaseRefusedError, OSError.
    """
    with _opened(source, limits) as root:
        folder = read_folder(root)
        there = _imported_before(folder)
        if there is not None:
            return _report(there, folder, created=False)
        chosen = name or DEFAULT_NAME
        version = next_version(chosen)
        check_name(chosen, version)
        started(folder.n_images)
        release = _draft(chosen, version, folder, actor, now or timezone.now())
        _store(release, folder, workers=workers or default_workers(), tick=tick)
        return _report(release, folder, created=True)


def _store(
    release: Release, folder: PublishedFolder, *, workers: int, tick: Callable[[], object]
) -> None:
    """Files and rows, all of them or none."""
    store = ImageStore(workers=workers)
    try:
        with one_snapshot():
            store_folder(release, folder, store, now=release.created_at, tick=tick)
            seal(release)
            record_audit(
                actor=release.created_by,
                action="release.imported",
                subject_type="release",
                subject_id=release.pk,
                details={"name": release.name, "images": folder.n_images},
            )
    except BaseException:
        # Also on Ctrl-C: the rows are rolled back, so nobody else knows these files.
        store.take_back()
        raise


@contextmanager
def _opened(source: Path, limits: Limits | None) -> Iterator[Path]:
    """The folder, or the archive unpacked into one that is removed afterwards."""
    if source.is_dir():
        yield source
        return
    if not source.is_file():
        raise PublishedLayoutError(f"{source}: neither a folder nor an archive")
    with tempfile.TemporaryDirectory(prefix="croc-import-") as folder:
        unpack(source, Path(folder), limits=limits, wanted=_is_ours)
        yield Path(folder)


def _is_ours(path: str) -> bool:
    """The table, a manifest, and images; nothing else of an archive is written."""
    name = path.rpartition("/")[2]
    return name in (METADATA_NAME, "manifest.json") or name.lower().endswith(IMAGE_SUFFIXES)


def _imported_before(folder: PublishedFolder) -> Release | None:
    for release in Release.objects.filter(origin=PUBLISHED).newest_first():
        if release.parameters.get("source_sha256") == folder.sha256:
            return release
    return None


def _draft(
    name: str, version: str, folder: PublishedFolder, actor: User | None, at: datetime
) -> Release:
    by_category: dict[str, Counter[str]] = {}
    for pair in folder.pairs:
        by_category.setdefault(pair.category, Counter())["verified"] += len(pair.images)
    return Release(
        name=name, version=version, origin=PUBLISHED, rule=PUBLISHED, created_by=actor,
        created_at=at, parameters={"source_sha256": folder.sha256},
        counts=_counts(Counter(verified=folder.n_images)),
        manifest={
            "by_category": {slug: _counts(found) for slug, found in by_category.items()},
            "pairs": len(folder.pairs), "annotations": 0, "candidates": folder.n_images,
        },
    )  # fmt: skip


def _counts(found: Counter[str]) -> dict[str, int]:
    return {reason: found[reason] for reason in REASONS}


def _report(release: Release, folder: PublishedFolder, *, created: bool) -> ImportReport:
    values: dict[str, Any] = {
        "pairs": len(folder.pairs), "images": folder.n_images, "unlisted": folder.unlisted,
        "duplicates": folder.duplicates,
    }  # fmt: skip
    return ImportReport(release, created, **values)
