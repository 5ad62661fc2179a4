"""Files that no candidate needs any more: written down with the act that leaves them, then removed.

A name goes from its candidate's row to a `LeftFile` in one transaction, so that neither a killed
process nor a store that is away can make anybody forget it. It stays there for `GRACE`, because
a store may complete an upload after its sender gave up, and a worker that was believed dead may
still be writing.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from django.db import transaction
from django.utils import timezone

from croc_annotate.candidates.models import CandidateState, LeftFile
from croc_annotate.candidates.storage import abort_uploads, delete_file, delete_files, names_of

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from croc_annotate.candidates.models import Candidate, CandidateQuerySet

GRACE = timedelta(hours=1)
_SWEPT_AT_ONCE = 5_000


def leave(names: Iterable[str]) -> None:
    """Write down names that their row no longer holds; belongs into the row's transaction."""
    now = timezone.now()
    rows = [LeftFile(name=name, since=now) for name in names]
    LeftFile.objects.bulk_create(rows, ignore_conflicts=True)


@transaction.atomic
def give_up(*, candidate: Candidate, reason: str, among: CandidateQuerySet) -> bool:
    """Fail a candidate that is still among some rows, and let go of what it announced."""
    row = among.select_for_update(of=("self",)).filter(pk=candidate.pk).first()
    if row is None:
        return False
    left_behind = names_of(row)
    type(row).objects.filter(pk=row.pk).update(
        state=CandidateState.FAILED, error=reason, claimed_by="", claimed_until=None,
        image="", display="", preview="",
    )  # fmt: skip
    if left_behind:
        leave(left_behind)
        transaction.on_commit(lambda: delete_files(left_behind))
    return True


def sweep(*, at: datetime) -> int:
    """Remove left files and uploads that never ended; return how many names are settled for good.

    Raises what the storage raises while it is away; the names stay for the next time.
    """
    names = list(LeftFile.objects.order_by("since").values_list("name", flat=True)[:_SWEPT_AT_ONCE])
    if not names:
        return 0
    abort_uploads(set(names))
    for name in names:
        delete_file(name)
    over = LeftFile.objects.filter(name__in=names, since__lt=at - GRACE)
    return over.delete()[0]
