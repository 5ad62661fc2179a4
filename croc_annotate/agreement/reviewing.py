"""Acts of reviewers: decide, confirm, take back, send back, mark a pair as defective, reveal.

Each act is one transaction and leaves a line in the audit log that nobody can edit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from croc_annotate.accounts.services import record_audit, record_audits
from croc_annotate.agreement.models import (
    Adjudication,
    ConsensusState,
    DefectCode,
    ItemConsensus,
    ReasonCode,
    ReviewPolicy,
)
from croc_annotate.annotation.models import Item, Purpose, Verdict
from croc_annotate.annotation.services import (
    close_items,
    recount_items,
    request_more_judgements,
)
from croc_annotate.prompts.services import retire_pair

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from croc_annotate.accounts.models import User
    from croc_annotate.annotation.models import Campaign
    from croc_annotate.prompts.models import ContrastPair

_STATE_OF = {
    Verdict.ACCEPT.value: ConsensusState.ACCEPTED,
    Verdict.REJECT.value: ConsensusState.REJECTED,
}


class ReviewRefusedError(ValueError):
    """The act cannot be done; the message says why and what helps."""


def review_policy(campaign: Campaign) -> ReviewPolicy:
    """How the campaign's disputes are settled (the defaults where nothing was chosen)."""
    return ReviewPolicy.objects.filter(campaign=campaign).first() or ReviewPolicy(campaign=campaign)


@transaction.atomic
def set_review_policy(
    *, campaign: Campaign, second_reviewer: bool, low_posterior: float, actor: User
) -> ReviewPolicy:
    """Choose whether decisions need a second reviewer, and what counts as weak."""
    if not 0.0 <= low_posterior <= 1.0:
        raise ReviewRefusedError(_("the posterior is a share between 0 and 1"))
    values = {"second_reviewer": second_reviewer, "low_posterior": low_posterior}
    policy, _created = ReviewPolicy.objects.update_or_create(campaign=campaign, defaults=values)
    _audit(actor, "review.policy_set", "campaign", campaign.pk, campaign, **values)
    return policy


@transaction.atomic
def adjudicate(
    *,
    item: Item,
    reviewer: User,
    verdict: str,
    reason: str,
    note: str = "",
    blind: bool = True,
    second_wanted: bool | None = None,
    now: datetime | None = None,
) -> Adjudication:
    """Decide an item, or agree or disagree with a decision that waits for a second reviewer.

    The same decision by the same reviewer once more changes nothing: a script may send it again.

    Raises ReviewRefusedError for an unknown verdict or reason, an item that is no work of
    the campaign, or a note that is missing where the reason is "other".
    """
    now = now or timezone.now()
    _check(reviewer, verdict, reason, note)
    locked = _locked(item)
    current = (
        Adjudication.objects.current()
        .filter(campaign=locked.campaign, candidate=locked.candidate, text_role=locked.text_role)
        .first()
    )
    if current is not None and (
        (current.reviewer_id, current.verdict, current.reason, current.note)
        == (reviewer.pk, verdict, reason, note)
    ):
        return current
    if _is_confirmation(current, reviewer, verdict):
        return _confirm(current, locked, reviewer, now)
    if second_wanted is None:
        second_wanted = review_policy(locked.campaign).second_reviewer
    values = {"verdict": verdict, "reason": reason, "note": note, "blind": blind}
    found = _replace(current, locked, reviewer, {**values, "second_wanted": second_wanted}, now)
    _take_effect(found, locked, reviewer, now)
    details = {"verdict": verdict, "reason": reason, "blind": blind}
    _audit(
        reviewer, "review.decided", "item", locked.pk, locked.campaign,
        candidate=locked.candidate_id, text_role=locked.text_role, second_wanted=second_wanted,
        replaces=current.pk if current else None, **details,
    )  # fmt: skip
    return found


