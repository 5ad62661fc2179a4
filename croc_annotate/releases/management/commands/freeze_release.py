"""``manage.py freeze_release``: fix who is verified, and on which judgements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.core.management.base import CommandError

from croc_annotate.agreement.arguments import campaign_named
from croc_annotate.releases.management.common import ReleaseCommand, Watch
from croc_annotate.releases.reasons import REASONS
from croc_annotate.releases.services import ReleaseRefusedError, freeze_release, next_version

if TYPE_CHECKING:
    from argparse import ArgumentParser


class Command(ReleaseCommand):
    """Thin: finds the campaign, calls the service, prints the counts."""

    help = "Freeze the verified images of a campaign as a release that never changes."
    manual = """
A release fixes the images whose text people accepted under a rule, the counts of all candidates by
reason (they add up), the agreement, and a copy of every counted judgement under pseudonyms. The
campaign may go on; the release stays as it is. To correct one, freeze the next version.

rules
  majority    more accepts than rejects, from at least --min-judgements votes
  unanimous   all votes accept, from at least --min-judgements votes
  posterior   Dawid–Skene probability of a match at least --threshold; needs three judgements an item
Decisions of reviewers override each rule. --exclusive also wants the pair's other text rejected
for the image (a campaign with cross_rate 1 asks for that).

examples
  manage.py freeze_release croc-hum
  manage.py freeze_release pilot --campaign imported --rule unanimous --min-judgements 2
"""

    def add_arguments(self, parser: ArgumentParser) -> None:
        """The command line of docs/export-format.md."""
        parser.add_argument("name", help="letters, digits, . _ -")
        # `--version` is Django's own option (it prints Django's version), hence the longer name.
        parser.add_argument(
            "--release-version", default="", metavar="X.Y.Z",
            help="default: 1.0.0, or the next minor version of this name",
        )  # fmt: skip
        parser.add_argument("--campaign", default="", help="slug; default: the only one")
        parser.add_argument("--rule", choices=["majority", "unanimous", "posterior"],
                            help="default: the campaign's rule")  # fmt: skip
        parser.add_argument("--min-judgements", type=int, metavar="N",
                            help="votes an item needs; default: what the campaign asks for")  # fmt: skip
        parser.add_argument("--threshold", type=float, metavar="P",
                            help="of the posterior rule; default: the campaign's (0.95)")  # fmt: skip
        parser.add_argument("--exclusive", action="store_true",
                            help="only images whose other text is rejected")  # fmt: skip
        parser.add_argument("--notes", default="", help="a text for the page and the card")
        parser.add_argument("--public", action="store_true", help="show its page to everybody")
        self.add_json(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        """Freeze and report."""
        self.as_json = options["json"]
        watch = Watch()
        campaign = campaign_named(options["campaign"])
        name = options["name"]
        try:
            release = freeze_release(
                name=name,
                version=options["release_version"] or next_version(name),
                campaign=campaign,
                rule=options["rule"],
                min_judgements=options["min_judgements"],
                threshold=options["threshold"],
                exclusive=options["exclusive"],
                notes=options["notes"],
                public=options["public"],
            )
        except ReleaseRefusedError as error:
            raise CommandError(str(error)) from error
        for reason in REASONS:
            self.say(f"{release.counts[reason]:>9,}  {reason}")
        self.say(f"{sum(release.counts.values()):>9,}  candidates in all")
        self.answer(
            {
                "release": {"name": release.name, "version": release.version,
                            "sha256": release.sha256},
                "campaign": campaign.slug, "rule": release.rule, "parameters": release.parameters,
                "counts": release.counts, "candidates": sum(release.counts.values()),
                "pairs": release.manifest["pairs"], "judgements": release.manifest["annotations"],
                "seconds": watch.seconds,
            },
            f"Froze {release}: {release.n_verified:,} verified images of"
            f" {release.manifest['pairs']:,} pairs, {release.manifest['annotations']:,} judgements,"
            f" in {watch}.",
        )  # fmt: skip
