"""Bring contrast pairs into the database."""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from croc_annotate.prompts.bank import BUILTIN_BANK, BankError, builtin_files, parse_bank
from croc_annotate.prompts.services import LoadReport, load_pairs

if TYPE_CHECKING:
    from croc_annotate.prompts.rules import PairRow

_MANUAL = """
Load contrast pairs from FILE, or the bank of 400 pairs that comes with the project (--builtin).

FILE is, by its ending,
    .json           {"counting": {"7": {"prompt": "…", "contrast": "…", "alt_contrast": "…"}}}
                    (the pair's id is counting_7)
    .jsonl          one object a line: id, category, prompt, contrast, alt_contrast,
                    and optionally property, topic, entity
    .csv, .tsv      the same names as columns; further columns are ignored

Each pair is checked: a known category that the id begins with, two texts that differ in more than
case, spacing and punctuation, an id of its own, a positive rewording (alt_contrast) for negation,
no control characters, no word that tables read as a missing value, at most 1,000 characters. One
wrong pair stops the load: every fault is named with its place, and nothing changes.

Loading twice changes nothing. Where a known pair comes with other texts, it is edited; if images
were made from it, or it belongs to another bank, it gets a new version and the old one stays with
its images. Retired pairs stay retired.
"""


class Command(BaseCommand):
    """`manage.py load_prompts FILE`."""

    help = _MANUAL

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """The file or the built-in bank."""
        parser.formatter_class = argparse.RawDescriptionHelpFormatter
        source = parser.add_mutually_exclusive_group(required=True)
        source.add_argument("file", metavar="FILE", type=Path, nargs="?", help="a bank to load")
        source.add_argument(
            "--builtin", action="store_true", help="load the 400 pairs that come with the project"
        )
        parser.add_argument(
            "--bank", metavar="NAME", help="name of the bank (default: FILE's stem)"
        )
        parser.add_argument(
            "--dry-run", action="store_true", help="say what would change; change nothing"
        )
        parser.add_argument(
            "--json", action="store_true", help="print the report as one JSON document"
        )

    def handle(self, *, file: Path | None, **options: Any) -> None:
        """Read, check, load, say what was done."""
        started = time.monotonic()
        bank = options["bank"] or (file.stem if file else BUILTIN_BANK)
        rows = self._rows([file] if file else builtin_files())
        with transaction.atomic():
            report = load_pairs(rows=rows, bank=bank)
            if options["dry_run"]:
                transaction.set_rollback(True)
        if options["json"]:
            document = {"bank": bank, "pairs": report.total, **asdict(report)}
            self.stdout.write(json.dumps({**document, "dry_run": options["dry_run"]}))
        else:
            self._say(report, bank, time.monotonic() - started, dry_run=options["dry_run"])

    def _rows(self, files: list[Path]) -> list[PairRow]:
        try:
            return [row for file in files for row in parse_bank(file)]
        except BankError as error:
            raise CommandError(f"{error}\nNothing was loaded.") from error

    def _say(self, report: LoadReport, bank: str, seconds: float, *, dry_run: bool) -> None:
        counts = ", ".join(
            f"{number:,} {name}" for name, number in asdict(report).items() if number
        )
        verb = "Would load" if dry_run else "Loaded"
        self.stdout.write(f"{verb} {report.total:,} pairs of “{bank}”: {counts} ({seconds:.1f} s).")