@transaction.atomic
def withdraw_adjudication(
    *, adjudication: Adjudication, actor: User, note: str, now: datetime | None = None
) -> None:
    """Take a decision back: the votes decide again, and the item is asked about as before."""
    now = now or timezone.now()
    if not note.strip():
        raise ReviewRefusedError(_("say why the decision is taken back"))
    changed = Adjudication.objects.current().filter(pk=adjudication.pk).update(superseded_at=now)
    if not changed:
        raise ReviewRefusedError(_("this decision was taken back or replaced already"))
    items = Item.objects.filter(
        campaign=adjudication.campaign,
        candidate=adjudication.candidate,
        text_role=adjudication.text_role,
        purpose=Purpose.WORK,
    )
    items.update(closed_by_review=False)
    recount_items(campaign=adjudication.campaign, items=items, now=now)
    ItemConsensus.objects.filter(item__in=items).update(
        state=ConsensusState.DISPUTED, verified_by="", reviewed_at=timezone.now()
    )
    _audit(
        actor, "review.withdrawn", "adjudication", adjudication.pk, adjudication.campaign,
        candidate=adjudication.candidate_id, text_role=adjudication.text_role, note=note,
    )  # fmt: skip


@transaction.atomic
def send_back(
    *,
    campaign: Campaign,
    item_ids: Sequence[int],
    actor: User,
    extra: int = 2,
    note: str = "",
    now: datetime | None = None,
) -> int:
    """Ask annotators for ``extra`` more judgements of items. Returns how many items."""
    if not 1 <= extra <= 10:
        raise ReviewRefusedError(_("ask for 1 to 10 more judgements"))
    items = Item.objects.filter(pk__in=item_ids, campaign=campaign, purpose=Purpose.WORK)
    pks = list(items.values_list("pk", flat=True))
    if not pks:
        raise ReviewRefusedError(_("there is nothing to send back"))
    total = request_more_judgements(item_ids=pks, extra=extra, actor=actor, reason=note, now=now)
    ItemConsensus.objects.filter(item_id__in=pks).update(
        state=ConsensusState.PENDING, verified_by="", complete=False, reviewed_at=timezone.now()
    )
    _audit(
        actor, "review.sent_back", "campaign", campaign.pk, campaign,
        items=pks[:50], count=total, extra=extra, note=note,
    )  # fmt: skip
    return total


@transaction.atomic
def mark_pair_defective(
    *, pair: ContrastPair, code: str, actor: User, note: str = "", now: datetime | None = None
) -> int:
    """Take a pair out of use with all its candidates; returns how many open items were closed."""
    if code not in DefectCode.values:
        raise ReviewRefusedError(_("unknown defect “%(code)s”") % {"code": code})
    if code == DefectCode.OTHER and not note.strip():
        raise ReviewRefusedError(_("say in a note what is wrong with the pair"))
    reason = f"{DefectCode(code).label}: {note}" if note.strip() else str(DefectCode(code).label)
    retire_pair(pair=pair, reason=reason[:200], actor=actor)
    items = Item.objects.filter(pair=pair, purpose=Purpose.WORK)
    closed = close_items(items=items.filter(closed_at__isnull=True), actor=actor, now=now)
    record_audit(
        actor=actor, action="review.pair_defective", subject_type="pair", subject_id=pair.pk,
        details={"slug": pair.slug, "code": code, "note": note, "items_closed": closed},
    )  # fmt: skip
    return closed


@transaction.atomic
def reveal(*, item: Item, actor: User) -> None:
    """Record that a reviewer looked at who said what before (or after) deciding."""
    _reveal([item], item.campaign, actor)


@transaction.atomic
def reveal_many(*, items: Iterable[int], campaign: Campaign, actor: User) -> None:
    """Record that somebody asked for the votes of many items at once: a line for each, as by hand."""
    rows = Item.objects.filter(pk__in=items, campaign=campaign, purpose=Purpose.WORK)
    _reveal(rows.order_by("pk"), campaign, actor)


def _reveal(items: Iterable[Item], campaign: Campaign, actor: User) -> None:
    record_audits(
        actor=actor, action="review.revealed", subject_type="item",
        details={
            item.pk: {
                "campaign": campaign.slug,
                "candidate": item.candidate_id,
                "text_role": item.text_role,
            }
            for item in items
        },
    )  # fmt: skip


