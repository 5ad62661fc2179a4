"""Bring images that were made elsewhere into the database."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.core.management.base import BaseCommand, CommandError

from croc_annotate.candidates.imports import import_images
from croc_annotate.candidates.manifest import ManifestError, name_rows, read_manifest
from croc_annotate.lib.progress import progress

if TYPE_CHECKING:
    from croc_annotate.candidates.imports import ImportReport

_MANUAL = """
Store images that were made elsewhere, each as a candidate of one side of a pair.

A manifest (TSV, CSV or JSON Lines) has the columns
    file        path below DIR
    pair_id     e.g. counting_7; the pair must have been loaded (load_prompts)
    side        prompt, contrast or alt_contrast
    generator   name of the model; an unknown one is created, licence "unknown"
    seed        whole number that tells the images of one side apart
and optionally sha256, which is then checked. Further columns are ignored. What a row leaves out,
and without --manifest everything, is read from the published file naming:
    counting_7___prompt___FLUX_1_dev___image12.png

PNG, JPEG, WebP and BMP are accepted, told by content. Truncated files, more than 50 megapixels,
other formats, paths that lead out of DIR, symbolic links and unknown pairs are refused; then
every fault is named and nothing is stored. The original bytes are kept. People judge a copy in
8-bit sRGB without metadata. A second run of the same import changes nothing.
"""


class Command(BaseCommand):
    """`manage.py import_images DIR [--manifest FILE]`."""

    help = _MANUAL

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """The folder and its manifest."""
        parser.formatter_class = argparse.RawDescriptionHelpFormatter
        parser.add_argument("folder", metavar="DIR", type=Path, help="folder with the images")
        parser.add_argument("--manifest", metavar="FILE", type=Path, help="what each file shows")

    def handle(self, *, folder: Path, manifest: Path | None, **_options: Any) -> None:
        """Check all, store all, say what was done."""
        started = time.monotonic()
        if not folder.is_dir():
            raise CommandError(f"{folder} is not a folder.")
        if manifest is not None and not manifest.is_file():
            raise CommandError(f"The manifest {manifest} is not there.")
        try:
            rows = read_manifest(manifest) if manifest else name_rows(folder)
            report = import_images(
                folder=folder,
                rows=rows,
                watch=lambda items, label, total: progress(items, label=label, total=total),
            )
        except ManifestError as error:
            raise CommandError(f"{error}\nNothing was stored.") from error
        self._say(report, time.monotonic() - started)

    def _say(self, report: ImportReport, seconds: float) -> None:
        for sha, names in sorted(report.same_image.items()):
            self.stderr.write(f"The same image ({sha[:12]}…) stands under: {', '.join(names)}")
        if report.new_generators:
            self.stdout.write(f"New generators: {', '.join(report.new_generators)}")
        self.stdout.write(
            f"Stored {report.created:,} images, {report.unchanged:,} were there already "
            f"({seconds:.1f} s)."
        )
