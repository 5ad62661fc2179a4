"""What may be done to a candidate: give it its image, give it up, ask for it again.

Every act is a compare-and-set on the row, because a worker that was believed dead may come
back, a task may be delivered twice and two machines may hold the same seed. Files are
announced in the row before they are written, so that whoever takes over can remove them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from croc_annotate.candidates.models import Candidate, CandidateState
from croc_annotate.candidates.storage import (
    FileNames,
    delete_files,
    fresh_names,
    names_of,
    write_file,
)
from croc_annotate.lib import imagefiles

if TYPE_CHECKING:
    from collections.abc import Mapping

    from croc_annotate.candidates.models import CandidateQuerySet

# Two images of one text that differ in at most this many bits of 64 are flagged.
NEAR_DUPLICATE_BITS = 4
_NOT_RENDERED = ~Q(state=CandidateState.RENDERED)


def store_image(
    *,
    candidate: Candidate,
    data: bytes,
    provenance: Mapping[str, object],
    claim: str = "",
    derived: imagefiles.Derived | None = None,
) -> Candidate:
    """Give a candidate its image, exactly once; return the row as it now is.

    A candidate that has an image keeps it: the new one is dropped. With ``claim`` the same
    holds when the candidate is held by another claim. ``derived`` are the copies of exactly
    these bytes, if they are made already. Raises BadImageError before anything is written.
    """
    derived = derived or imagefiles.derive(data)
    names = fresh_names(imagefiles.SUFFIXES[derived.facts.format])
    if _announce(candidate.pk, names, claim):
        files = (data, derived.display, derived.preview)
        written = _write(candidate.pk, names, files)
        if not (written and _settle(candidate.pk, names, derived.facts, provenance)):
            delete_files(names)
    return Candidate.objects.select_related("pair", "generator").get(pk=candidate.pk)


def fail_candidate(*, candidate: Candidate, reason: str, claim: str = "") -> bool:
    """Give a waiting candidate up with its reason; False when it was not ours to give up."""
    if not reason.strip():
        raise ValueError("A failure needs its reason.")
    waiting = Candidate.objects.requested().filter(pk=candidate.pk)
    if claim:
        waiting = waiting.filter(claimed_by=claim)
    changed = waiting.update(
        state=CandidateState.FAILED, error=reason[:2000], claimed_by="", claimed_until=None
    )
    return changed == 1


def retry_failed(*, candidates: CandidateQuerySet) -> int:
    """Ask again for what failed; return how many."""
    return candidates.failed().update(
        state=CandidateState.REQUESTED, error="", attempts=0, claimed_by="", claimed_until=None
    )


@transaction.atomic
def _announce(pk: int, names: FileNames, claim: str) -> bool:
    """Write the coming files' names into the row; False when the image is not wanted any more."""
    rows = Candidate.objects.select_for_update().filter(_NOT_RENDERED, pk=pk)
    row = (rows.filter(claimed_by=claim) if claim else rows).first()
    if row is None:
        return False
    left_behind = names_of(row)  # by an attempt that died between its files and its row
    Candidate.objects.filter(pk=pk).update(
        image=names.image, display=names.display, preview=names.preview
    )
    if left_behind:
        transaction.on_commit(lambda: delete_files(left_behind))
    return True


def _write(pk: int, names: FileNames, files: tuple[bytes, bytes, bytes]) -> bool:
    """Write the files; False when another attempt has taken over and removes them as we write."""
    try:
        for name, data in zip(names, files, strict=True):
            write_file(name, data)
    except OSError:
        if Candidate.objects.filter(_NOT_RENDERED, pk=pk, image=names.image).exists():
            raise
        return False
    return True


@transaction.atomic
def _settle(
    pk: int,
    names: FileNames,
    facts: imagefiles.ImageFacts,
    provenance: Mapping[str, object],
) -> bool:
    """Make the row rendered, if our files are still the announced ones."""
    changed = Candidate.objects.filter(_NOT_RENDERED, pk=pk, image=names.image).update(
        state=CandidateState.RENDERED,
        sha256=facts.sha256,
        phash=signed(facts.phash),
        width=facts.width,
        height=facts.height,
        provenance=dict(provenance),
        near_duplicate_of=_near_duplicate(pk, facts.phash),
        rendered_at=timezone.now(),
        error="",
        claimed_by="",
        claimed_until=None,
    )
    return changed == 1


def _near_duplicate(pk: int, phash: int) -> int | None:
    """The first image of the same text that looks (nearly) the same."""
    row = Candidate.objects.only("pair_id", "side").get(pk=pk)
    others = (
        Candidate.objects.rendered()
        .filter(pair_id=row.pair_id, side=row.side, phash__isnull=False)
        .exclude(pk=pk)
        .order_by("pk")
        .values_list("pk", "phash")
    )
    for other, value in others:
        if imagefiles.hamming(phash, unsigned(value or 0)) <= NEAR_DUPLICATE_BITS:
            return other
    return None


def signed(phash: int) -> int:
    """A 64-bit hash as the signed number that databases hold."""
    return phash - 2**64 if phash >= 2**63 else phash


def unsigned(stored: int) -> int:
    """The 64-bit hash behind a stored number."""
    return stored % 2**64
