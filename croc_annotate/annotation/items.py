"""Items of a campaign: made, counted again, closed, marked as known."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from django.db import transaction
from django.db.models import Count, Max
from django.utils import timezone

from croc_annotate.accounts.services import record_audit
from croc_annotate.annotation.models import (
    Assignment,
    AssignmentState,
    Campaign,
    Item,
    Judgement,
    Purpose,
    TextRole,
    Verdict,
)
from croc_annotate.annotation.ordering import Entry, arrange, reachable_distance
from croc_annotate.annotation.redundancy import Tally, needed
from croc_annotate.candidates.models import Candidate
from croc_annotate.lib.analyse import MANY, analyse
from croc_annotate.lib.hashing import sha256_text, stable_unit
from croc_annotate.prompts.models import ContrastPair

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import datetime

    from django.db.models import QuerySet

    from croc_annotate.accounts.models import User

CHUNK = 2000


class KnownItemError(ValueError):
    """An item cannot be used as gold or for training; the message says why."""


class _New(NamedTuple):
    candidate: int
    pair: int
    category: str
    group: str
    role: str


def wanted_candidates(campaign: Campaign) -> QuerySet[Candidate]:
    """Rendered candidates of active pairs that the campaign is about."""
    rows = Candidate.objects.rendered().filter(pair__active=True)
    if campaign.categories:
        rows = rows.filter(pair__category_id__in=campaign.categories)
    if campaign.generators:
        rows = rows.filter(generator__slug__in=campaign.generators)
    if campaign.banks:
        rows = rows.filter(pair__bank__in=campaign.banks)
    return rows


def open_items(*, campaign: Campaign, now: datetime | None = None) -> int:
    """Make the missing items of the campaign's candidates. Returns how many; a second call makes none.

    Items that are made later stand behind the earlier ones, in an order of their own.
    """
    now = now or timezone.now()
    with transaction.atomic():
        # Two calls at once would give one position twice and items in two orders.
        campaign = Campaign.objects.select_for_update().get(pk=campaign.pk)
        new = list(_missing(campaign))
        campaign.distance = _distance(campaign)
        campaign.save(update_fields=["distance"])
        entries = [Entry(i, row.pair, row.group, row.category) for i, row in enumerate(new)]
        order = arrange(
            entries,
            seed=campaign.seed,
            distance=campaign.distance,
            in_runs=campaign.order == "runs",
            chunk=campaign.grid_size if campaign.mode == "grid" else 1,
        )
        first = (campaign.items.aggregate(last=Max("position"))["last"] or 0) + 1
        rows = (
            _item(campaign, new[entry.key], position, now)
            for position, entry in enumerate(order, start=first)
        )
        for part in _chunks(rows):
            Item.objects.bulk_create(part)
        if len(new) >= MANY:
            # A plan that was kept while the table was small reads all of it for each claim.
            analyse(Item)
    return len(new)


def add_items(*, campaign: Campaign, candidates: Sequence[Candidate], now: datetime) -> int:
    """Make the missing ``own`` items of these candidates, behind the others. Returns how many."""
    have = set(campaign.items.filter(text_role=TextRole.OWN).values_list("candidate_id", flat=True))
    pairs = ContrastPair.objects.in_bulk({candidate.pair_id for candidate in candidates})
    first = (campaign.items.aggregate(last=Max("position"))["last"] or 0) + 1
    rows: list[Item] = []
    for candidate in candidates:
        if candidate.pk in have:
            continue
        pair = pairs[candidate.pair_id]
        group = sha256_text(pair.own_text(candidate.side))
        new = _New(candidate.pk, pair.pk, pair.category_id, group, TextRole.OWN)
        rows.append(_item(campaign, new, first + len(rows), now))
    Item.objects.bulk_create(rows, batch_size=CHUNK)
    return len(rows)


def _missing(campaign: Campaign) -> Iterator[_New]:
    have = set(campaign.items.values_list("candidate_id", "text_role"))
    texts: dict[tuple[int, bool], str] = {}
    rows = (
        wanted_candidates(campaign)
        .order_by("pk")
        .values_list("pk", "pair_id", "side", "pair__category_id", "pair__prompt", "pair__contrast")
    )
    for pk, pair, side, category, prompt, contrast in rows.iterator(chunk_size=CHUNK):
        roles = [TextRole.OWN]
        if stable_unit(campaign.seed, "cross", pk) < campaign.cross_rate:
            roles.append(TextRole.OTHER)
        for role in roles:
            if (pk, role) in have:
                continue
            is_prompt = (side == "prompt") == (role == TextRole.OWN)
            if (pair, is_prompt) not in texts:
                texts[pair, is_prompt] = sha256_text(prompt if is_prompt else contrast)
            yield _New(pk, pair, category, texts[pair, is_prompt], role)


def _distance(campaign: Campaign) -> int:
    """What can be held with the pairs there are; in runs each category stands for itself."""
    counts = (
        wanted_candidates(campaign)
        .order_by()
        .values("pair__category_id")
        .annotate(pairs=Count("pair_id", distinct=True))
    )
    pairs = [row["pairs"] for row in counts]
    if not pairs:
        return 0
    pool = min(pairs) if campaign.order == "runs" else sum(pairs)
    return reachable_distance(pool, campaign.min_distance)


def _item(campaign: Campaign, new: _New, position: int, now: datetime) -> Item:
    extra = stable_unit(campaign.seed, "reference", new.candidate) < campaign.reference_rate
    return Item(
        campaign=campaign,
        candidate_id=new.candidate,
        pair_id=new.pair,
        text_role=new.role,
        group=new.group,
        position=position,
        needed=needed(campaign.policy, Tally()),
        reference=extra,
        reference_open=extra,
        opened_at=now,
    )


def _chunks(rows: Iterable[Item]) -> Iterator[list[Item]]:
    part: list[Item] = []
    for row in rows:
        part.append(row)
        if len(part) == CHUNK:
            yield part
            part = []
    if part:
        yield part


# --- counting again --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Counts:
    """What an item's counters must be, by its rows."""

    needed: int
    leased: int
    reference_open: bool


