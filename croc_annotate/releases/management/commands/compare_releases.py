"""``manage.py compare_releases``: what came in, what went out, what changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from croc_annotate.releases.comparing import compare_releases
from croc_annotate.releases.management.common import ReleaseCommand, release_or_error

if TYPE_CHECKING:
    from argparse import ArgumentParser


class Command(ReleaseCommand):
    """Thin: finds both, prints the comparison."""

    help = "Compare two releases: images added, removed, and candidates whose verdict changed."
    manual = """
example
  manage.py compare_releases croc-hum@1.0.0 croc-hum@1.1.0
"""

    def add_arguments(self, parser: ArgumentParser) -> None:
        """From which to which."""
        parser.add_argument("first", metavar="NAME[@VERSION]")
        parser.add_argument("second", metavar="NAME[@VERSION]")
        self.add_json(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        """Compare and report."""
        self.as_json = options["json"]
        first, second = (release_or_error(options[name]) for name in ("first", "second"))
        found = compare_releases(first, second)
        for move in found.moves:
            self.say(f"{move.n:>9,}  {move.before} → {move.after}")
        self.answer(
            {
                "first": str(first), "second": str(second), "added": len(found.added),
                "removed": len(found.removed), "kept": found.kept,
                "moves": [
                    {"before": move.before, "after": move.after, "n": move.n}
                    for move in found.moves
                ],
            },
            f"{first} → {second}: {len(found.added):,} images came in, {len(found.removed):,} went out,"
            f" {found.kept:,} are in both.",
        )  # fmt: skip
