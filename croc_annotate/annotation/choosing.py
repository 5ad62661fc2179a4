"""Which items come next for a person: from the cursor on, pairs kept apart, locked as they are chosen."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from django.db.models import BooleanField, Case, OuterRef, Q, Subquery, When

from croc_annotate.annotation.models import (
    Assignment,
    AssignmentState,
    Item,
    Mode,
)
from croc_annotate.annotation.spacing import Seen, Window
from croc_annotate.lib.prepared import padded, prepared, whole

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from django.db.models import QuerySet

    from croc_annotate.annotation.models import Participation

# Two clocks and a slow transaction: what was opened this long before is looked at again.
SLACK = timedelta(seconds=60)
# Items read and locked beyond those wanted: some may turn out to be too near to one another.
SPARE = 4
ITEM_COLUMNS = (
    *("campaign_id", "purpose", "text_role", "key", "group", "position", "needed", "leased"),
    *("candidate__side", "candidate__key", "candidate__width", "candidate__height"),
    *("candidate__near_duplicate_of", "pair__prompt", "pair__contrast"),
    "pair__category__label",
)


@dataclass(slots=True)
class Draft:
    """What one claim is about to hand out."""

    person: Participation
    now: datetime
    window: Window
    chosen: list[Item] = field(default_factory=list)
    gold: Item | None = None
    handed_out: int = 0

    @property
    def second(self) -> int:
        """The time of the claim, in whole seconds."""
        return int(self.now.timestamp())


def window_of(participation: Participation) -> Window:
    """The person's last screens."""
    return Window(
        participation.campaign.distance, [Seen.from_row(row) for row in participation.recent]
    )


def display(items: QuerySet[Item]) -> QuerySet[Item]:
    """With what a judging page shows and the queue looks at, and nothing else."""
    return items.select_related("candidate", "pair__category").only(*ITEM_COLUMNS)


def not_touched(items: QuerySet[Item], person: Participation) -> QuerySet[Item]:
    """Without items that the person holds, answered or skipped."""
    return not_touched_by(items, person.annotator_id)


def not_touched_by(items: QuerySet[Item], annotator_id: int) -> QuerySet[Item]:
    """As `not_touched`, by the person's number (or a mark for it)."""
    leases = Assignment.objects.filter(
        item=OuterRef("pk"),
        annotator_id=annotator_id,
        state__in=[AssignmentState.LEASED, AssignmentState.ANSWERED, AssignmentState.SKIPPED],
    )
    # Every answer has its lease; `checks` looks for one without. A value for each row that is
    # read, looked up by the item: PostgreSQL would make a join of a bare NOT EXISTS and read all
    # that the person ever held. And a CASE, which it takes to be true of every second row: of
    # "IS NULL" it expects one row in 200, and then reads and sorts the whole queue for one item.
    # Not EXISTS in it either: that may be hashed, which reads all of the person's leases again.
    untouched = Case(
        When(mine__isnull=False, then=False), default=True, output_field=BooleanField()
    )
    return items.alias(mine=Subquery(leases.values("pk")[:1])).filter(untouched)


def fill(draft: Draft, wanted: int) -> None:
    """Choose up to ``wanted`` items, the gold that is due among them."""
    person, grid = draft.person, is_grid(draft)
    room = wanted - (draft.gold is not None)  # gold uses one place of the batch, not one more
    if draft.gold is not None and not grid:
        _expect_gold(draft, draft.gold)  # what is chosen beside it keeps its distance
    _search(draft, room, group=draft.gold.group if draft.gold and grid else None)
    if draft.gold is not None and not grid:
        draft.window.settle(len(draft.chosen) - gold_place(draft))
    if not draft.chosen and draft.gold is not None and grid:
        draft.gold = None  # alone in its grid it would be told apart; it comes with its text
        _search(draft, wanted, group=None)
    draft.handed_out = person.handed_out + len(draft.chosen) + (draft.gold is not None)


def gold_place(draft: Draft) -> int:
    """Before which of the chosen items the gold one stands (one image at a time)."""
    person = draft.person
    return min(max(person.gold_at - person.handed_out - 1, 0), len(draft.chosen))


def _expect_gold(draft: Draft, gold: Item) -> None:
    """With the position of the screen before it: gold has none of its own in the queue."""
    seen = draft.window.seen
    position = seen[-1].position if seen else draft.person.cursor
    draft.window.expect(Seen(position, gold.pair_id, gold.group, draft.second, (root(gold),)))


