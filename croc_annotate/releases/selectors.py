"""Reading releases: the images that are scored, the rows of an export, the one that is meant."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from django.db.models import F

from croc_annotate.prompts.rules import CATEGORIES
from croc_annotate.releases.models import (
    PUBLISHED,
    MemberReason,
    Release,
    ReleaseMember,
    ReleasePair,
)
from croc_annotate.releases.reasons import REASONS
from croc_annotate.releases.records import (
    AnnotationRecord,
    GeneratorRecord,
    ImageRecord,
    PairRecord,
    ReleaseFacts,
    ScoredMember,
    evaluated_side,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from croc_annotate.releases.models import ReleaseQuerySet

CHUNK = 2_000


class ReleaseNotFoundError(LookupError):
    """No release answers to the name; the message says what there is."""


def newest_release(*, among: ReleaseQuerySet | None = None) -> Release:
    """The newest release that is not withdrawn; raises ReleaseNotFoundError."""
    releases = Release.objects.all() if among is None else among
    release = releases.frozen().newest_first().first()
    if release is None:
        raise ReleaseNotFoundError(
            "there is no release; make one with freeze_release, or bring one with import_crochum"
        )
    return release


def find_release(name: str = "", *, version: str = "") -> Release:
    """The release called ``name``, or ``name@version``; "" is the newest.

    Of several versions the newest that is not withdrawn is meant, a withdrawn one only if it
    is named in full. Raises ReleaseNotFoundError.
    """
    if not name:
        return newest_release()
    base, at, given = name.partition("@")
    version = version or (given if at else "")
    found = Release.objects.filter(name=base)
    if version:
        release = found.filter(version=version).first()
    else:
        release = found.frozen().newest_first().first() or found.newest_first().first()
    if release is None:
        known = ", ".join(str(item) for item in Release.objects.newest_first()[:10]) or "none"
        raise ReleaseNotFoundError(f"no release “{name}”; there are: {known}")
    return release


def scored_members(release: Release) -> list[ScoredMember]:
    """The verified images of P and Q of every pair, in the order of the files."""
    rows = (
        verified(release)
        .values_list(
            "candidate__pair__slug", "candidate__pair__category_id", "candidate__side",
            "candidate__pair__prompt", "candidate__pair__contrast", "candidate_id",
            "candidate__sha256", "candidate__image", "candidate__generator__slug",
            "candidate__seed",
        )
        .iterator(chunk_size=CHUNK)
    )  # fmt: skip
    members = []
    for slug, category, side, prompt, contrast, *rest in rows:
        if side == "prompt":
            role = "prompt"
        elif side == evaluated_side(category):
            role = "contrast"
        else:
            continue
        members.append(ScoredMember(slug, category, side, role, prompt, contrast, *rest))
    return members


def verified(release: Release) -> Any:
    """The members that are in the release, in the order of the files."""
    return ReleaseMember.objects.filter(release=release, reason=MemberReason.VERIFIED).order_by(
        "position"
    )


def release_pairs(release: Release) -> list[PairRecord]:
    """Every pair of the release, also those without images, in the order of the files."""
    rows = ReleasePair.objects.filter(release=release).order_by("position")
    return [PairRecord(*row) for row in rows.values_list(*_pair_fields("pair__"))]


def image_records(release: Release) -> Iterator[ImageRecord]:
    """The verified images, streamed in the order of the files (whole pairs together)."""
    generators = generator_records(release)
    campaign = str(release.parameters.get("campaign", ""))
    guideline = str(release.parameters.get("guideline_version", ""))
    rows = verified(release).values_list(
        "candidate__side", "candidate__generator__slug", "candidate__seed", "candidate__image",
        "candidate__width", "candidate__height", "candidate__sha256", "candidate__source_name",
        "verified_by", "n_accept", "n_reject", "n_unsure", "posterior",
        *_pair_fields("candidate__pair__"),
    )  # fmt: skip
    published = release.origin == PUBLISHED
    pair: PairRecord | None = None
    for row in rows.iterator(chunk_size=CHUNK):
        side, generator, seed, name, width, height, sha256, source, *verdict = row[:13]
        if pair is None or (pair.slug, pair.version) != row[13:15]:
            pair = PairRecord(*row[13:])
        # A published file keeps its ending, whatever codec is in it.
        ending = PurePosixPath(source if published and source else name).suffix
        by, accept, reject, unsure, posterior = verdict
        yield ImageRecord(
            pair=pair, side=side, generator=generators[generator], seed=seed, storage_name=name,
            suffix=ending.lower(), width=width, height=height, sha256=sha256,
            verified_by=by, n_accept=accept, n_reject=reject, n_unsure=unsure,
            posterior=posterior, campaign=campaign, guideline_version=guideline,
        )  # fmt: skip


def annotation_records(release: Release) -> Iterator[AnnotationRecord]:
    """The frozen judgements, streamed in their frozen order."""
    generators = generator_records(release)
    rows = release.annotations.order_by("position").values_list(
        "candidate__pair__slug", "candidate__pair__category_id", "candidate__side",
        "candidate__generator__slug", "candidate__seed", "text_role", "annotator", "verdict",
        "active_ms", "at", "mode", "guideline_version",
    )  # fmt: skip
    for (
        slug,
        category,
        side,
        generator,
        seed,
        role,
        who,
        verdict,
        ms,
        at,
        mode,
        guide,
    ) in rows.iterator(chunk_size=CHUNK):
        field = generators[generator].field
        yield AnnotationRecord(
            item=f"{slug}___{side}___{field}___image{seed}",
            pair_id=slug, category=category, side=side, generator=generator, seed=seed,
            text_role=role, annotator=who, verdict=verdict,
            active_seconds=None if ms is None else ms / 1000,
            judged_at=_microseconds(at), mode=mode, guideline_version=guide,
        )  # fmt: skip


def generator_records(release: Release) -> dict[str, GeneratorRecord]:
    """The generators as they were when the release was frozen, by slug."""
    return {slug: GeneratorRecord(slug=slug, **facts) for slug, facts in release.generators.items()}


def release_facts(release: Release) -> ReleaseFacts:
    """The release's own row as the writers need it."""
    return ReleaseFacts(
        name=release.name, version=release.version,
        created=release.created_at.strftime("%Y-%m-%dT%H:%M:%SZ"), origin=release.origin,
        rule=release.rule, parameters=release.parameters, notes=release.notes,
        counts=in_order(release.counts, REASONS), agreement=release.agreement,
        generators=generator_records(release), sha256=release.sha256,
        simulated=release.is_simulated, withdrawn=release.withdrawn_note,
        by_category={
            slug: in_order(counts, REASONS)
            for slug, counts in in_order(release.manifest.get("by_category", {}), CATEGORIES).items()
        },
    )  # fmt: skip


def in_order(values: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """A mapping in the order of ``names``: a database's JSON keeps an order of its own."""
    known = {name: values[name] for name in names if name in values}
    return known | {name: values[name] for name in sorted(values) if name not in known}


def latest_exports(release: Release, limit: int = 10) -> Any:
    """The newest background exports of a release."""
    return release.exports.order_by("-id")[:limit]


def _pair_fields(prefix: str) -> list[Any]:
    names = (
        "slug", "version", "category_id", "prompt", "contrast", "alt_contrast", "property",
        "topic", "entity",
    )  # fmt: skip
    return [F(f"{prefix}{name}") for name in names]


def _microseconds(at: Any) -> int:
    """Exact, where ``timestamp()`` goes through a float."""
    delta = at - datetime(1970, 1, 1, tzinfo=UTC)
    return int((delta.days * 86_400 + delta.seconds) * 1_000_000 + delta.microseconds)
