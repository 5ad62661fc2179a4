"""``manage.py export_tasks``: a campaign's work for another annotation tool."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.core.management.base import CommandError

from croc_annotate.agreement.arguments import campaign_named
from croc_annotate.lib.atomic import TargetExistsError
from croc_annotate.releases.handover.run import export_tasks
from croc_annotate.releases.handover.tools import TOOLS
from croc_annotate.releases.management.common import ReleaseCommand, Watch, bar

if TYPE_CHECKING:
    from argparse import ArgumentParser


class Command(ReleaseCommand):
    """Thin: finds the campaign, calls the service."""

    help = "Write the unfinished images of a campaign as tasks for Label Studio, Argilla or Potato."
    manual = """
The folder gets the task file, the tool's own configuration, and images/ with copies without
metadata. Images are named by opaque keys: the tool learns neither generator nor side. Bring the
answers back with import_answers.

  label-studio  tasks.json and labeling.xml; images through its local file storage
  argilla       tasks.jsonl (records) and settings.json
  potato        tasks.jsonl and config.yaml

example
  manage.py export_tasks --tool label-studio --campaign main --out /data/label-studio/main
"""

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Which work, for whom, where to."""
        parser.add_argument("--tool", required=True, choices=list(TOOLS))
        parser.add_argument("--campaign", default="", help="slug; default: the only one")
        parser.add_argument("--out", required=True, metavar="DIR", type=Path)
        parser.add_argument("--force", action="store_true", help="replace what stands at OUT")
        self.add_json(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        """Write and report."""
        self.as_json = options["json"]
        watch = Watch()
        campaign = campaign_named(options["campaign"])
        try:
            with bar(0, "writing tasks") as shown:
                count = export_tasks(
                    campaign=campaign, tool=options["tool"], target=options["out"],
                    force=options["force"], tick=shown.update,
                )  # fmt: skip
        except TargetExistsError as error:
            raise CommandError(f"{error.filename} {error.strerror}") from error
        self.answer(
            {"campaign": campaign.slug, "tool": options["tool"], "tasks": count,
             "out": str(options["out"]), "seconds": watch.seconds},
            f"Wrote {count:,} tasks of {campaign.slug} for {options['tool']} to {options['out']}"
            f" in {watch}.",
        )  # fmt: skip
