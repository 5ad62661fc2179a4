"""What may be done to a candidate: give it its image, give it up, ask for it again.

Every act is a compare-and-set on the row, because a worker that was believed dead may come
back, a task may be delivered twice and two machines may hold the same seed. Files are
announced in the row before they are written, so that whoever takes over can remove them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import transaction
from django.db.models import Q

from croc_annotate.candidates import statements
from croc_annotate.candidates.attempts import ask_again
from croc_annotate.candidates.leftovers import give_up, leave
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
    """Give a candidate its image, exactly once; return the row as it now is. See `keep_image`."""
    derived = derived or imagefiles.derive(data)
    keep_image(candidate=candidate, data=data, provenance=provenance, claim=claim, derived=derived)
    return Candidate.objects.select_related("pair", "generator").get(pk=candidate.pk)


def keep_image(
    *,
    candidate: Candidate,
    data: bytes,
    provenance: Mapping[str, object],
    derived: imagefiles.Derived,
    claim: str = "",
) -> bool:
    """Give a candidate its image, exactly once; False when the image was not wanted any more.

    A candidate that has an image keeps it: the new one is dropped. With ``claim`` the same
    holds when the candidate is held by another claim. ``derived`` are the copies of exactly
    these bytes. Raises what the storage raises; the same call may then be made again.
    """
    names = fresh_names(imagefiles.SUFFIXES[derived.facts.format])
    left_behind = _announce(candidate.pk, names, claim)
    if left_behind is None:
        return False
    files = (data, derived.display, derived.preview)
    written = _write(candidate.pk, names, files)
    kept = written and _settle(candidate, names, derived.facts, provenance)
    # The storage is there just now, so this is the moment; `leftovers.sweep` has the last word.
    delete_files(left_behind if kept else [*left_behind, *names])
    return kept


def fail_candidate(*, candidate: Candidate, reason: str, claim: str = "") -> bool:
    """Give a waiting candidate up with its reason; False when it was not ours to give up."""
    if not reason.strip():
        raise ValueError("A failure needs its reason.")
    waiting = Candidate.objects.requested()
    if claim:
        waiting = waiting.filter(claimed_by=claim)
    return give_up(candidate=candidate, reason=reason[:2000], among=waiting)


@transaction.atomic
def retry_failed(*, candidates: CandidateQuerySet) -> int:
    """Ask again for what failed; return how many. What it may have cost is not forgotten."""
    return ask_again(failed=candidates.failed())


def _announce(pk: int, names: FileNames, claim: str) -> list[str] | None:
    """Write the coming files' names into the row; None when the image is not wanted any more.

    Returns the names that an attempt left behind which died between its files and its row.
    """
    if statements.announce(pk, names, claim):  # nearly always
        return []
    rows = Candidate.objects.filter(_NOT_RENDERED, pk=pk)
    if claim:
        rows = rows.filter(claimed_by=claim)
    announced = {"image": names.image, "display": names.display, "preview": names.preview}
    with transaction.atomic():
        row = rows.select_for_update().first()
        if row is None:
            return None
        left_behind = names_of(row)
        leave(left_behind)
        Candidate.objects.filter(pk=pk).update(**announced)
    return left_behind


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


def _settle(
    candidate: Candidate,
    names: FileNames,
    facts: imagefiles.ImageFacts,
    provenance: Mapping[str, object],
) -> bool:
    """Make the row rendered, if our files are still the announced ones."""
    return statements.settle(
        candidate,
        names,
        facts,
        phash=signed(facts.phash),
        provenance=provenance,
        near=NEAR_DUPLICATE_BITS,
    )


def signed(phash: int) -> int:
    """A 64-bit hash as the signed number that databases hold."""
    return phash - 2**64 if phash >= 2**63 else phash
