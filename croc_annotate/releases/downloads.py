"""Exports that are asked for on the page: made in the background, kept as one file."""

from __future__ import annotations

import shutil
import tempfile
import time
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from django.core.files import File
from django.core.files.storage import default_storage
from django.db import transaction
from django.db.models import Q
from django.utils import timezone

import croc_annotate
from croc_annotate.accounts.services import record_audit
from croc_annotate.candidates.models import random_key
from croc_annotate.releases.export.options import BadOptionsError, ExportOptions
from croc_annotate.releases.export.payloads import ChangedImageError
from croc_annotate.releases.export.run import ExportRefusedError, export_to_folder, plan_export
from croc_annotate.releases.export.tarfiles import end_of_tar, tar_file, tar_header
from croc_annotate.releases.export.workdir import BusyError, HashedFile
from croc_annotate.releases.models import ExportState, Release, ReleaseExport
from croc_annotate.releases.sealing import BrokenSealError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime

    from croc_annotate.accounts.models import User

# A worker that was killed says nothing: without a sign for so long, another may take over.
SILENT = timedelta(minutes=5)
# A sign of life comes this often, also while the archive is packed and sent to the store.
_SIGN_EVERY_S = 10.0
_NAMED = (
    ExportRefusedError, BadOptionsError, ChangedImageError, BrokenSealError, BusyError, OSError,
)  # fmt: skip


def request_export(
    *, release: Release, options: ExportOptions, actor: User | None, now: datetime | None = None
) -> ReleaseExport:
    """Ask for an export; the same wish again answers with the one that is there or coming."""
    from croc_annotate.releases.tasks import make_export

    plan = plan_export(release, options)
    digest = options.digest(release.sha256, croc_annotate.__version__)
    with transaction.atomic():
        export, created = ReleaseExport.objects.exclude(state=ExportState.FAILED).get_or_create(
            release=release,
            digest=digest,
            defaults={
                "options": options.as_dict(), "requested_by": actor, "total": plan.steps,
                "created_at": now or timezone.now(),
            },
        )  # fmt: skip
        if created:
            record_audit(
                actor=actor, action="release.export_asked", subject_type="release",
                subject_id=release.pk, details={"formats": list(options.formats)},
            )  # fmt: skip
    if export.state in (ExportState.WAITING, ExportState.RUNNING):
        transaction.on_commit(lambda: make_export.delay(export.pk))
    return export


def run_export(*, export_id: int, now: datetime | None = None) -> bool:
    """Make one export; False when another worker has it or it is done. Safe to run twice."""
    if not _claim(export_id, now or timezone.now()):
        return False
    export = ReleaseExport.objects.select_related("release").get(pk=export_id)
    work = Path(tempfile.gettempdir(), "croc-annotate-exports", f"page-{export.digest[:32]}")
    try:
        _make(export, work)
    except _NAMED as error:
        ReleaseExport.objects.filter(pk=export_id).update(
            state=ExportState.FAILED, error=str(error)[:2_000], finished_at=timezone.now()
        )
    finally:
        shutil.rmtree(work, ignore_errors=True)
        work.with_suffix(".tar").unlink(missing_ok=True)
    return True


def archive_name(export: ReleaseExport) -> str:
    """What the file is called when it is downloaded."""
    formats = "-".join(export.options.get("formats", []))
    return f"{export.release.name}-{export.release.version}-{formats}.tar"


def _claim(export_id: int, now: datetime) -> bool:
    free = Q(state=ExportState.WAITING) | Q(
        state=ExportState.RUNNING, heartbeat_at__lt=now - SILENT
    )
    changed = ReleaseExport.objects.filter(free, pk=export_id).update(
        state=ExportState.RUNNING, heartbeat_at=now, done=0
    )
    return changed == 1


class _Progress:
    """Tells the database now and then how far an export is, and that its worker lives."""

    def __init__(self, export_id: int) -> None:
        self._export_id = export_id
        self._told = time.monotonic()
        self.done = 0

    def tick(self) -> None:
        """An image is done."""
        self.done += 1
        self.live()

    def live(self) -> None:
        """Something was done that is no image."""
        if time.monotonic() - self._told >= _SIGN_EVERY_S:
            ReleaseExport.objects.filter(pk=self._export_id).update(
                done=self.done, heartbeat_at=timezone.now()
            )
            self._told = time.monotonic()


class _Watched(File):  # type: ignore[type-arg]
    """A file that tells when it is read: sending many gigabytes to a store takes its time."""

    def __init__(self, stream: BinaryIO, live: Callable[[], None]) -> None:
        super().__init__(stream)
        self._live = live

    def chunks(self, chunk_size: int | None = None) -> Iterator[bytes]:
        """The pieces that a folder's store writes."""
        for chunk in super().chunks(chunk_size):
            self._live()
            yield chunk


def _make(export: ReleaseExport, work: Path) -> None:
    progress = _Progress(export.pk)
    options = ExportOptions.from_dict(export.options)
    export_to_folder(
        release=export.release, target=work, options=options, force=True, tick=progress.tick
    )
    path = work.with_suffix(".tar")
    top = f"{export.release.name}-{export.release.version}"
    size, sha256 = _pack(work, path, top=top, live=progress.live)
    with path.open("rb") as stream:
        name = default_storage.save(f"exports/{random_key()}.tar", _Watched(stream, progress.live))
    ReleaseExport.objects.filter(pk=export.pk).update(
        state=ExportState.DONE, file=name, size=size, sha256=sha256, done=progress.done,
        finished_at=timezone.now(), error="",
    )  # fmt: skip


def _pack(folder: Path, path: Path, *, top: str, live: Callable[[], None]) -> tuple[int, str]:
    with path.open("wb") as stream:
        sink = HashedFile(stream)
        for file in sorted(item for item in folder.rglob("*") if item.is_file()):
            name = f"{top}/{file.relative_to(folder).as_posix()}"
            sink.write(tar_header(name, file.stat().st_size))
            tar_file(file, sink.write)
            live()
        sink.write(end_of_tar())
        digest = sink.hexdigest()
        sink.finish()
    return sink.size, digest