def counts_by_rows(campaign: Campaign, items: Sequence[Item]) -> dict[int, Counts]:
    """For each item of the job, its counters derived from judgements and leases."""
    pks = [item.pk for item in items]
    tallies: dict[int, Tally] = defaultdict(Tally)
    counted = Judgement.objects.counted(campaign).filter(item_id__in=pks)
    for pk, verdict in counted.values_list("item_id", "verdict"):
        tallies[pk] = tallies[pk].plus(verdict)
    leases: dict[int, list[str]] = defaultdict(list)
    live = Assignment.objects.filter(item_id__in=pks, state=AssignmentState.LEASED)
    for pk, purpose in live.values_list("item_id", "purpose"):
        leases[pk].append(purpose)
    given = set(
        Judgement.objects.current()
        .filter(item_id__in=pks, purpose=Purpose.REFERENCE, surplus=False, set_aside_at=None)
        .values_list("item_id", flat=True)
    )
    result = {}
    for item in items:
        closed = item.closed_by_review
        policy = campaign.policy.more(item.extra)
        left = 0 if closed else needed(policy, tallies[item.pk])
        free = item.reference and item.pk not in given
        result[item.pk] = Counts(
            left,
            leases[item.pk].count(Purpose.WORK),
            free and Purpose.REFERENCE not in leases[item.pk],
        )
    return result


def recount_items(*, campaign: Campaign, items: QuerySet[Item] | None = None, now: datetime) -> int:
    """Set counters from the rows: after a change of the redundancy, of many judgements, or a repair.

    Returns how many items changed. Locks the items chunk by chunk, so judging goes on.
    """
    work = (campaign.items.all() if items is None else items).filter(purpose=Purpose.WORK)
    pks = list(work.order_by("pk").values_list("pk", flat=True))
    changed = 0
    for start in range(0, len(pks), CHUNK):
        with transaction.atomic():
            part = list(
                Item.objects.filter(pk__in=pks[start : start + CHUNK])
                .order_by("pk")
                .select_for_update(no_key=True)
            )
            changed += _apply(part, counts_by_rows(campaign, part), now)
    return changed


