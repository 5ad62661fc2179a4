"""Acts on contrast pairs: load a bank, add, edit, retire.

A text under which images were made never changes: such a pair gets a new version, and the old
one stays with its images. A pair without images is edited in place, its old texts in the audit
log.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from django.db import transaction

from croc_annotate.accounts.services import record_audit
from croc_annotate.prompts.bank import BankError
from croc_annotate.prompts.models import Category, ContrastPair
from croc_annotate.prompts.rules import LABEL_FIELDS, TEXT_FIELDS, PairRow, check_bank

if TYPE_CHECKING:
    from collections.abc import Iterable

    from croc_annotate.accounts.models import User


class PairTaken(ValueError):  # noqa: N818 - a state of the bank, not a fault
    """A new pair's id is in use."""


class PairRetired(ValueError):  # noqa: N818 - a state of the pair, not a fault
    """The pair is no longer in use, or another version has taken its place."""


@dataclass(frozen=True)
class LoadReport:
    """What loading a bank did, in pairs. ``retired`` ones were left as they are."""

    created: int = 0
    unchanged: int = 0
    versioned: int = 0
    edited: int = 0
    retired: int = 0

    @property
    def total(self) -> int:
        """All rows of the bank."""
        return self.created + self.unchanged + self.versioned + self.edited + self.retired

    def counting(self, outcome: str) -> LoadReport:
        """The report with one more pair of this outcome."""
        return replace(self, **{outcome: getattr(self, outcome) + 1})


@dataclass(frozen=True)
class PairChange:
    """The pair as it is now, and whether it is a new version of an older one."""

    pair: ContrastPair
    versioned: bool


@transaction.atomic
def load_pairs(*, rows: Iterable[PairRow], bank: str, actor: User | None = None) -> LoadReport:
    """Bring the bank's pairs in; a second time changes nothing. Raises BankError, then nothing is.

    An unchanged pair stays; changed texts become an edit, or a new version where the pair has
    images or came from another bank; a retired pair stays retired unless its texts are new.
    """
    rows = list(rows)
    problems = check_bank(rows)
    if problems:
        raise BankError(bank, problems)
    _one_writer()
    newest = _newest_versions([row.slug for row in rows])
    report = LoadReport()
    fresh: list[ContrastPair] = []
    for row in rows:
        pair = newest.get(row.slug)
        if pair is None:
            fresh.append(_new_pair(row, bank=bank))
            report = report.counting("created")
        else:
            report = report.counting(_reload(pair, row, bank=bank, actor=actor))
    ContrastPair.objects.bulk_create(fresh, batch_size=500)
    return report


@transaction.atomic
def add_pair(*, row: PairRow, bank: str = "", actor: User | None = None) -> ContrastPair:
    """Add one pair. Raises BankError for a broken rule and PairTaken for an id in use."""
    _checked(row)
    _one_writer()
    if ContrastPair.objects.filter(slug=row.slug).exists():
        raise PairTaken(f"The id “{row.slug}” is in use.")
    pair = _new_pair(row, bank=bank)
    pair.save(force_insert=True)
    _audit(actor, "pair_added", pair, {"texts": _texts(pair)})
    return pair


@transaction.atomic
def edit_pair(*, pair: ContrastPair, row: PairRow, actor: User | None = None) -> PairChange:
    """Give a pair new texts and labels, as a new version where images exist.

    Raises BankError for a broken rule, PairRetired if the pair was replaced in the meantime.
    """
    _checked(row)
    # The row lock also keeps out new candidates, whose foreign key would have to share it.
    current = ContrastPair.objects.select_for_update().active().filter(pk=pair.pk).first()
    if current is None:
        raise PairRetired(f"“{pair}” is not in use any more: look at its newest version.")
    if _same_texts(current, row):
        _set_labels(current, row)
        return PairChange(current, versioned=False)
    if ContrastPair.objects.with_images().filter(pk=current.pk).exists():
        return PairChange(_replace(current, row, actor=actor), versioned=True)
    _edit_in_place(current, row, actor=actor)
    return PairChange(current, versioned=False)


@transaction.atomic
def retire_pair(*, pair: ContrastPair, reason: str, actor: User | None = None) -> None:
    """Take a pair out of use, for a reason; its images stay. Twice is once."""
    if not reason.strip():
        raise ValueError("a pair is retired for a reason")
    changed = (
        ContrastPair.objects.active().filter(pk=pair.pk).update(active=False, retired_reason=reason)
    )
    if changed:
        _audit(actor, "pair_retired", pair, {"reason": reason})
    pair.refresh_from_db()


