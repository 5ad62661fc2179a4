"""Backup and restore that do not depend on the kind of database.

A backup is one tar file: ``manifest.json`` (version, applied migrations, rows and SHA-256 of each
table), ``rows/<table>.jsonl`` (Django's own JSON serialisation, one row a line, by primary key)
and, on request, ``media/…``. Restoring needs an empty, migrated database, happens in one
transaction and compares every table with the file afterwards, row by row.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import tarfile
import tempfile
from datetime import datetime, time
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from django.apps import apps
from django.core import serializers
from django.core.files.base import File
from django.core.files.storage import default_storage
from django.core.management.color import no_style
from django.core.serializers.json import DjangoJSONEncoder
from django.db import connection, transaction
from django.db.migrations.recorder import MigrationRecorder
from django.db.models.sql import InsertQuery

from croc_annotate import __version__
from croc_annotate.candidates.models import Candidate
from croc_annotate.lib.jsontext import parse_json
from croc_annotate.lib.progress import progress
from croc_annotate.releases.models import Release

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from django.db.models import Model

FORMAT = 1
BATCH = 1000
# Made anew by migrations, or meaningless elsewhere.
LEFT_OUT = {
    "contenttypes.contenttype",
    "auth.permission",
    "auth.group_permissions",
    "accounts.user_user_permissions",
    "sessions.session",
    "admin.logentry",
    "axes.accessattempt",
    "axes.accesslog",
    "axes.accessfailurelog",
    "axes.accessattemptexpiration",
    # Made again when it is asked for; a row without its file could never be downloaded.
    "releases.releaseexport",
    # Computed again when it is asked for; and it is unpickled, which no file from elsewhere may be.
    "benchmark.preparedresult",
}


class BackupError(Exception):
    """A backup that cannot be made or restored; the message says why and what to do."""


class ExactEncoder(DjangoJSONEncoder):
    """Times to the microsecond.

    Django's own cuts them to milliseconds, and writes no fraction at all for a whole second: what
    was 456 µs after one came back as another text, and the comparison refused the restored table.
    """

    def default(self, o: Any) -> Any:
        """As Django's, but for times."""
        if isinstance(o, datetime):
            return o.isoformat().replace("+00:00", "Z")
        if isinstance(o, time):
            return o.isoformat()
        return super().default(o)


def tables() -> list[type[Model]]:
    """All models that a backup holds, those that others point to first."""
    models = [
        model
        for model in apps.get_models(include_auto_created=True)
        if model._meta.label_lower not in LEFT_OUT and model._meta.managed
    ]
    ordered: list[type[Model]] = []

    def add(model: type[Model], path: tuple[type[Model], ...]) -> None:
        if model in ordered or model in path or model not in models:
            return
        for field in model._meta.get_fields():
            target = getattr(field, "related_model", None)
            if field.concrete and field.is_relation and isinstance(target, type):
                add(target, (*path, model))
        ordered.append(model)

    for model in models:
        add(model, ())
    # A sealed release takes no new members: they must be there before it (foreign keys are
    # checked at the end of the transaction).
    ordered.remove(Release)
    ordered.append(Release)
    return ordered


def _lines(model: type[Model]) -> Iterator[bytes]:
    rows = model._base_manager.order_by("pk").iterator(chunk_size=BATCH)
    for row in rows:
        text = serializers.serialize(
            "jsonl", [row], use_natural_foreign_keys=False, cls=ExactEncoder
        )
        yield text.encode("utf-8")


def _canonical(line: bytes) -> bytes:
    """A row as it reads on any database: PostgreSQL keeps the keys of JSON in an order of its own."""
    return json.dumps(json.loads(line), sort_keys=True).encode()


def _hash(lines: Iterable[bytes]) -> tuple[int, str]:
    digest, count = hashlib.sha256(), 0
    for line in lines:
        digest.update(_canonical(line))
        count += 1
    return count, digest.hexdigest()


def _table_hash(model: type[Model]) -> tuple[int, str]:
    return _hash(_lines(model))


def _write_table(archive: tarfile.TarFile, model: type[Model]) -> dict[str, Any]:
    digest, count = hashlib.sha256(), 0
    with tempfile.TemporaryFile() as rows:
        for line in _lines(model):
            rows.write(line)
            digest.update(line)
            count += 1
        size = rows.tell()
        rows.seek(0)
        _add(archive, f"rows/{model._meta.label_lower}.jsonl", rows, size)
    return {"rows": count, "sha256": digest.hexdigest()}


def _add(archive: tarfile.TarFile, name: str, source: IO[bytes], size: int) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = size
    entry.mode = 0o600
    archive.addfile(entry, source)


def _media_names() -> Iterator[str]:
    names = Candidate.objects.rendered().order_by("pk")
    for row in names.values_list("image", "display", "preview").iterator(chunk_size=BATCH):
        yield from (name for name in row if name)


def _applied() -> list[list[str]]:
    rows = MigrationRecorder(connection).applied_migrations()
    return sorted([app, name] for app, name in rows)


def write_backup(*, path: Path, with_images: bool) -> dict[str, Any]:
    """Write a backup to ``path`` (which must not exist), readable by its owner only; its manifest.

    All tables are read in one repeatable-read transaction on PostgreSQL, so that a backup of a
    running site is of one moment.
    """
    if path.exists():
        raise BackupError(f"{path} exists: choose another name, an old backup is never replaced.")
    # mkstemp: for its owner only from the first byte on, whatever the umask, and nobody else's.
    number, name = tempfile.mkstemp(prefix=f".{path.name}-", suffix=".part", dir=path.parent)
    temporary = Path(name)
    try:
        with (
            os.fdopen(number, "wb") as file,
            tarfile.open(fileobj=file, mode="w") as archive,
            transaction.atomic(),
        ):
            if connection.vendor == "postgresql":
                with connection.cursor() as cursor:
                    cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            manifest = _write_contents(archive, with_images=with_images)
        temporary.rename(path)
    finally:
        temporary.unlink(missing_ok=True)
    return manifest


