"""``manage.py withdraw_release``: take a release back, for good."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.core.management.base import CommandError

from croc_annotate.releases.management.common import ReleaseCommand, release_or_error
from croc_annotate.releases.services import ReleaseRefusedError, withdraw_release

if TYPE_CHECKING:
    from argparse import ArgumentParser


class Command(ReleaseCommand):
    """Thin: finds the release, calls the service."""

    help = "Withdraw a release: it stays visible with the note, and is exported no more."
    manual = """
A release cannot be changed or deleted. Withdrawn, it is no longer the newest for any command, cannot be
exported, and its page shows the note. This is final.

example
  manage.py withdraw_release croc-hum@1.0.0 --note "The texts of counting_7 were swapped."
"""

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Which, and why."""
        parser.add_argument("release", metavar="NAME[@VERSION]")
        parser.add_argument("--note", required=True, help="what is wrong with it")
        self.add_json(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        """Withdraw and report."""
        self.as_json = options["json"]
        release = release_or_error(options["release"])
        try:
            withdraw_release(release=release, note=options["note"])
        except ReleaseRefusedError as error:
            raise CommandError(str(error)) from error
        self.answer(
            {"release": {"name": release.name, "version": release.version}, "state": release.state},
            f"Withdrew {release}.",
        )
