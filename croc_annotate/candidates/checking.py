"""Do rows and files agree? Finds lost, damaged and left-over files, and puts them right."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from django.core.files.storage import default_storage
from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from croc_annotate.candidates.attempts import before
from croc_annotate.candidates.leftovers import leave
from croc_annotate.candidates.models import Candidate, CandidateState
from croc_annotate.candidates.storage import FOLDERS, all_names, delete_files, names_of, read_file
from croc_annotate.lib.hashing import sha256_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

# A younger file without a row may be one that a worker is writing now.
_YOUNG = timedelta(hours=1)


@dataclass
class FileReport:
    """What a check found."""

    checked: int = 0
    lost: dict[int, list[str]] = field(default_factory=dict)  # candidate -> names without a file
    damaged: list[int] = field(default_factory=list)  # candidates whose bytes have another hash
    left_over: list[str] = field(default_factory=list)  # old files that no row names

    @property
    def is_clean(self) -> bool:
        """Rows and files agree."""
        return not (self.lost or self.damaged or self.left_over)


def check_files(
    *,
    hashes: bool,
    watch: Callable[[Iterable[Candidate], int], Iterator[Candidate]] | None = None,
) -> FileReport:
    """Compare every rendered row with its files; with `hashes` read each original too."""
    report = FileReport()
    rows = Candidate.objects.rendered().only("pk", "image", "display", "preview", "sha256")
    total = rows.count()
    listed = {name for folder in FOLDERS for name in all_names(folder)}
    each: Iterator[Candidate] = rows.iterator(chunk_size=2_000)
    for row in watch(each, total) if watch else each:
        report.checked += 1
        lost = [name for name in names_of(row) if name not in listed]
        if lost:
            report.lost[row.pk] = lost
        elif hashes and sha256_bytes(read_file(row.image)) != row.sha256:
            report.damaged.append(row.pk)
    report.left_over = sorted(_old(listed - _named()))
    return report


def repair_files(*, report: FileReport) -> int:
    """Ask again for images that are lost or damaged, delete left-over files; return how many rows.

    A judged or imported candidate is not asked for again: its image cannot be made again as
    it was. Such rows stay as they are, for a person and a backup.
    """
    broken = Q(pk__in=[*report.lost, *report.damaged])
    rows = Candidate.objects.rendered().filter(broken, source_name="")
    unjudged = rows.exclude(pk__in=_used(rows.values_list("pk", flat=True)))
    changed = 0
    for row in unjudged:
        with transaction.atomic():
            changed += Candidate.objects.filter(pk=row.pk, state=CandidateState.RENDERED).update(
                state=CandidateState.REQUESTED, sha256="", phash=None,
                image="", display="", preview="", attempts=0, provenance=before(row.attempts),
            )  # fmt: skip
            leave(names_of(row))
        delete_files(names_of(row))
    delete_files(report.left_over)
    return changed


def _named() -> set[str]:
    rows = Candidate.objects.exclude(image="").values_list("image", "display", "preview")
    return {name for names in rows.iterator() for name in names if name}


def _old(names: Iterable[str]) -> Iterator[str]:
    limit = timezone.now() - _YOUNG
    for name in names:
        if default_storage.get_modified_time(name) < limit:
            yield name


def _used(keys: Iterable[int]) -> set[int]:
    """Candidates that rows of later rooms point at; found without knowing those rooms."""
    wanted = set(keys)
    used: set[int] = set()
    for relation in Candidate._meta.related_objects:
        if relation.related_model is Candidate or relation.field.attname is None:
            continue
        column = relation.field.attname
        found = relation.related_model._default_manager.filter(**{f"{column}__in": wanted})
        used.update(found.values_list(column, flat=True))
    return used
