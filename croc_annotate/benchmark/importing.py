"""Scores computed elsewhere: from tables by file name to scores by image hash."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from django.db import transaction

from croc_annotate.benchmark.metric import MetricFacts
from croc_annotate.benchmark.models import MetricRun, RunState
from croc_annotate.benchmark.selectors import release_images
from croc_annotate.benchmark.services import (
    ScoreRow,
    close_run,
    open_run,
    register_metric,
    store_scores,
)
from croc_annotate.benchmark.table_errors import ScoreTableError
from croc_annotate.benchmark.table_files import SIDES
from croc_annotate.candidates.models import Candidate
from croc_annotate.lib.hashing import canonical_json, sha256_text
from croc_annotate.releases.published import from_published, image_stem
from croc_annotate.releases.selectors import generator_records

if TYPE_CHECKING:
    from collections.abc import Mapping

    from croc_annotate.benchmark.score_tables import ScoreTables
    from croc_annotate.benchmark.selectors import ReleaseImages
    from croc_annotate.benchmark.table_files import SideName
    from croc_annotate.releases.models import Release
    from croc_annotate.releases.records import ScoredMember

IMPORTED = "imported"


class ScoreImportError(ValueError):
    """The tables do not fit the release; nothing was changed."""


ImageText = tuple[str, str]
"""(SHA-256 of the image, SHA-256 of the text)."""


@dataclass(frozen=True)
class Imported:
    """What an import did."""

    runs: list[MetricRun]
    unchanged: list[str]
    images_without_scores: int


def scores_of_tables(
    tables: ScoreTables, *, release: Release, allow_unknown: bool = False
) -> tuple[dict[str, dict[ImageText, float]], int]:
    """Each metric's scores by image and text, and the number of rows about unknown images.

    Raises ScoreImportError: rows about images that the release does not score (unless
    allowed), texts that are not the release's.
    """
    images = release_images(release)
    _check_texts(tables, images)
    matched, unknown = _match_rows(tables, images, release, allow_unknown=allow_unknown)
    return {metric: _score_rows(tables, metric, matched) for metric in tables.metrics}, unknown


@transaction.atomic
def import_scores(
    *,
    release: Release,
    scores: Mapping[str, Mapping[ImageText, float]],
    replace: bool = False,
) -> Imported:
    """Store each metric's scores as a run on the release.

    Raises ScoreImportError, and changes nothing then, when a metric was imported before with
    other scores (unless `replace`).
    """
    images = release_images(release)
    seen = {image for own in scores.values() for image, _ in own}
    runs, unchanged = [], []
    for metric, own in scores.items():
        run, is_new = _store(release, images, metric, own, replace=replace)
        runs.append(run)
        if not is_new:
            unchanged.append(metric)
    return Imported(runs, unchanged, sum(m.sha256 not in seen for m in images.members))


def path_key(path: str) -> tuple[str, ...]:
    """The last three components in this project's spelling, without the file's ending."""
    parts = PurePosixPath(path.replace("\\", "/")).parts[-3:]
    stem = PurePosixPath(parts[-1]).stem if parts else ""
    return (*(from_published(part) for part in parts[:-1]), from_published(stem))


def _check_texts(tables: ScoreTables, images: ReleaseImages) -> None:
    known = dict(zip(images.layout.pair_ids, images.layout.texts, strict=True))
    for pair_id, texts in zip(tables.pair_ids, tables.texts, strict=True):
        if pair_id in known and known[pair_id] != texts:
            raise ScoreImportError(
                f"pair {pair_id}: the tables' texts {texts!r} are not the release's "
                f"{known[pair_id]!r}; these scores belong to other texts."
            )


def _match_rows(
    tables: ScoreTables, images: ReleaseImages, release: Release, *, allow_unknown: bool
) -> tuple[dict[SideName, list[ScoredMember | None]], int]:
    """The release's image of each row; raises when one is unknown and that is not allowed."""
    names = _names_of(images, release)
    matched: dict[SideName, list[ScoredMember | None]] = {}
    unknown: list[str] = []
    for side in SIDES:
        rows: list[ScoredMember | None] = []
        table = tables.sides[side]
        for path, pair in zip(table.paths.to_pylist(), table.pair.tolist(), strict=True):
            pair_id = tables.pair_ids[pair]
            member = _find(names, side, pair_id, path)
            rows.append(member)
            if member is None:
                unknown.append(f"{path} ({pair_id})")
        matched[side] = rows
    if unknown and not allow_unknown:
        raise ScoreImportError(
            f"{len(unknown):,} rows are about images that the release “{release}” does not score; "
            f"the first: {unknown[0]}. Nothing was stored. "
            "Name another release, or leave such rows out with --ignore-unknown."
        )
    return matched, len(unknown)


