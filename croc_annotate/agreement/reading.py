"""Read a campaign's items, judgements, gold votes and adjudications as columns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from django.conf import settings
from django.contrib.auth import get_user_model
from django.db.models import Case, Count, F, IntegerField, QuerySet, Value, When
from numpy.typing import NDArray

from croc_annotate.agreement import tables as t
from croc_annotate.agreement.models import Adjudication
from croc_annotate.annotation.models import (
    Campaign,
    Item,
    Judgement,
    Purpose,
    TextRole,
    Verdict,
)
from croc_annotate.candidates.models import Candidate, Generator
from croc_annotate.lib.columns import EpochSeconds, read_columns
from croc_annotate.lib.hashing import keyed_pseudonym
from croc_annotate.prompts.models import Category, ContrastPair, Side

if TYPE_CHECKING:
    from collections.abc import Sequence

    from croc_annotate.annotation.redundancy import Policy

Ints = NDArray[np.int64]
Codes = NDArray[np.int8]

_VERDICTS = [Verdict.ACCEPT, Verdict.REJECT, Verdict.UNSURE]
_VERDICT_CODES = np.array([t.ACCEPT, t.REJECT, t.UNSURE], np.int8)
_ROLES = [TextRole.OWN, TextRole.OTHER]
_SIDES = [Side.PROMPT, Side.CONTRAST, Side.ALT_CONTRAST]
_WEEK = 7 * 86_400
_FIRST_MONDAY = 4 * 86_400  # 1970-01-01 was a Thursday


@dataclass(frozen=True, slots=True)
class ItemColumns:
    """The work items of a campaign, in order of their id."""

    item_id: Ints
    candidate_id: Ints
    pair_id: Ints
    generator_id: Ints
    side: Ints
    role: Codes
    extra: Ints  # judgements that a reviewer asked for on top
    closed: NDArray[np.bool_]
    closed_by_review: NDArray[np.bool_]
    category: Ints
    cluster: Ints  # versions of one pair are one cluster
    categories: list[str]
    pair_slugs: list[str]  # by cluster

    def rows_of(self, item_ids: Ints) -> Ints:
        """Positions of the given items (which must be there)."""
        return np.searchsorted(self.item_id, item_ids)


@dataclass(frozen=True, slots=True)
class CampaignData:
    """Everything that the statistics of a campaign are computed from."""

    campaign: Campaign
    items: ItemColumns
    table: t.JudgementTable
    rater_ids: Ints
    active_ms: Ints  # -1 where it is not known
    at: Ints  # seconds since 1970
    judgement_id: Ints

    @property
    def policy(self) -> Policy:
        """What the campaign asks for per item."""
        return self.campaign.policy


def item_columns(campaign: Campaign) -> ItemColumns:
    """Read the work items of ``campaign`` with what they show."""
    rows = Item.objects.filter(campaign=campaign, purpose=Purpose.WORK).order_by("id")
    found = read_columns(
        rows,
        {
            "item": "id",
            "candidate": "candidate_id",
            "pair": "pair_id",
            "generator": "candidate__generator_id",
            "side": _code("candidate__side", _SIDES),
            "role": _code("text_role", _ROLES),
            "extra": "extra",
            "closed": _flag(closed_at__isnull=False),
            "closed_by_review": _flag(closed_by_review=True),
        },
    )
    categories, category, slugs, cluster = _pair_facts(found["pair"])
    return ItemColumns(
        item_id=found["item"],
        candidate_id=found["candidate"],
        pair_id=found["pair"],
        generator_id=found["generator"],
        side=found["side"],
        role=found["role"].astype(np.int8),
        extra=found["extra"],
        closed=found["closed"].astype(bool),
        closed_by_review=found["closed_by_review"].astype(bool),
        category=category,
        cluster=cluster,
        categories=categories,
        pair_slugs=slugs,
    )


def _pair_facts(pair_ids: Ints) -> tuple[list[str], Ints, list[str], Ints]:
    """Category and cluster of each item's pair, as codes with their names."""
    categories = list(Category.objects.values_list("slug", flat=True))
    distinct, inverse = np.unique(pair_ids, return_inverse=True)
    facts = {
        pk: (category, slug)
        for pk, category, slug in ContrastPair.objects.filter(pk__in=distinct.tolist()).values_list(
            "pk", "category_id", "slug"
        )
    }
    slugs = sorted({slug for _, slug in facts.values()})
    number = {slug: i for i, slug in enumerate(slugs)}
    place = {category: i for i, category in enumerate(categories)}
    category_of = np.array([place[facts[pk][0]] for pk in distinct.tolist()], dtype=np.int64)
    cluster_of = np.array([number[facts[pk][1]] for pk in distinct.tolist()], dtype=np.int64)
    return categories, category_of[inverse], slugs, cluster_of[inverse]


