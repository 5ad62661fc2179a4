"""``manage.py backup``: everything in one file, whatever the database."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.core.management.base import BaseCommand, CommandError

from croc_annotate.operations.backup import BackupError, write_backup

if TYPE_CHECKING:
    from argparse import ArgumentParser


class Command(BaseCommand):
    """Write all rows (and, on request, all images) to one tar file."""

    help = (
        "Write all rows to one tar file that `restore` reads into an empty database of any kind. "
        "Images stay where they are unless --with-images is given. The file holds people's names "
        "and password hashes: it is written for its owner only, keep it so."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the arguments."""
        parser.add_argument("file", type=Path, help="the tar file to write; must not exist")
        parser.add_argument("--with-images", action="store_true", help="include image files")

    def handle(self, *args: Any, **options: Any) -> None:
        """Write the backup."""
        start = time.monotonic()
        try:
            manifest = write_backup(path=options["file"], with_images=options["with_images"])
        except (BackupError, OSError) as error:
            raise CommandError(str(error)) from error
        rows = sum(table["rows"] for table in manifest["tables"].values())
        images = f" and {manifest['images']} images" if options["with_images"] else ""
        took = time.monotonic() - start
        self.stdout.write(f"{options['file']}: {rows} rows{images} in {took:.1f} s")