def _search(draft: Draft, wanted: int, *, group: str | None) -> None:
    """From the cursor on, then what was passed over before it, then with the last distance."""
    if wanted <= 0:
        return
    person = draft.person
    if not (is_grid(draft) or person.categories or person.exhausted_at):
        _take_from_cursor(draft, wanted)
        if len(draft.chosen) >= wanted:
            return
    for strict in (True, False):
        for part in _parts(draft.person):
            _take(draft, part, wanted - len(draft.chosen), group=group, strict=strict)
            if len(draft.chosen) >= wanted or (draft.chosen and is_grid(draft)):
                return
        if draft.chosen:
            return


def is_grid(draft: Draft) -> bool:
    """True if the images of one text come together."""
    return draft.person.campaign.mode == Mode.GRID


def _parts(person: Participation) -> list[Q]:
    """The parts of the queue in the order in which they are read."""
    if person.exhausted_at:
        return [Q(opened_at__gte=person.exhausted_at - SLACK)]
    parts = [Q(position__gte=person.cursor)]
    if person.cursor:
        parts.append(Q(position__lt=person.cursor))
    return parts


def _open_for(draft: Draft, part: Q, *, strict: bool) -> QuerySet[Item]:
    """Items of the part that may be given to this person now."""
    person, second = draft.person, draft.second
    rows = Item.objects.waiting().filter(part, campaign_id=person.campaign_id)
    if person.categories:
        rows = rows.filter(pair__category_id__in=person.categories)
    if strict:
        rows = rows.exclude(pair_id__in={seen.pair for seen in draft.window.near(second)})
    else:
        for seen in draft.window.nearest(second):
            rows = rows.exclude(Q(pair_id=seen.pair) & ~Q(group__startswith=seen.group))
    return not_touched(rows, person).order_by("position")


def _take(draft: Draft, part: Q, count: int, *, group: str | None, strict: bool) -> None:
    """Lock and choose up to ``count`` items of one part."""
    spare = SPARE
    rows = _open_for(draft, part, strict=strict)
    if group is not None:
        rows, spare = rows.filter(group=group), 0
    elif is_grid(draft):
        rows, spare = rows.filter(group=Subquery(rows.values("group")[:1])), 0
    _choose(draft, _locked(rows)[: count + spare], count, strict=strict)


def _locked(rows: QuerySet[Item]) -> QuerySet[Item]:
    return display(rows).select_for_update(skip_locked=True, no_key=True, of=("self",))


def _choose(draft: Draft, items: Iterable[Item], count: int, *, strict: bool) -> None:
    """Take those that are not too near to what comes before them."""
    taken = {item.pk for item in draft.chosen}
    for item in items:
        if count <= 0:
            return
        if item.pk not in taken and (is_grid(draft) or _fits(draft, item, strict=strict)):
            draft.chosen.append(item)
            count -= 1
            if not is_grid(draft):
                draft.window.push(_seen(item, draft.second))


def _take_from_cursor(draft: Draft, count: int) -> None:
    """`_take` for nearly every claim: one image at a time, all categories, from the cursor on."""
    person = draft.person
    pairs = padded([0, *{seen.pair for seen in draft.window.near(draft.second)}])
    spare = min(count - 1, SPARE)
    rows = prepared(
        ("from cursor", len(pairs), count),
        3 + len(pairs),
        lambda: _locked(
            not_touched_by(
                Item.objects.waiting()
                .filter(campaign_id=whole(0), position__gte=whole(2))
                .exclude(pair_id__in=[whole(3 + i) for i in range(len(pairs))]),
                whole(1),
            ).order_by("position")
        )[: count + spare],
    )(person.campaign_id, person.annotator_id, person.cursor, *pairs)
    _choose(draft, rows, count, strict=True)


def _fits(draft: Draft, item: Item, *, strict: bool) -> bool:
    return draft.window.allows(
        pair=item.pair_id, group=item.group, image=root(item), now=draft.second, strict=strict
    )


def root(item: Item) -> int:
    """The image of which this one is a near-duplicate, or itself."""
    return item.candidate.near_duplicate_of_id or item.candidate_id


def _seen(item: Item, second: int) -> Seen:
    return Seen(item.position, item.pair_id, item.group, second, (root(item),))
