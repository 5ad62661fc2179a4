"""What the release commands share: help as a manual, a bar, one JSON document."""

from __future__ import annotations

import json
import sys
import time
from typing import TYPE_CHECKING, Any

from django.core.management.base import BaseCommand, CommandError
from django.core.management.base import CommandParser as Parser
from tqdm import tqdm

from croc_annotate.releases.selectors import ReleaseNotFoundError, find_release

if TYPE_CHECKING:
    from argparse import ArgumentParser

    from croc_annotate.releases.models import Release


class ReleaseCommand(BaseCommand):
    """A command whose ``manual`` is shown as it is written, and that can answer in JSON."""

    manual = ""

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> Parser:
        """Keep the line breaks of the manual."""
        from argparse import RawDescriptionHelpFormatter

        class Raw(RawDescriptionHelpFormatter):
            pass

        parser = super().create_parser(prog_name, subcommand, **kwargs)
        parser.epilog = self.manual
        parser.formatter_class = Raw
        return parser

    def add_json(self, parser: ArgumentParser) -> None:
        """The option that all of them have."""
        parser.add_argument(
            "--json", action="store_true", help="print one JSON document and nothing else on stdout"
        )

    def say(self, text: str) -> None:
        """A line for people, on stderr where stdout belongs to JSON."""
        (self.stderr if self.as_json else self.stdout).write(text)

    as_json = False

    def answer(self, document: dict[str, Any], line: str) -> None:
        """The JSON document, or the last line for people."""
        if self.as_json:
            self.stdout.write(json.dumps(document, indent=1, ensure_ascii=False, sort_keys=True))
        else:
            self.stdout.write(line)


def release_or_error(name: str) -> Release:
    """The release that is meant, or a CommandError with what there is."""
    try:
        return find_release(name)
    except ReleaseNotFoundError as error:
        raise CommandError(str(error)) from error


def bar(total: int, label: str) -> tqdm[Any]:
    """A progress bar on a terminal, silence elsewhere."""
    return tqdm(
        total=total,
        desc=label,
        disable=not sys.stderr.isatty(),
        dynamic_ncols=True,
        mininterval=0.5,
    )


class Watch:
    """Seconds since it was made."""

    def __init__(self) -> None:
        self._start = time.monotonic()

    def __str__(self) -> str:
        return f"{time.monotonic() - self._start:.1f} s"

    @property
    def seconds(self) -> float:
        """As a number."""
        return round(time.monotonic() - self._start, 3)