def campaign_data(campaign: Campaign, *, also: QuerySet[Judgement] | None = None) -> CampaignData:
    """Read all counted judgements of ``campaign`` in one query, beside its items.

    ``also`` are judgements that do not count, to see what they would change.
    """
    items = item_columns(campaign)
    counted: QuerySet[Judgement] = Judgement.objects.counted(campaign)
    if also is not None:
        counted = counted | also
    counted = counted.filter(item__purpose=Purpose.WORK)
    versions, modes = _values(counted, "guideline_version"), _values(counted, "mode")
    found = read_columns(
        counted.order_by("item_id", "id"),
        {
            "id": "id",
            "item": "item_id",
            "rater": "annotator_id",
            "verdict": _code("verdict", _VERDICTS),
            "version": _code("guideline_version", versions),
            "mode": _code("mode", modes),
            "at": EpochSeconds(F("created_at")),
            "active": _or_minus_one("active_ms"),
        },
    )
    raters, rater = np.unique(found["rater"], return_inverse=True)
    weeks, week = np.unique((found["at"] - _FIRST_MONDAY) // _WEEK, return_inverse=True)
    table = _table(
        items,
        found,
        rater=rater,
        week=week,
        labels={
            "week": _week_names(weeks),
            "guideline_version": [version or "none" for version in versions],
            "mode": modes,
            "rater": pseudonyms(campaign, raters.tolist()),
        },
    )
    return CampaignData(campaign, items, table, raters, found["active"], found["at"], found["id"])


def _table(
    items: ItemColumns,
    found: dict[str, Ints],
    *,
    rater: Ints,
    week: Ints,
    labels: dict[str, list[str]],
) -> t.JudgementTable:
    """Judgements and their items in the numbering of the pure modules."""
    generators, generator = _generators(items.generator_id)
    labels |= {
        "category": items.categories,
        "side": [str(side.value) for side in _SIDES],
        "generator": generators,
    }
    return t.JudgementTable(
        item=items.rows_of(found["item"]),
        rater=rater,
        verdict=_VERDICT_CODES[found["verdict"]],
        codes={"week": week, "guideline_version": found["version"], "mode": found["mode"]},
        cluster=items.cluster,
        role=items.role,
        item_codes={"category": items.category, "side": items.side, "generator": generator},
        labels=labels,
        item_id=items.item_id,
    )


def with_judgements(data: CampaignData, keep: NDArray[np.bool_]) -> CampaignData:
    """The data with some judgements only; items that they had closed are open again."""
    return replace(
        data,
        items=replace(data.items, closed=data.items.closed_by_review),
        table=data.table.only(keep),
        active_ms=data.active_ms[keep],
        at=data.at[keep],
        judgement_id=data.judgement_id[keep],
    )


@dataclass(frozen=True, slots=True)
class GoldVotes:
    """Current votes on items whose truth is known."""

    item_id: Ints
    rater_id: Ints
    verdict: Codes
    truth: Codes
    category: Ints
    role: Codes
    at: Ints


def gold_votes(campaign: Campaign) -> GoldVotes:
    """Read the votes on gold items; practice and quiz answers do not count."""
    categories = list(Category.objects.values_list("slug", flat=True))
    rows = (
        Judgement.objects.current()
        .votes()
        .filter(campaign=campaign, purpose=Purpose.GOLD, set_aside_at__isnull=True)
        .filter(item__known_verdict__in=[Verdict.ACCEPT, Verdict.REJECT])
        .order_by("id")
    )
    found = read_columns(
        rows,
        {
            "item": "item_id",
            "rater": "annotator_id",
            "verdict": _code("verdict", _VERDICTS),
            "truth": _code("item__known_verdict", _VERDICTS),
            "category": _code("item__pair__category_id", categories),
            "role": _code("item__text_role", _ROLES),
            "at": EpochSeconds(F("created_at")),
        },
    )
    return GoldVotes(
        item_id=found["item"],
        rater_id=found["rater"],
        verdict=_VERDICT_CODES[found["verdict"]],
        truth=_VERDICT_CODES[found["truth"]],
        category=found["category"],
        role=found["role"].astype(np.int8),
        at=found["at"],
    )


def adjudications_in_force(campaign: Campaign, items: ItemColumns) -> Codes:
    """Return per item 1 (accept), 0 (reject) or -1 (not adjudicated)."""
    found = read_columns(
        Adjudication.objects.in_force().filter(campaign=campaign),
        {
            "candidate": "candidate_id",
            "role": _code("text_role", _ROLES),
            "verdict": _code("verdict", _VERDICTS),
        },
    )
    decided = {
        (candidate, role): _VERDICT_CODES[verdict]
        for candidate, role, verdict in zip(*found.values(), strict=True)
    }
    column = np.full(items.item_id.size, t.UNSURE, np.int8)
    if decided:
        wanted = np.isin(items.candidate_id, found["candidate"])
        for row in np.flatnonzero(wanted):
            key = (items.candidate_id[row], items.role[row])
            column[row] = decided.get(key, t.UNSURE)
    return column


def pseudonyms(campaign: Campaign, user_ids: Sequence[int]) -> list[str]:
    """The names of people in the files of a campaign: they tell nothing about them."""
    username = dict(
        get_user_model().objects.filter(pk__in=list(user_ids)).values_list("pk", "username")
    )
    return [
        keyed_pseudonym(settings.PSEUDONYM_KEY, f"{campaign.slug}\x1f{username[pk]}")
        for pk in user_ids
    ]


def _code(field: str, values: Sequence[str]) -> Case:
    """The position of a field's value in ``values``, as a number the database computes."""
    whens = [When(**{field: value}, then=Value(i)) for i, value in enumerate(values)]
    return Case(*whens, default=Value(len(values)), output_field=IntegerField())


def _flag(**condition: bool) -> Case:
    return Case(When(**condition, then=Value(1)), default=Value(0), output_field=IntegerField())


def _or_minus_one(field: str) -> Case:
    whens = [When(**{f"{field}__isnull": True}, then=Value(-1))]
    return Case(*whens, default=F(field), output_field=IntegerField())


def _values(rows: QuerySet[Any], field: str) -> list[str]:
    return sorted(rows.order_by().values_list(field, flat=True).distinct())


def _generators(generator_ids: Ints) -> tuple[list[str], Ints]:
    distinct, codes = np.unique(generator_ids, return_inverse=True)
    slug = dict(Generator.objects.values_list("pk", "slug"))
    return [slug[pk] for pk in distinct.tolist()], codes


def _week_names(weeks: Ints) -> list[str]:
    """The Monday of each week, as a date."""
    seconds = weeks * _WEEK + _FIRST_MONDAY
    return [str(day) for day in seconds.astype("datetime64[s]").astype("datetime64[D]")]


def known_items(campaign: Campaign) -> dict[tuple[str, str, str], int]:
    """Gold and training items by category, generator and side: they are no work to come."""
    rows = Item.objects.filter(campaign=campaign, text_role=TextRole.OWN)
    counted = rows.exclude(purpose=Purpose.WORK).values_list(
        "pair__category_id", "candidate__generator__slug", "candidate__side"
    )
    found = counted.annotate(n=Count("id")).order_by()
    return {(category, generator, side): n for category, generator, side, n in found}


def candidate_states(campaign: Campaign) -> dict[tuple[str, str, str], dict[str, int]]:
    """Candidates of the campaign's scope by category, generator and side, then by state."""
    rows = Candidate.objects.filter(pair__active=True)
    for names, field in (
        (campaign.categories, "pair__category_id__in"),
        (campaign.generators, "generator__slug__in"),
        (campaign.banks, "pair__bank__in"),
    ):
        if names:
            rows = rows.filter(**{field: names})
    counted = rows.values_list("pair__category_id", "generator__slug", "side", "state")
    found: dict[tuple[str, str, str], dict[str, int]] = {}
    for category, generator, side, state, n in counted.annotate(n=Count("id")).order_by():
        found.setdefault((category, generator, side), {})[state] = n
    return found