def _write_contents(archive: tarfile.TarFile, *, with_images: bool) -> dict[str, Any]:
    models = tables()
    written = {
        model._meta.label_lower: _write_table(archive, model)
        for model in progress(models, total=len(models), label="tables")
    }
    images = 0
    if with_images:
        for name in progress(_media_names(), total=None, label="images"):
            with default_storage.open(name) as file:
                _add(archive, f"media/{name}", file, file.size)
            images += 1
    manifest = {
        "format": FORMAT,
        "version": __version__,
        "migrations": _applied(),
        "tables": written,
        "images": images if with_images else None,
    }
    data = json.dumps(manifest, indent=1).encode()
    _add(archive, "manifest.json", io.BytesIO(data), len(data))
    return manifest


def read_manifest(*, path: Path) -> dict[str, Any]:
    """The manifest of the backup at ``path``."""
    try:
        with tarfile.open(path) as archive:
            member = archive.extractfile("manifest.json")
            if member is None:
                raise BackupError(f"{path}: manifest.json is not a file.")
            manifest: dict[str, Any] = parse_json(member.read())
    except (tarfile.TarError, KeyError, ValueError) as error:
        raise BackupError(f"{path} is not a whole backup: {error}") from error
    if manifest.get("format") != FORMAT:
        raise BackupError(f"{path}: format {manifest.get('format')} is not known here.")
    return manifest


def restore_backup(*, path: Path) -> dict[str, Any]:
    """Fill the empty database from the backup at ``path``; nothing is kept when anything is wrong."""
    manifest = read_manifest(path=path)
    if manifest["migrations"] != _applied():
        raise BackupError(
            f"The backup was made by version {manifest['version']} with other migrations: restore "
            "it with that version, then migrate."
        )
    with transaction.atomic(), tarfile.open(path) as archive:
        _require_empty()
        _load_rows(archive, manifest)
        _reset_sequences()
        _compare(archive, manifest)
        _restore_images(archive)
    return manifest


def _require_empty() -> None:
    filled = [
        model._meta.label
        for model in tables()
        if model._meta.label_lower != "prompts.category" and model._base_manager.exists()
    ]
    if filled:
        raise BackupError(
            f"The database is not empty ({', '.join(filled[:3])}): restore into a new one."
        )
    apps.get_model("prompts", "Category").objects.all().delete()


def _load_rows(archive: tarfile.TarFile, manifest: dict[str, Any]) -> None:
    known = {model._meta.label_lower: model for model in tables()}
    if set(manifest["tables"]) != set(known):
        odd = ", ".join(sorted(set(manifest["tables"]) ^ set(known)))
        raise BackupError(f"The backup and this version do not have the same tables: {odd}")
    for label in progress(list(known), total=len(known), label="tables"):
        _load_table(known[label], _member(archive, label))


def _load_table(model: type[Model], member: IO[bytes]) -> None:
    batch: list[Model] = []
    stream = io.TextIOWrapper(member, encoding="utf-8")
    for row in serializers.deserialize("jsonl", stream):
        batch.append(row.object)
        if len(batch) >= BATCH:
            _insert(model, batch)
            batch.clear()
    if batch:
        _insert(model, batch)


def _insert(model: type[Model], rows: list[Model]) -> None:
    # `raw`: times of creation stay those of the backup. bulk_create has no such choice and
    # would stamp `auto_now_add` fields with the time of the restore.
    fields = model._meta.concrete_fields
    size = connection.ops.bulk_batch_size(fields, rows)  # SQLite limits parameters
    for start in range(0, len(rows), size):
        query = InsertQuery(model)
        query.insert_values(fields, rows[start : start + size], raw=True)
        query.get_compiler(connection=connection).execute_sql()


def _reset_sequences() -> None:
    statements = connection.ops.sequence_reset_sql(no_style(), tables())
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def _compare(archive: tarfile.TarFile, manifest: dict[str, Any]) -> None:
    for model in tables():
        label = model._meta.label_lower
        wanted = manifest["tables"][label]
        raw = hashlib.file_digest(_member(archive, label), "sha256")  # type: ignore[arg-type]
        whole = raw.hexdigest() == wanted["sha256"]
        count, digest = _table_hash(model)
        if not whole or (count, digest) != _hash(_member(archive, label)):
            raise BackupError(
                f"{label}: {count} rows restored, {wanted['rows']} expected, or their contents "
                "differ. Nothing was kept."
            )


def _member(archive: tarfile.TarFile, label: str) -> IO[bytes]:
    member = archive.extractfile(f"rows/{label}.jsonl")
    if member is None:
        raise BackupError(f"rows/{label}.jsonl is not a file.")
    return member


def _restore_images(archive: tarfile.TarFile) -> None:
    for member in archive:
        if not member.name.startswith("media/"):
            continue
        name = member.name.removeprefix("media/")
        source = archive.extractfile(member)
        if source is None or ".." in Path(name).parts or name.startswith("/"):
            raise BackupError(f"{member.name}: not a plain image in the backup.")
        if not default_storage.exists(name):
            default_storage.save(name, File(source))
