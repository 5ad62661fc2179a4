"""``manage.py export_person``: all data of one person, for that person."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.core.management.base import BaseCommand, CommandError

from croc_annotate.accounts.models import User
from croc_annotate.operations.privacy import export_person

if TYPE_CHECKING:
    from argparse import ArgumentParser


class Command(BaseCommand):
    """Write a ZIP file of JSON files."""

    help = (
        "Write everything that the database holds about one person to a ZIP file of JSON files "
        "with a README, readable by its owner only. Passwords and keys are left out. The export "
        "is noted in the audit log."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the arguments."""
        parser.add_argument("user", help="the person's user name")
        parser.add_argument("file", type=Path, help="the ZIP file to write; must not exist")

    def handle(self, *args: Any, **options: Any) -> None:
        """Write the file."""
        user = User.objects.filter(username=options["user"]).first()
        if user is None:
            raise CommandError(f"There is no account named {options['user']}.")
        try:
            tables = export_person(user=user, path=options["file"], actor=None)
        except OSError as error:
            raise CommandError(str(error)) from error
        for name, rows in tables.items():
            self.stdout.write(f"{name}: {rows}")