def _apply(items: Sequence[Item], counts: dict[int, Counts], now: datetime) -> int:
    changed = []
    for item in items:
        right = counts[item.pk]
        closed = right.needed == 0
        same = right == Counts(item.needed, item.leased, item.reference_open)
        if same and closed == (item.closed_at is not None):
            continue
        if right.needed - right.leased > item.places or right.reference_open:
            item.opened_at = now
        item.needed, item.leased = right.needed, right.leased
        item.reference_open = right.reference_open
        item.closed_at = (item.closed_at or now) if closed else None
        changed.append(item)
    Item.objects.bulk_update(
        changed,
        ["needed", "leased", "reference_open", "opened_at", "closed_at"],
        batch_size=500,
    )
    return len(changed)


def close_items(*, items: QuerySet[Item], actor: User | None, now: datetime | None = None) -> int:
    """Ask no more about items that a reviewer has decided. Answers on their way are kept as surplus."""
    now = now or timezone.now()
    with transaction.atomic():
        pks = list(
            items.filter(purpose=Purpose.WORK, closed_by_review=False)
            .order_by("pk")
            .select_for_update(no_key=True)
            .values_list("pk", flat=True)
        )
        rows = Item.objects.filter(pk__in=pks)
        rows.filter(closed_at=None).update(closed_at=now)
        rows.update(needed=0, closed_by_review=True)
        if pks:
            record_audit(
                actor=actor,
                action="items.closed",
                subject_type="item",
                subject_id=pks[0],
                details={"items": len(pks)},
            )
    return len(pks)


# --- items with a known answer ---------------------------------------------------------------


def make_known_item(
    *,
    campaign: Campaign,
    candidate: Candidate,
    verdict: str,
    purpose: str,
    text_role: str = TextRole.OWN,
    is_quiz: bool = False,
    explanation: str = "",
    now: datetime,
) -> Item:
    """Use a candidate as gold or for training. It leaves the job of this campaign.

    Raises `KnownItemError` if people have judged it as part of the job already.
    """
    if verdict not in {Verdict.ACCEPT, Verdict.REJECT}:
        raise KnownItemError("A known answer is accept or reject.")
    if purpose not in {Purpose.GOLD, Purpose.TRAINING}:
        raise KnownItemError("A known answer is for gold or training.")
    fields = {
        "purpose": purpose,
        "known_verdict": verdict,
        "is_quiz": is_quiz,
        "explanation": explanation,
        "needed": 0,
        "reference": False,
        "reference_open": False,
        "closed_at": None,
    }
    with transaction.atomic():
        Campaign.objects.select_for_update(no_key=True).get(pk=campaign.pk)
        item = (
            campaign.items.select_for_update(no_key=True)
            .filter(candidate=candidate, text_role=text_role)
            .first()
        )
        if item is None:
            return _new_known(campaign, candidate, text_role, now, fields)
        if item.purpose == Purpose.WORK and (item.judgements.exists() or item.assignments.exists()):
            raise KnownItemError("People were given this item already: it stays part of the job.")
        Item.objects.filter(pk=item.pk).update(**fields)
        item.refresh_from_db()
        return item


def _new_known(
    campaign: Campaign,
    candidate: Candidate,
    text_role: str,
    now: datetime,
    fields: dict[str, object],
) -> Item:
    pair = candidate.pair
    own = text_role == TextRole.OWN
    text = pair.own_text(candidate.side) if own else pair.other_text(candidate.side)
    last = campaign.items.aggregate(last=Max("position"))["last"] or 0
    # Known items stand in a seeded order of their own: everybody meets them in that order.
    return Item.objects.create(
        campaign=campaign,
        candidate=candidate,
        pair=pair,
        text_role=text_role,
        group=sha256_text(text),
        position=last + 1,
        opened_at=now,
        **fields,
    )
