"""``manage.py export_crochum``: a release as files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.core.management.base import CommandError

from croc_annotate.lib.atomic import TargetExistsError
from croc_annotate.releases.export.destination import (
    DestinationError,
    Watcher,
    export_to_s3,
    is_s3,
)
from croc_annotate.releases.export.options import (
    IMAGE_FORMATS,
    METADATA_FORMATS,
    BadOptionsError,
    ExportOptions,
    parse_split,
)
from croc_annotate.releases.export.payloads import ChangedImageError
from croc_annotate.releases.export.run import ExportRefusedError, export_to_folder, plan_export
from croc_annotate.releases.export.workdir import BusyError
from croc_annotate.releases.formats import FORMATS
from croc_annotate.releases.management.common import ReleaseCommand, Watch, bar, release_or_error
from croc_annotate.releases.sealing import BrokenSealError

if TYPE_CHECKING:
    from argparse import ArgumentParser

    from tqdm import tqdm

    from croc_annotate.releases.export.run import Plan
    from croc_annotate.releases.models import Release

REFUSALS = (
    ExportRefusedError, BadOptionsError, TargetExistsError, BusyError, ChangedImageError,
    BrokenSealError, DestinationError,
)  # fmt: skip


class Command(ReleaseCommand):
    """Thin: checks the wishes, calls the export, prints what was written."""

    # The checks would load every page of the site, which costs more memory than the export.
    requires_system_checks: list[str] = []
    help = "Export a frozen release in one or several formats, to a folder or to S3."
    manual = (
        "\nEach format goes to OUT/<format>/; beside them stand annotations.parquet, agreement.json,\n"
        "manifest.json (SHA-256 of every file), croissant.json, README.md (the card) and CITATION.cff.\n\n"
        "formats\n"
        + "".join(f"  {name:12} {item.summary}\n" for name, item in FORMATS.items())
        + """
The same release and options give the same bytes, on any day, database and number of threads. OUT
appears complete or not at all; an export that was killed goes on where it stopped when the same
command is given again. OUT may be s3://bucket/prefix (keys and endpoint from the AWS_* variables).
Images are the original files unless --image-format or --max-side asks for others; the manifest then
has the hash of both.

examples
  manage.py export_crochum --release croc-hum --out /data/croc-hum --dry-run
  manage.py export_crochum --release croc-hum --out /data/croc-hum --format crochum --format parquet
  manage.py export_crochum --out /data/small --format imagefolder --image-format webp --max-side 512
  manage.py export_crochum --out s3://bucket/croc-hum --format webdataset --split dev=0.2
"""
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """The command line of docs/export-format.md."""
        parser.add_argument("--release", default="", metavar="NAME[@VERSION]",
                            help="default: the newest")  # fmt: skip
        parser.add_argument("--out", metavar="DIR", help="folder, or s3://bucket/prefix")
        parser.add_argument("--format", dest="formats", action="append", choices=list(FORMATS),
                            help="may be repeated; default: crochum")  # fmt: skip
        parser.add_argument("--dry-run", action="store_true", help="print the counts only")
        parser.add_argument("--force", action="store_true", help="replace what stands at OUT")
        parser.add_argument("--image-format", default="original", choices=IMAGE_FORMATS)
        parser.add_argument("--max-side", type=int, metavar="PIXELS")
        parser.add_argument("--quality", type=int, default=90, help="of jpeg and webp, 1 to 100")
        parser.add_argument("--split", action="append", default=[], metavar="NAME=SHARE",
                            help="split by pair, e.g. dev=0.2; the rest is “test”")  # fmt: skip
        parser.add_argument("--split-seed", type=int, default=1, metavar="N")
        parser.add_argument("--metadata", default="parquet", choices=METADATA_FORMATS,
                            help="of imagefolder")  # fmt: skip
        parser.add_argument(
            "--tar", action="store_true", help="crochum: also as one crochum.tar.gz"
        )
        parser.add_argument("--workers", type=int, metavar="N", help="threads; default: processors")
        self.add_json(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        """Export and report."""
        self.as_json = options["json"]
        release = release_or_error(options["release"])
        try:
            wishes = _wishes(options)
            plan = plan_export(release, wishes)
            self._warn(plan)
            if options["dry_run"]:
                self._report(release, plan, "Would write", "", None)
                return
            self._export(release, wishes, plan, options)
        except BadOptionsError as error:
            raise CommandError(str(error), returncode=2) from error
        except REFUSALS as error:
            raise CommandError(_reason(error)) from error
        except OSError as error:
            raise CommandError(
                f"{error}; the old state of {options['out']} is untouched"
            ) from error

    def _export(
        self, release: Release, wishes: ExportOptions, plan: Plan, options: dict[str, Any]
    ) -> None:
        out = options["out"]
        if not out:
            raise CommandError(
                "say where to: --out DIR (or --dry-run for the counts only)", returncode=2
            )
        watch = Watch()
        with bar(plan.steps, "exporting") as shown:
            kwargs: dict[str, Any] = {
                "release": release, "options": wishes, "force": options["force"],
                "workers": options["workers"], "tick": shown.update,
            }  # fmt: skip
            if is_s3(out):
                export_to_s3(address=out, watch=_Bar(shown), **kwargs)
            else:
                export_to_folder(target=Path(out), **kwargs)
        self._report(release, plan, "Wrote", out, watch)

    def _warn(self, plan: Plan) -> None:
        for warning in plan.warnings:
            self.stderr.write(self.style.WARNING(f"Warning: {warning}"))

    def _report(
        self, release: Release, plan: Plan, verb: str, out: str, watch: Watch | None
    ) -> None:
        for reason, number in plan.counts.items():
            self.say(f"{number:>9,}  {reason}")
        place = f" to {out}" if out else ""
        seconds = f" in {watch}" if watch else " (dry run: nothing was written)"
        self.answer(
            {
                "release": {"name": release.name, "version": release.version,
                            "sha256": release.sha256},
                "counts": plan.counts, "candidates": sum(plan.counts.values()),
                "images": plan.images, "pairs": plan.pairs, "formats": list(plan.formats),
                "warnings": plan.warnings, "out": out or None,
                "seconds": watch.seconds if watch else None,
            },
            f"{verb} {release} as {', '.join(plan.formats)}{place}:"
            f" {plan.images:,} images of {plan.pairs:,} pairs{seconds}.",
        )  # fmt: skip


class _Bar(Watcher):
    """Shows on the export's bar, once the files are made, what happens in the bucket."""

    def __init__(self, shown: tqdm[Any]) -> None:
        self._shown = shown

    def begin(self, what: str, total: int, unit: str) -> None:
        """The bar starts anew under another name."""
        self._shown.unit = unit
        self._shown.unit_scale = unit == "B"
        self._shown.set_description(what, refresh=False)
        self._shown.reset(total)

    def done(self, count: int) -> None:
        """It moves on."""
        self._shown.update(count)


def _wishes(options: dict[str, Any]) -> ExportOptions:
    return ExportOptions(
        formats=tuple(dict.fromkeys(options["formats"] or ["crochum"])),
        image_format=options["image_format"],
        max_side=options["max_side"],
        quality=options["quality"],
        split=parse_split(options["split"]),
        split_seed=options["split_seed"],
        metadata=options["metadata"],
        tar=options["tar"],
    )


def _reason(error: Exception) -> str:
    if isinstance(error, TargetExistsError):
        return f"{error.filename} {error.strerror}"
    return str(error)
