"""An export from the frozen rows to a complete folder."""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.core.files.storage import default_storage

import croc_annotate
from croc_annotate.prompts.models import Category
from croc_annotate.releases.beside.annotations import pretty, write_annotations, write_splits
from croc_annotate.releases.beside.card import NAME as CARD
from croc_annotate.releases.beside.card import card
from croc_annotate.releases.beside.citation import citation_cff
from croc_annotate.releases.beside.croissant import NAME as CROISSANT
from croc_annotate.releases.beside.croissant import croissant
from croc_annotate.releases.beside.manifest import write_manifest
from croc_annotate.releases.export.options import BadOptionsError
from croc_annotate.releases.export.payloads import ImageLoader
from croc_annotate.releases.export.workdir import WorkFolder, work_folder
from croc_annotate.releases.formats import FORMATS
from croc_annotate.releases.formats.base import Job
from croc_annotate.releases.reasons import REASONS
from croc_annotate.releases.records import evaluated_side
from croc_annotate.releases.sealing import check_seal
from croc_annotate.releases.selectors import (
    annotation_records,
    image_records,
    in_order,
    release_facts,
    release_pairs,
    verified,
)
from croc_annotate.releases.splits import Splits, assign_splits

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from croc_annotate.releases.export.options import ExportOptions
    from croc_annotate.releases.models import Release

# Rows for training need something to stop by; a release itself is for testing.
SFT_SPLIT = {"train": 0.9}
SFT_REMAINDER = "dev"
_FULL = (errno.ENOSPC, errno.EDQUOT)


class ExportRefusedError(RuntimeError):
    """The export cannot be made; nothing was changed. The message says why and what helps."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What an export will hold."""

    counts: dict[str, int]
    images: int
    pairs: int
    formats: tuple[str, ...]
    steps: int
    warnings: list[str]


def plan_export(release: Release, options: ExportOptions) -> Plan:
    """Count what an export will hold, and what its readers may stumble over."""
    unknown = [name for name in options.formats if name not in FORMATS]
    if unknown:
        raise BadOptionsError(f"no format “{unknown[0]}”; there are {', '.join(FORMATS)}")
    images = release.n_verified
    return Plan(
        counts=in_order(release.counts, REASONS),
        images=images,
        pairs=release.pairs.count(),
        formats=options.formats,
        steps=images * len(options.formats),
        warnings=[*_empty_warnings(release, options), *_split_warnings(options)],
    )


def check_target(target: Path) -> None:
    """Refuse a place from which the published scripts could not read."""
    for part in target.absolute().parts:
        if part.endswith("images"):
            raise ExportRefusedError(
                f"“{part}” in the path ends in “images”: the published scripts cut “images/” out of"
                f" paths wherever it stands and would not find the files. Choose another --out."
            )


def export_to_folder(
    *,
    release: Release,
    target: Path,
    options: ExportOptions,
    force: bool = False,
    workers: int | None = None,
    tick: Callable[[], object] = lambda: None,
) -> Plan:
    """Write a release to ``target``, which appears complete or not at all.

    An export that was killed is continued by the same call. Raises ExportRefusedError,
    TargetExistsError, BusyError, ChangedImageError, BrokenSealError, OSError.
    """
    plan = plan_export(release, options)
    check_target(target)
    if release.is_withdrawn:
        raise ExportRefusedError(f"{release} was withdrawn: {release.withdrawn_note}")
    check_seal(release)
    digest = options.digest(release.sha256, croc_annotate.__version__)
    with work_folder(target, digest, force=force) as out:
        try:
            write_all(release, options, out, workers=workers, tick=tick)
            out.publish(target, force=force)
        except OSError as error:
            if error.errno in _FULL:
                out.discard()
                raise ExportRefusedError(
                    f"the disk is full: nothing was changed at {target}, what was half done is removed"
                ) from error
            raise
    return plan


def write_all(
    release: Release,
    options: ExportOptions,
    out: WorkFolder,
    *,
    workers: int | None,
    tick: Callable[[], object],
) -> None:
    """All formats, then what stands beside them, in one fixed order."""
    jobs = {
        name: make_job(release, options, name, workers=workers, tick=tick)
        for name in options.formats
    }
    for name, (job, _) in jobs.items():
        FORMATS[name].write(job, out)
    job, splits = next(iter(jobs.values()))
    write_annotations(job, out)
    if options.split:
        write_splits(job, out, dict(splits.component))
    out.put("CITATION.cff", citation_cff(job.facts).encode())
    splits_of = {name: made.splits for name, (made, _) in jobs.items()}
    out.put(CARD, card(job, splits_of).encode())
    out.put(CROISSANT, pretty(croissant(job, out.entries())))
    write_manifest(job, out)


def make_job(
    release: Release,
    options: ExportOptions,
    name: str,
    *,
    workers: int | None,
    tick: Callable[[], object],
) -> tuple[Job, Splits]:
    """A release as the format ``name`` sees it."""
    pairs = release_pairs(release)
    if options.split or name != "sft":
        splits = assign_splits(pairs, options.split, seed=options.split_seed)
    else:
        splits = assign_splits(pairs, SFT_SPLIT, seed=options.split_seed, remainder=SFT_REMAINDER)
    job = Job(
        facts=release_facts(release),
        pairs=pairs,
        images=lambda: image_records(release),
        annotations=lambda: annotation_records(release),
        loader=ImageLoader(read_original, options, workers=workers or default_workers()),
        options=options,
        split_of=splits.of.__getitem__,
        splits=splits.names,
        tick=tick,
    )
    return job, splits


def read_original(name: str) -> bytes:
    """The bytes of one original."""
    with default_storage.open(name) as file:
        data: bytes = file.read()
    return data


def default_workers() -> int:
    """As many as there are processors, a few at most: images wait in memory."""
    return min(8, len(os.sched_getaffinity(0)))


def _empty_warnings(release: Release, options: ExportOptions) -> list[str]:
    if "crochum" not in options.formats:
        return []
    found = set(
        verified(release).values_list("candidate__pair__category_id", "candidate__side").distinct()
    )
    lacking = [
        slug
        for slug in Category.objects.order_by("position").values_list("slug", flat=True)
        if (slug, "prompt") not in found or (slug, evaluated_side(slug)) not in found
    ]
    if not lacking:
        return []
    return [
        "no verified image on one or both evaluated sides of: " + ", ".join(lacking)
        + ". The published evaluation scripts stop at such a category; ours do not."
    ]  # fmt: skip


def _split_warnings(options: ExportOptions) -> list[str]:
    if "sft" in options.formats and not options.split and len(options.formats) > 1:
        return [
            "sft rows are of the whole release: do not score a metric tuned on them on this release"
            " (with --split dev=0.2 tune on dev and score on test)."
        ]
    return []
