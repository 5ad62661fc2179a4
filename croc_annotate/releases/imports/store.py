"""A checked folder becomes pairs, candidates and a frozen release, or leaves no trace."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.db.models import Max

from croc_annotate.candidates.models import Candidate, CandidateState, Generator
from croc_annotate.candidates.services import signed
from croc_annotate.candidates.storage import delete_files, fresh_names, write_file
from croc_annotate.lib import imagefiles
from croc_annotate.prompts.models import ContrastPair
from croc_annotate.releases.export.payloads import ordered_map
from croc_annotate.releases.models import PUBLISHED, ReleaseMember, ReleasePair
from croc_annotate.releases.published import PublishedLayoutError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from datetime import datetime

    from croc_annotate.releases.imports.folder import FoundImage, FoundPair, PublishedFolder
    from croc_annotate.releases.models import Release

BATCH = 500


@dataclass(frozen=True, slots=True)
class Stored:
    """A file in the storage with what its row needs."""

    image: FoundImage
    original: str
    display: str
    preview: str
    facts: imagefiles.ImageFacts


class ImageStore:
    """Writes images in threads and remembers every name, so that all can be taken back."""

    def __init__(self, *, workers: int) -> None:
        self._workers = workers
        self._names: list[str] = []
        self._lock = threading.Lock()

    def each(self, images: Iterable[FoundImage]) -> Iterator[Stored]:
        """Store images, in order; raises PublishedLayoutError naming a file that is no image."""
        return ordered_map(self._store, images, workers=self._workers)

    def take_back(self) -> None:
        """Delete all that was written."""
        delete_files(self._names)

    def _store(self, image: FoundImage) -> Stored:
        data = image.file.read_bytes()
        try:
            derived = imagefiles.derive(data)
        except imagefiles.BadImageError as error:
            raise PublishedLayoutError(f"{image.name}: {error}") from error
        if derived.facts.sha256 != image.sha256:
            raise PublishedLayoutError(f"{image.name}: changed while it was read")
        names = fresh_names(imagefiles.SUFFIXES[derived.facts.format])
        parts = (
            (names.image, data), (names.display, derived.display), (names.preview, derived.preview),
        )  # fmt: skip
        for name, content in parts:
            with self._lock:
                self._names.append(name)
            write_file(name, content)
        return Stored(image, names.image, names.display, names.preview, derived.facts)


def store_folder(
    release: Release,
    folder: PublishedFolder,
    store: ImageStore,
    *,
    now: datetime,
    tick: Callable[[], object],
) -> None:
    """Fill ``release`` (not sealed yet), in the caller's transaction."""
    generators = _generators(folder)
    release.generators = _generator_facts(generators)
    release.save(force_insert=True)
    position = 0
    for number, found in enumerate(folder.pairs):
        pair, kept = _pair(found, generators, bank=f"published:{release.name}"[:80])
        ReleasePair.objects.create(release=release, pair=pair, position=number)
        missing = [image for image in found.images if _key(image) not in kept]
        kept |= _candidates(pair, store.each(missing), generators, now)
        position = _members(release, found, kept, position, tick)


Key = tuple[str, str, int]


def _key(image: FoundImage) -> Key:
    return (image.side, image.generator, image.number)


def _generators(folder: PublishedFolder) -> dict[str, Generator]:
    """The generator of each file-name field, made with what is known of it."""
    fields = {image.generator for pair in folder.pairs for image in pair.images}
    found = {}
    for field in sorted(fields):
        facts = folder.generators.get(field, {})
        slug = str(facts.get("slug") or field)[:80]
        found[field], _ = Generator.objects.get_or_create(
            slug=slug,
            defaults={
                "label": str(facts.get("label") or field)[:120],
                "model_id": str(facts.get("model_id") or "")[:200],
                "revision": str(facts.get("revision") or "")[:80],
                "licence": str(facts.get("licence") or "unknown")[:200],
                "is_drawn": bool(facts.get("drawn_by_a_program", False)),
                "active": False,
            },
        )
    return found


def _generator_facts(generators: dict[str, Generator]) -> dict[str, dict[str, Any]]:
    return {
        row.slug: {
            "label": row.label, "model_id": row.model_id, "revision": row.revision,
            "licence": row.licence, "field": field, "is_drawn": row.is_drawn,
        }
        for field, row in generators.items()
    }  # fmt: skip


def _pair(
    found: FoundPair, generators: dict[str, Generator], *, bank: str
) -> tuple[ContrastPair, dict[Key, int]]:
    """The pair, and its images that are here already.

    A pair with these texts is used again unless one of its images is another than the
    published one; else a version of its own is made, which is not in use: no campaign and
    no generator touches it.
    """
    same = ContrastPair.objects.filter(
        slug=found.pair_id, prompt=found.prompt, contrast=found.contrast
    )
    for pair in same.order_by("version"):
        kept = _kept(pair, found, generators)
        if kept is not None:
            return pair, kept
    newest = ContrastPair.objects.filter(slug=found.pair_id).aggregate(found=Max("version"))[
        "found"
    ]
    pair = ContrastPair.objects.create(
        slug=found.pair_id, version=(newest or 0) + 1, category_id=found.category,
        prompt=found.prompt, contrast=found.contrast, bank=bank, active=False,
        retired_reason="imported benchmark: not for generation",
    )  # fmt: skip
    return pair, {}


def _kept(
    pair: ContrastPair, found: FoundPair, generators: dict[str, Generator]
) -> dict[Key, int] | None:
    """The keys of the images that are here already; None where one differs."""
    fields = {generator.pk: field for field, generator in generators.items()}
    rows = Candidate.objects.filter(pair=pair, generator__in=fields).values_list(
        "side", "generator_id", "seed", "sha256", "state", "pk"
    )
    here = {(side, fields[gen], seed): (sha, state, pk) for side, gen, seed, sha, state, pk in rows}
    kept = {}
    for image in found.images:
        if _key(image) in here:
            sha256, state, pk = here[_key(image)]
            if state != CandidateState.RENDERED or sha256 != image.sha256:
                return None
            kept[_key(image)] = pk
    return kept


def _candidates(
    pair: ContrastPair,
    stored: Iterable[Stored],
    generators: dict[str, Generator],
    now: datetime,
) -> dict[Key, int]:
    rows = [
        Candidate(
            pair=pair, side=item.image.side, generator=generators[item.image.generator],
            seed=item.image.number, state=CandidateState.RENDERED, image=item.original,
            display=item.display, preview=item.preview, sha256=item.facts.sha256,
            phash=signed(item.facts.phash), width=item.facts.width, height=item.facts.height,
            source_name=item.image.name[:400], provenance={"source": PUBLISHED}, rendered_at=now,
        )
        for item in stored
    ]  # fmt: skip
    fields = {generator.pk: field for field, generator in generators.items()}
    made = Candidate.objects.bulk_create(rows, batch_size=BATCH)
    return {(row.side, fields[row.generator_id], row.seed): row.pk for row in made}


def _members(
    release: Release,
    found: FoundPair,
    keys: dict[Key, int],
    position: int,
    tick: Callable[[], object],
) -> int:
    rows: Sequence[ReleaseMember] = [
        ReleaseMember(
            release=release, candidate_id=keys[_key(image)], position=position + offset,
            reason="verified", verified_by=PUBLISHED,
        )
        for offset, image in enumerate(found.images)
    ]  # fmt: skip
    ReleaseMember.objects.bulk_create(rows, batch_size=BATCH)
    for _ in rows:
        tick()
    return position + len(rows)
