"""The hash over a release's content, equal on every database, and the check against it."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from croc_annotate.lib.hashing import canonical_json
from croc_annotate.releases.models import ReleasePair
from croc_annotate.releases.selectors import CHUNK, generator_records, release_facts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from croc_annotate.releases.models import Release


class BrokenSealError(RuntimeError):
    """The rows of a release are not those that were frozen."""


def content_sha256(release: Release) -> str:
    """SHA-256 over everything that the release fixes; no database key and no clock enters."""
    digest = hashlib.sha256()
    for row in _content(release):
        digest.update(canonical_json(row).encode("utf-8"))
        digest.update(b"\n")
    return digest.hexdigest()


def check_seal(release: Release) -> None:
    """Raise BrokenSealError when a text, an image or a number differs from what was frozen."""
    if not release.sealed:
        raise BrokenSealError(f"release {release} is not frozen")
    if content_sha256(release) != release.sha256:
        raise BrokenSealError(
            f"release {release}: its content in the database is not what was frozen"
            f" (a text, an image or a generator was changed); nothing was written"
        )


def _content(release: Release) -> Iterator[Any]:
    facts = release_facts(release)
    yield [
        "croc-annotate release 1", facts.name, facts.version, facts.created, facts.origin,
        facts.rule, facts.parameters, facts.notes, facts.counts, facts.agreement,
        release.generators, release.manifest, facts.simulated,
    ]  # fmt: skip
    yield from _pairs(release)
    yield from _members(release)
    yield from _annotations(release)


def _pairs(release: Release) -> Iterator[Any]:
    names = ("slug", "version", "category_id", "prompt", "contrast", "alt_contrast", "property",
             "topic", "entity")  # fmt: skip
    rows = ReleasePair.objects.filter(release=release).order_by("position")
    for row in rows.values_list(*(f"pair__{name}" for name in names)).iterator(chunk_size=CHUNK):
        yield ["pair", *row]


def _members(release: Release) -> Iterator[Any]:
    rows = release.members.order_by("position").values_list(
        "candidate__pair__slug", "candidate__pair__version", "candidate__side",
        "candidate__generator__slug", "candidate__seed", "reason", "verified_by", "n_accept",
        "n_reject", "n_unsure", "posterior", "candidate__sha256", "candidate__width",
        "candidate__height",
    )  # fmt: skip
    for row in rows.iterator(chunk_size=CHUNK):
        if row[5] == "verified":
            yield ["image", *row]
        else:
            # A candidate that was not rendered yet may be later; that is no change of the release.
            yield ["out", *row[:11]]


def _annotations(release: Release) -> Iterator[Any]:
    known = set(generator_records(release))
    rows = release.annotations.order_by("position").values_list(
        "candidate__pair__slug", "candidate__pair__version", "candidate__side",
        "candidate__generator__slug", "candidate__seed", "text_role", "annotator", "verdict",
        "mode", "guideline_version", "active_ms", "at",
    )  # fmt: skip
    for row in rows.iterator(chunk_size=CHUNK):
        if row[3] not in known:
            raise BrokenSealError(
                f"a judgement names the generator {row[3]!r}, which is not listed"
            )
        yield ["judgement", *row[:11], row[11].strftime("%Y-%m-%dT%H:%M:%S.%fZ")]
