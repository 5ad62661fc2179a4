"""``manage.py verify_release``: is an exported folder what its manifest says?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.core.management.base import CommandError

from croc_annotate.releases.management.common import ReleaseCommand, Watch, bar
from croc_annotate.releases.verifying import NotAnExportError, read_manifest, verify_export

if TYPE_CHECKING:
    from argparse import ArgumentParser


class Command(ReleaseCommand):
    """Thin: calls the checks, prints the report."""

    help = "Check an exported release against its manifest; needs no database content."
    requires_system_checks: list[str] = []
    manual = """
Looks at every file that the manifest lists (size, SHA-256), at files that it does not list, at the
counts, decodes every image, compares the texts between the formats, and validates croissant.json
where mlcroissant is installed. Exit code 0 when all is well, 1 when anything is not.

examples
  manage.py verify_release /data/croc-hum
  manage.py verify_release /data/croc-hum --no-decode --json
"""

    def add_arguments(self, parser: ArgumentParser) -> None:
        """The command line of docs/export-format.md."""
        parser.add_argument("folder", metavar="DIR")
        parser.add_argument("--no-decode", action="store_true", help="do not decode the images")
        self.add_json(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        """Check and report."""
        self.as_json = options["json"]
        watch = Watch()
        folder = Path(options["folder"])
        try:
            manifest = read_manifest(folder)
            with bar(len(manifest["files"]), "verifying") as shown:
                checks = verify_export(folder, decode=not options["no_decode"], tick=shown.update)
        except NotAnExportError as error:
            raise CommandError(str(error)) from error
        for check in checks:
            mark = "–" if check.note else ("✓" if check.ok else "✕")
            self.say(f"{mark} {check.name} ({check.note or f'{check.looked_at:,} looked at'})")
            for fault in check.faults:
                self.say(f"    {fault}")
            if check.n_faults > len(check.faults):
                self.say(f"    … and {check.n_faults - len(check.faults):,} more")
        bad = [check for check in checks if not check.ok]
        release = manifest.get("release", {})
        name = f"{release.get('name', '?')} {release.get('version', '?')}"
        summary = (
            f"{name}: {sum(check.n_faults for check in bad):,} faults in {len(bad)} checks"
            if bad
            else f"{name}: all {len(checks)} checks passed, {len(manifest['files']):,} files"
        )
        self.answer(
            {"ok": not bad, "release": release, "files": len(manifest["files"]),
             "checks": [check.as_dict() for check in checks], "seconds": watch.seconds},
            f"{summary} in {watch}.",
        )  # fmt: skip
        if bad:
            raise CommandError(f"{folder} is not what its manifest says ({len(bad)} checks failed)")
