"""``manage.py import_crochum``: the published benchmark becomes a release."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.core.management.base import CommandError

from croc_annotate.releases.archives import HostileArchiveError
from croc_annotate.releases.imports.run import import_published
from croc_annotate.releases.management.common import ReleaseCommand, Watch, bar
from croc_annotate.releases.published import PublishedLayoutError
from croc_annotate.releases.services import ReleaseRefusedError

if TYPE_CHECKING:
    from argparse import ArgumentParser

_SHOWN = 5


class Command(ReleaseCommand):
    """Thin: calls the import, prints what came in."""

    help = "Import a benchmark in the published CROChum layout as a frozen release."
    manual = """
Takes the folder with croc_hum_metadata.tsv, a folder that this tool exported, or a .tar.gz of either.
Pairs, images and a frozen release are made, on which run_benchmark works; nobody has to annotate.
Everything is checked first (names, links, sizes, hashes, that each file is an image): if anything is
wrong, nothing is changed and the message names the place. The same benchmark a second time changes
nothing. Imported pairs are not in use: they are neither generated nor handed out to annotators.

examples
  manage.py import_crochum croc_hum.tar.gz --release crochum
  manage.py run_benchmark --metric random --release crochum
"""

    def add_arguments(self, parser: ArgumentParser) -> None:
        """The command line of docs/export-format.md."""
        parser.add_argument("source", metavar="DIR|FILE.tar.gz")
        parser.add_argument("--release", default="", metavar="NAME", help="default: crochum")
        parser.add_argument("--workers", type=int, metavar="N", help="threads; default: processors")
        self.add_json(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        """Import and report."""
        self.as_json = options["json"]
        watch = Watch()
        with bar(0, "importing") as shown:
            try:
                report = import_published(
                    source=Path(options["source"]),
                    name=options["release"],
                    workers=options["workers"],
                    started=shown.reset,
                    tick=shown.update,
                )
            except (PublishedLayoutError, HostileArchiveError, ReleaseRefusedError) as error:
                raise CommandError(f"{error}. Nothing was changed.") from error
            except OSError as error:
                raise CommandError(f"{error}. Nothing was changed.") from error
        for first, second in report.duplicates[:_SHOWN]:
            self.stderr.write(self.style.WARNING(f"Warning: {second} is the same image as {first}"))
        if len(report.duplicates) > _SHOWN:
            self.stderr.write(f"… and {len(report.duplicates) - _SHOWN} more")
        if report.unlisted > 0:
            self.stderr.write(
                self.style.WARNING(
                    f"Warning: {report.unlisted} images are not in the table: left out"
                )
            )
        done = "Imported" if report.created else "Nothing new: imported before as"
        self.answer(
            {
                "release": {"name": report.release.name, "version": report.release.version,
                            "sha256": report.release.sha256},
                "created": report.created, "pairs": report.pairs, "images": report.images,
                "unlisted": report.unlisted,
                "duplicates": [list(names) for names in report.duplicates],
                "seconds": watch.seconds,
            },
            f"{done} {report.release}: {report.images:,} images of {report.pairs:,} pairs in {watch}.",
        )  # fmt: skip
