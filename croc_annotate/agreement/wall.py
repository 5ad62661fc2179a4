"""A campaign's images by what people and the rule said about them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib.auth import get_user_model
from django.db.models import Q

from croc_annotate.agreement.models import ItemConsensus
from croc_annotate.agreement.reading import pseudonyms
from croc_annotate.annotation.models import Judgement
from croc_annotate.prompts.models import ContrastPair

if TYPE_CHECKING:
    from collections.abc import Mapping

    from croc_annotate.agreement.models import ItemConsensusQuerySet
    from croc_annotate.annotation.models import Campaign

_EQUAL = {
    "generator": "candidate__generator__slug",
    "side": "candidate__side",
    "state": "state",
    "text_role": "text_role",
}
_PAIR = {"category": "category", "pair": "slug__startswith"}
_FROM = {
    "posterior_from": "posterior__gte",
    "posterior_to": "posterior__lte",
}


def wall_rows(campaign: Campaign, wanted: Mapping[str, Any]) -> ItemConsensusQuerySet:
    """Items of ``campaign`` that fit the filters, comparable images together.

    Keys: category, generator, side, state, text_role, pair (beginning), posterior_from,
    posterior_to, hash (beginning), annotator (name or pseudonym), verdict (of that annotator).
    """
    rows = ItemConsensus.objects.filter(campaign=campaign)
    for name, field in {**_EQUAL, **_FROM}.items():
        if wanted.get(name) not in (None, ""):
            rows = rows.filter(**{field: wanted[name]})
    for name, field in _PAIR.items():
        if wanted.get(name):
            pairs = ContrastPair.objects.filter(**{field: wanted[name]})
            rows = rows.filter(candidate__pair__in=list(pairs.values_list("pk", flat=True)))
    if wanted.get("hash"):
        beginning = wanted["hash"].lower()
        # A range, not LIKE: the index serves that under any collation. No hex digit is beyond "g".
        rows = rows.filter(candidate__sha256__gte=beginning, candidate__sha256__lt=f"{beginning}g")
    if wanted.get("annotator"):
        rows = rows.filter(item__in=_judged_by(campaign, wanted))
    return rows.order_by("pk")


def by_votes(wanted: Mapping[str, Any]) -> bool:
    """Whether the filters tell how people judged: by the posterior, or by somebody's verdict."""
    if wanted.get("annotator") and wanted.get("verdict"):
        return True
    return any(wanted.get(name) not in (None, "") for name in _FROM)


def part_of(
    rows: ItemConsensusQuerySet, *, after: int, size: int
) -> tuple[list[ItemConsensus], int | None]:
    """The next ``size`` rows behind item ``after``, and where the part after them begins.

    Keys first and the joined rows by their keys: the database never sorts the whole
    campaign, however deep a visitor scrolls.
    """
    pks = list(rows.filter(pk__gt=after).values_list("pk", flat=True)[: size + 1])
    shown = ItemConsensus.objects.filter(pk__in=pks[:size]).order_by("pk")
    found = list(shown.select_related("candidate__generator", "candidate__pair", "item__pair"))
    return found, pks[size - 1] if len(pks) > size else None


def _judged_by(campaign: Campaign, wanted: Mapping[str, Any]) -> Any:
    judged = Judgement.objects.current().filter(
        campaign=campaign, annotator_id__in=people_named(campaign, wanted["annotator"])
    )
    if wanted.get("verdict"):
        judged = judged.filter(verdict=wanted["verdict"])
    return judged.values("item_id")


def people_named(campaign: Campaign, name: str) -> list[int]:
    """People of a campaign by their name, or by their pseudonym in its files."""
    named = get_user_model().objects.filter(Q(username=name) | Q(display_name=name))
    found = list(named.values_list("pk", flat=True))
    if found:
        return found
    everybody = list(campaign.participations.values_list("annotator_id", flat=True)) or list(
        campaign.judgements.values_list("annotator_id", flat=True).distinct()
    )
    names = dict(zip(pseudonyms(campaign, everybody), everybody, strict=True))
    return [names[name]] if name in names else []