@transaction.atomic
def decide_many(
    *,
    items: Sequence[Item],
    reviewer: User,
    verdict: str,
    reason: str,
    note: str,
    second_wanted: bool | None = None,
    now: datetime | None = None,
) -> int:
    """Give many items one verdict; all or none. Returns how many."""
    if not items:
        raise ReviewRefusedError(_("no item is chosen"))
    now = now or timezone.now()
    for item in items:
        adjudicate(
            item=item, reviewer=reviewer, verdict=verdict, reason=reason, note=note, blind=False,
            second_wanted=second_wanted, now=now,
        )  # fmt: skip
    campaign = items[0].campaign
    _audit(
        reviewer, "review.bulk", "campaign", campaign.pk, campaign,
        items=len(items), verdict=verdict, reason=reason, note=note,
    )  # fmt: skip
    return len(items)


def _check(reviewer: User, verdict: str, reason: str, note: str) -> None:
    if not reviewer.may_review:
        raise ReviewRefusedError(_("only reviewers and admins decide"))
    if verdict not in _STATE_OF:
        raise ReviewRefusedError(_("decide accept or reject"))
    if reason not in ReasonCode.values:
        raise ReviewRefusedError(_("choose a reason"))
    if reason == ReasonCode.OTHER and not note.strip():
        raise ReviewRefusedError(_("write a note when the reason is “other”"))


def _locked(item: Item) -> Item:
    """The item's row, locked: two reviewers decide one after the other."""
    rows = Item.objects.select_for_update(of=("self",), no_key=True).select_related("campaign")
    locked = rows.filter(pk=item.pk, purpose=Purpose.WORK).first()
    if locked is None:
        raise ReviewRefusedError(_("this item is no work of the campaign"))
    return locked


def _is_confirmation(current: Adjudication | None, reviewer: User, verdict: str) -> bool:
    return (
        current is not None
        and current.second_wanted
        and current.confirmed_by_id is None
        and current.reviewer_id != reviewer.pk
        and current.verdict == verdict
    )


def _confirm(
    current: Adjudication | None, item: Item, reviewer: User, now: datetime
) -> Adjudication:
    if current is None:
        raise ReviewRefusedError(_("there is no decision to confirm"))
    current.confirmed_by, current.confirmed_at = reviewer, now
    current.save(update_fields=["confirmed_by", "confirmed_at"])
    _take_effect(current, item, reviewer, now)
    _audit(
        reviewer, "review.confirmed", "item", item.pk, item.campaign,
        candidate=item.candidate_id, text_role=item.text_role, verdict=current.verdict,
    )  # fmt: skip
    return current


def _replace(
    current: Adjudication | None, item: Item, reviewer: User, values: dict[str, Any], now: datetime
) -> Adjudication:
    """Close the decision that stands and add the new one."""
    if current is not None:
        current.superseded_at = now
        current.save(update_fields=["superseded_at"])
    return Adjudication.objects.create(
        campaign=item.campaign,
        candidate=item.candidate,
        text_role=item.text_role,
        reviewer=reviewer,
        created_at=now,
        **values,
    )


def _take_effect(found: Adjudication, item: Item, actor: User, now: datetime) -> None:
    """A decision in force closes the item and its state; one that waits changes nothing yet."""
    if found.second_wanted and found.confirmed_by_id is None:
        return
    close_items(items=Item.objects.filter(pk=item.pk), actor=actor, now=now)
    ItemConsensus.objects.filter(item=item).update(
        state=_STATE_OF[found.verdict], verified_by="adjudicated", reviewed_at=timezone.now()
    )


def _audit(
    actor: User, action: str, kind: str, subject: object, campaign: Campaign, **details: Any
) -> None:
    record_audit(
        actor=actor, action=action, subject_type=kind, subject_id=subject,
        details={"campaign": campaign.slug, **details},
    )  # fmt: skip
