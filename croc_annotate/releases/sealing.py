"""The hash over a release's content, equal on every database, and the check against it."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from croc_annotate.lib.hashing import canonical_json
from croc_annotate.releases.bulk import UtcText
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
    for line in _annotations(release):
        digest.update(line)
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


def _annotations(release: Release) -> Iterator[bytes]:
    """The judgements, each with its image's name before it.

    Both tables are walked side by side in the order of the files, because a join would carry
    the same names along hundreds of thousands of times.
    """
    rows = release.annotations.order_by("position").values_list(
        "candidate_id", "text_role", "annotator", "verdict", "mode", "guideline_version",
        "active_ms", UtcText("at"),
    )  # fmt: skip
    images = _image_names(release, set(generator_records(release)))
    candidate, name = 0, ""
    words: dict[tuple[str, ...], str] = {}
    for row in rows.iterator(chunk_size=CHUNK):
        if row[0] != candidate:
            candidate, name = _next_image(images, row[0])
        cells = row[1:6]
        if cells not in words:
            words[cells] = canonical_json(cells)[1:-1]
        ms = "null" if row[6] is None else row[6]
        yield f'["judgement",{name},{words[cells]},{ms},"{row[7]}"]'.encode()


def _image_names(release: Release, known: set[str]) -> Iterator[tuple[int, str]]:
    """Each candidate with its name as JSON; its generator must be one that the release lists."""
    rows = release.members.order_by("position").values_list(
        "candidate_id", "candidate__pair__slug", "candidate__pair__version", "candidate__side",
        "candidate__generator__slug", "candidate__seed",
    )  # fmt: skip
    for key, *name in rows.iterator(chunk_size=CHUNK):
        if name[3] not in known:
            raise BrokenSealError(f"an image names the generator {name[3]!r}, which is not listed")
        yield key, canonical_json(name)[1:-1]


def _next_image(images: Iterator[tuple[int, str]], wanted: int) -> tuple[int, str]:
    for key, name in images:
        if key == wanted:
            return key, name
    raise BrokenSealError("a judgement stands outside the order of the images")
