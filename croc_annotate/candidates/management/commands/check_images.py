"""Compare the rows of images with their files."""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from croc_annotate.candidates.checking import check_files, repair_files
from croc_annotate.lib.progress import progress

_MANUAL = """
Check that every rendered image has its three files (original, display copy, preview), with
--hashes also that each original still has the SHA-256 of its row, and that no file is left over.

Left over are files older than an hour that no row names: what a worker was writing when it was
killed, once another has taken over. Nothing uses them.

--repair asks again for lost and damaged images that were generated here and that nobody has
judged, and deletes what is left over. Imported and judged images are only named: restore those
from a backup. Exit status 1 when anything is wrong and was not repaired.
"""


class Command(BaseCommand):
    """`manage.py check_images`."""

    help = _MANUAL

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """How closely to look."""
        parser.formatter_class = argparse.RawDescriptionHelpFormatter
        parser.add_argument("--hashes", action="store_true", help="read every original (slow)")
        parser.add_argument("--repair", action="store_true", help="ask again, tidy up")
        parser.add_argument("--json", action="store_true", dest="as_json", help="one JSON document")

    def handle(self, *, hashes: bool, repair: bool, as_json: bool, **_options: Any) -> None:
        """Check, say, repair if asked."""
        started = time.monotonic()
        report = check_files(
            hashes=hashes, watch=lambda rows, total: progress(rows, total=total, label="Checking")
        )
        repaired = repair_files(report=report) if repair else 0
        found = {
            "checked": report.checked,
            "lost": len(report.lost),
            "damaged": len(report.damaged),
            "left_over": len(report.left_over),
            "asked_again": repaired,
        }
        if as_json:
            self.stdout.write(json.dumps(found))
        else:
            for pk in [*report.lost, *report.damaged][:20]:
                self.stderr.write(f"candidate {pk}: lost or damaged files")
            words = ", ".join(
                f"{count:,} {name.replace('_', ' ')}" for name, count in found.items()
            )
            self.stdout.write(f"Images: {words} ({time.monotonic() - started:.1f} s).")
        if len(report.lost) + len(report.damaged) > repaired or (report.left_over and not repair):
            raise CommandError("Rows and files do not agree; see above and --help for --repair.")
