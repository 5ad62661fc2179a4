"""``manage.py restore``: a backup into an empty database, checked row by row."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.core.management.base import BaseCommand, CommandError

from croc_annotate.operations.backup import BackupError, restore_backup

if TYPE_CHECKING:
    from argparse import ArgumentParser


class Command(BaseCommand):
    """Read a backup into an empty, migrated database."""

    help = (
        "Read a file made by `backup` into an empty database that `migrate` has prepared. All of "
        "it is restored and compared with the backup's hashes, or nothing."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the arguments."""
        parser.add_argument("file", type=Path, help="the tar file that `backup` wrote")

    def handle(self, *args: Any, **options: Any) -> None:
        """Restore the backup."""
        start = time.monotonic()
        try:
            manifest = restore_backup(path=options["file"])
        except (BackupError, OSError) as error:
            raise CommandError(str(error)) from error
        rows = sum(table["rows"] for table in manifest["tables"].values())
        took = time.monotonic() - start
        self.stdout.write(f"{rows} rows restored and compared in {took:.1f} s")