def _find(
    names: Mapping[tuple[str, ...], ScoredMember], side: SideName, pair_id: str, path: str
) -> ScoredMember | None:
    """By last three components; the file says the role, whatever side the name claims.

    In the table of negation `contrast_paths` may hold the evaluated images under either name.
    """
    key = path_key(path or "")
    if not key:
        return None
    alternatives = [key]
    if side == "contrast":
        swap = {"contrast": "alt_contrast", "alt_contrast": "contrast"}
        folder = [swap.get(part, part) for part in key[:-1]]
        stem = "___".join(swap.get(part, part) for part in key[-1].split("___"))
        alternatives.append((*folder, stem))
    for alternative in alternatives:
        member = names.get((side, pair_id, *alternative)) or names.get(
            (side, pair_id, alternative[-1])
        )
        if member is not None:
            return member
    return None


def _names_of(images: ReleaseImages, release: Release) -> dict[tuple[str, ...], ScoredMember]:
    """Every name under which tables may speak of an image, by role and pair."""
    fields = {slug: record.field for slug, record in generator_records(release).items()}
    sources = dict(
        Candidate.objects.filter(memberships__release=release)
        .exclude(source_name="")
        .values_list("id", "source_name")
    )
    names: dict[tuple[str, ...], ScoredMember] = {}
    for member in images.members:
        stem = image_stem(
            pair_id=member.pair_slug,
            side=member.side,
            generator=fields.get(member.generator, member.generator),
            number=member.seed,
        )
        names[member.role, member.pair_slug, stem] = member
        if member.candidate_id in sources:
            key = path_key(sources[member.candidate_id])
            names[(member.role, member.pair_slug, *key)] = member
            names.setdefault((member.role, member.pair_slug, key[-1]), member)
    return names


def _score_rows(
    tables: ScoreTables, metric: str, matched: Mapping[SideName, list[ScoredMember | None]]
) -> dict[tuple[str, str], float]:
    """(image hash, text hash) → score; raises when one image has two different scores."""
    found: dict[tuple[str, str], float] = {}
    hashes: dict[str, str] = {}
    for side in SIDES:
        own, other = tables.sides[side].columns[metric]
        for member, a, b in zip(matched[side], own.tolist(), other.tolist(), strict=True):
            if member is None:
                continue
            texts = (member.prompt, member.contrast)
            for text, value in zip(texts if side == "prompt" else texts[::-1], (a, b), strict=True):
                if math.isnan(value):
                    continue
                digest = hashes.setdefault(text, sha256_text(text))
                if found.setdefault((member.sha256, digest), value) != value:
                    raise ScoreTableError(
                        f"metric {metric}: two different scores of one image and text, "
                        f"pair {member.pair_slug}, image {member.sha256[:12]}."
                    )
    return found


def _store(
    release: Release,
    images: ReleaseImages,
    metric: str,
    scores: Mapping[tuple[str, str], float],
    *,
    replace: bool,
) -> tuple[MetricRun, bool]:
    digest = sha256_text(canonical_json(sorted([i, t, v] for (i, t), v in scores.items())))
    facts = MetricFacts(name=metric, label=metric, revision=digest, settings={"origin": IMPORTED})
    version = register_metric(facts)
    earlier = MetricRun.objects.on(release).filter(
        origin=IMPORTED, metric__name=metric, state=RunState.DONE
    )
    if earlier.filter(metric=version).exists():
        return earlier.get(metric=version), False
    if earlier.exists() and not replace:
        raise ScoreImportError(
            f"metric {metric} was imported for “{release}” before, with other scores. "
            "Nothing was stored. Use --replace to show the new ones instead."
        )
    earlier.update(state=RunState.REPLACED)
    run = open_run(release=release, metric=version, n_total=_wanted(images), origin=IMPORTED)
    store_scores(
        metric=version, rows=(ScoreRow(image, text, v) for (image, text), v in scores.items())
    )
    missing = run.n_total - len(scores)
    run = close_run(run=run, state=RunState.DONE, n_scores=len(scores), n_missing=max(missing, 0))
    return run, True


def _wanted(images: ReleaseImages) -> int:
    """Number of different (image, text) that the release asks for."""
    hashes = images.text_hashes
    layout = images.layout
    wanted: set[tuple[str, str]] = set()
    for members, pair in (
        (images.prompt, layout.prompt.pair),
        (images.contrast, layout.contrast.pair),
    ):
        for member, index in zip(members, pair.tolist(), strict=True):
            wanted |= {(member.sha256, digest) for digest in hashes[index]}
    return len(wanted)