@transaction.atomic
def reinstate_pair(*, pair: ContrastPair, actor: User | None = None) -> None:
    """Put a retired pair back into use. Raises PairRetired if another version is in use."""
    versions = ContrastPair.objects.select_for_update().filter(slug=pair.slug)
    if any(other.active for other in versions if other.pk != pair.pk):
        raise PairRetired(f"“{pair.slug}” has another version in use.")
    changed = versions.filter(pk=pair.pk, active=False).update(active=True, retired_reason="")
    if changed:
        _audit(actor, "pair_reinstated", pair, {})
    pair.refresh_from_db()


def _one_writer() -> None:
    """Let the banks be written by one transaction at a time: a row that is not there cannot be locked.

    Two loads of one file at once would otherwise both find its pairs missing.
    """
    list(Category.objects.select_for_update(no_key=True).order_by("pk"))


def _newest_versions(slugs: list[str]) -> dict[str, ContrastPair]:
    """The active version of each pair, or its newest where none is; locked."""
    pairs = ContrastPair.objects.select_for_update().filter(slug__in=slugs)
    newest: dict[str, ContrastPair] = {}
    for pair in pairs.order_by("active", "version"):
        newest[pair.slug] = pair
    return newest


def _reload(pair: ContrastPair, row: PairRow, *, bank: str, actor: User | None) -> str:
    """Bring one known pair up to the row; returns the outcome's name in LoadReport."""
    if not _same_texts(pair, row):
        elsewhere = pair.bank not in ("", bank)
        images = ContrastPair.objects.with_images().filter(pk=pair.pk).exists()
        if elsewhere or images or not pair.active:
            _replace(pair, row, actor=actor, bank=bank)
            return "versioned"
        _edit_in_place(pair, row, actor=actor)
        return "edited"
    if not pair.active:
        return "retired"
    return "edited" if pair.bank == bank and _set_labels(pair, row) else "unchanged"


def _checked(row: PairRow) -> None:
    problems = check_bank([row])
    if problems:
        raise BankError(row.slug, problems)


def _new_pair(row: PairRow, *, bank: str, version: int = 1) -> ContrastPair:
    values = {name: getattr(row, name) for name in (*TEXT_FIELDS, *LABEL_FIELDS)}
    return ContrastPair(
        slug=row.slug, version=version, category_id=row.category, bank=bank, **values
    )


def _replace(
    pair: ContrastPair, row: PairRow, *, actor: User | None, bank: str | None = None
) -> ContrastPair:
    versions = ContrastPair.objects.filter(slug=pair.slug)
    number = max(versions.values_list("version", flat=True)) + 1
    # The old version goes first: there is never a moment with two in use.
    pair.active = False
    pair.retired_reason = f"replaced by version {number}"
    pair.save(update_fields=["active", "retired_reason"])
    newer = _new_pair(row, bank=pair.bank if bank is None else bank, version=number)
    newer.save(force_insert=True)
    details = {"before": _texts(pair), "after": _texts(newer), "version": number}
    _audit(actor, "pair_versioned", newer, details)
    return newer


def _edit_in_place(pair: ContrastPair, row: PairRow, *, actor: User | None) -> None:
    before = _texts(pair)
    for name in (*TEXT_FIELDS, *LABEL_FIELDS):
        setattr(pair, name, getattr(row, name))
    pair.save(update_fields=[*TEXT_FIELDS, *LABEL_FIELDS])
    _audit(actor, "pair_edited", pair, {"before": before, "after": _texts(pair)})


def _set_labels(pair: ContrastPair, row: PairRow) -> bool:
    """Take over property, topic and entity; True if one changed."""
    changed = [name for name in LABEL_FIELDS if getattr(pair, name) != getattr(row, name)]
    for name in changed:
        setattr(pair, name, getattr(row, name))
    if changed:
        pair.save(update_fields=changed)
    return bool(changed)


def _same_texts(pair: ContrastPair, row: PairRow) -> bool:
    return all(getattr(pair, name) == getattr(row, name) for name in TEXT_FIELDS)


def _texts(pair: ContrastPair) -> dict[str, str]:
    return {name: getattr(pair, name) for name in TEXT_FIELDS}


def _audit(actor: User | None, action: str, pair: ContrastPair, details: dict[str, object]) -> None:
    record_audit(
        actor=actor, action=action, subject_type="pair", subject_id=pair.slug, details=details
    )
