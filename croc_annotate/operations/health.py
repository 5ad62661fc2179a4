"""Is what we need there? One check for each thing, used by /readyz and by ``doctor``."""

from __future__ import annotations

import secrets
import shutil
import time
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

import redis
from botocore.exceptions import BotoCoreError, ClientError
from django.conf import settings
from django.core.checks import run_checks
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.utils import timezone

from croc_annotate.accounts import oidc
from croc_annotate.accounts.models import User
from croc_annotate.annotation.models import Assignment, Campaign
from croc_annotate.candidates.models import Candidate, Worker

if TYPE_CHECKING:
    from collections.abc import Callable

OK, WARNING, ERROR = "ok", "warning", "error"
CLOCK_SECONDS = 5
FREE_DISK_BYTES = 2_000_000_000


@dataclass(frozen=True)
class Finding:
    """What a check saw, and what to do about it."""

    name: str
    level: str
    seen: str
    remedy: str = ""


def check_database() -> Finding:
    """The database answers."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError as error:
        remedy = "Start the database, or correct DATABASE_URL."
        return Finding("database", ERROR, str(error).strip().splitlines()[0], remedy)
    if settings.ON_SQLITE and User.objects.active().real().count() > 5:
        remedy = "Move to PostgreSQL: set DATABASE_URL, then `backup` here and `restore` there."
        return Finding("database", WARNING, "SQLite with more than five people", remedy)
    return Finding("database", OK, connection.vendor)


def check_migrations() -> Finding:
    """Every migration of this version is applied."""
    try:
        executor = MigrationExecutor(connection)
        waiting = executor.migration_plan(executor.loader.graph.leaf_nodes())
    except DatabaseError:
        return Finding("migrations", ERROR, "unknown: no database", "See `database`.")
    if waiting:
        return Finding(
            "migrations", ERROR, f"{len(waiting)} not applied", "Run `python manage.py migrate`."
        )
    return Finding("migrations", OK, "all applied")


def check_broker() -> Finding:
    """Redis answers, where it is set."""
    if not settings.REDIS_URL:
        return Finding("broker", OK, "none set: tasks run in the process that asks")
    try:
        redis.Redis.from_url(settings.REDIS_URL, socket_connect_timeout=3, socket_timeout=3).ping()
    except redis.exceptions.RedisError as error:
        return Finding("broker", ERROR, str(error), "Start Redis, or correct REDIS_URL.")
    return Finding("broker", OK, "Redis answers")


def check_storage() -> Finding:
    """A file can be written, read back and removed."""
    content = secrets.token_bytes(16)
    try:
        name = default_storage.save(f"health/{secrets.token_hex(8)}", ContentFile(content))
        with default_storage.open(name) as file:
            same = file.read() == content
        default_storage.delete(name)
    except (OSError, BotoCoreError, ClientError) as error:
        remedy = "Check MEDIA_ROOT and its owner, or the S3_* settings and the bucket's policy."
        return Finding("storage", ERROR, str(error), remedy)
    if not same:
        return Finding("storage", ERROR, "read back other bytes than written", "Check the store.")
    return Finding("storage", OK, type(default_storage._wrapped).__name__)  # type: ignore[attr-defined]


def check_disk() -> Finding:
    """There is room where local files go."""
    if settings.S3_BUCKET:
        return Finding("disk", OK, "images are in S3")
    folder = settings.MEDIA_ROOT
    while not folder.exists():
        folder = folder.parent
    free = shutil.disk_usage(folder).free
    seen = f"{free / 1e9:.1f} GB free"
    if free < FREE_DISK_BYTES:
        return Finding("disk", WARNING, seen, "PNG images of 1024² take 1 to 2 MB each.")
    return Finding("disk", OK, seen)


def check_workers() -> Finding:
    """Somebody renders what is waiting."""
    waiting = Candidate.objects.requested().count()
    recent = timezone.now() - timedelta(minutes=2)
    alive = Worker.objects.filter(heartbeat_at__gte=recent, stopped_at__isnull=True).count()
    seen = f"{alive} alive, {waiting} images waiting"
    if waiting and not alive and settings.REDIS_URL:
        remedy = "Start a GPU worker, then run `generate --queue` again."
        return Finding("workers", WARNING, seen, remedy)
    return Finding("workers", OK, seen)


def check_secrets() -> Finding:
    """No unsafe setting in production (Django's own deployment checks)."""
    if settings.DEBUG:
        return Finding("secrets", ERROR, "DEBUG is on", "Unset DEBUG: it shows settings to all.")
    if settings.ON_LOOPBACK_ONLY:
        return Finding("secrets", OK, "this machine only")
    found = run_checks(include_deployment_checks=True, tags=["security"])
    if found:
        first = "; ".join(str(message.id) for message in found)
        return Finding("secrets", ERROR, first, "Run `python manage.py check --deploy`.")
    return Finding("secrets", OK, "deployment checks are clean")


def check_sign_in() -> Finding:
    """The organisation's sign-in service answers, where one is set."""
    if oidc.is_half_configured():
        seen = f"half configured: {', '.join(oidc.missing_settings())} not set"
        return Finding("sign-in", ERROR, seen, "Set it, or unset all OIDC_ settings.")
    if oidc.missing_settings():
        return Finding("sign-in", OK, "by password and links only")
    if not oidc.is_active():
        remedy = "Run `python manage.py check`: the address is unsafe or the library missing."
        return Finding("sign-in", ERROR, "OIDC_ settings cannot be used", remedy)
    try:
        issuer = oidc.examine_provider()
    except oidc.SignInError as error:
        remedy = "Compare OIDC_ISSUER with the provider's discovery document, and its network."
        return Finding("sign-in", ERROR, str(error), remedy)
    return Finding("sign-in", OK, f"{issuer} answers")


def check_clock() -> Finding:
    """This machine's clock and the database's agree: leases and time limits depend on it."""
    if connection.vendor != "postgresql":
        return Finding("clock", OK, "one machine")
    with connection.cursor() as cursor:
        cursor.execute("SELECT extract(epoch FROM clock_timestamp())")
        theirs = float(cursor.fetchone()[0])
    off = time.time() - theirs
    if abs(off) > CLOCK_SECONDS:
        return Finding("clock", ERROR, f"{off:+.0f} s from the database's", "Start a time service.")
    return Finding("clock", OK, f"{off:+.2f} s from the database's")


def check_queue() -> Finding:
    """Overdue leases are swept."""
    cutoff = timezone.now() - timedelta(hours=1)
    stuck = Assignment.objects.overdue(cutoff).count()
    is_open = Campaign.objects.open().exists()
    if stuck:
        remedy = "They are given back when the next person asks for work; run the scheduler."
        return Finding("queue", WARNING, f"{stuck} leases over an hour old", remedy)
    return Finding("queue", OK, "campaigns are open" if is_open else "no open campaign")


NEEDED: list[Callable[[], Finding]] = [
    check_database,
    check_migrations,
    check_broker,
    check_storage,
]
ADVISED: list[Callable[[], Finding]] = [
    check_disk,
    check_workers,
    check_secrets,
    check_sign_in,
    check_clock,
    check_queue,
]


def examine(*, checks: list[Callable[[], Finding]]) -> list[Finding]:
    """Run ``checks``; those after a database that does not answer are left out."""
    findings: list[Finding] = []
    for check in checks:
        findings.append(check())
        if findings[-1].name == "database" and findings[-1].level == ERROR:
            break
    return findings
