"""Judgements made elsewhere, brought in as a campaign of their own."""

from __future__ import annotations

import uuid
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import transaction

from croc_annotate.accounts.models import User
from croc_annotate.annotation.items import add_items, recount_items
from croc_annotate.annotation.models import Campaign, CampaignState, Item, Judgement, TextRole
from croc_annotate.annotation.rating_files import RatingFileError, verdict_of
from croc_annotate.candidates.models import Candidate
from croc_annotate.lib.hashing import keyed_pseudonym

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from croc_annotate.annotation.rating_files import RatingRow

SOURCE = "import"
DEFAULT_SLUG = "imported"
_KEYS = uuid.UUID("8d6c1f0e-6a53-4c5c-9d3f-4f6c0b8a7e21")
CHUNK = 2000


@dataclass(frozen=True, slots=True)
class RatingReport:
    """What an import did."""

    campaign: str
    created: int
    unchanged: int
    corrected: int
    raters: int
    items: int


def import_ratings(
    *,
    rows: Sequence[RatingRow],
    accept_from: float,
    reject_to: float,
    campaign: Campaign | None,
    now: datetime,
    named_by: str = "source_name",
) -> RatingReport:
    """Store ratings as judgements of the images with these names (a field of Candidate).

    A second import of the same file changes nothing; a changed rating corrects the earlier
    one. Raises `RatingFileError` naming every file that no image or several images bear.
    """
    images = _images(rows, named_by)
    with transaction.atomic():
        campaign = campaign or _own_campaign()
        add_items(campaign=campaign, candidates=list(images.values()), now=now)
        items = dict(
            Item.objects.filter(
                campaign=campaign,
                candidate_id__in=[image.pk for image in images.values()],
                text_role=TextRole.OWN,
            ).values_list("candidate_id", "pk")
        )
        raters = _raters({row.rater for row in rows})
        wanted = {
            (items[images[row.file].pk], raters[row.rater].pk): verdict_of(
                row.rating, accept_from=accept_from, reject_to=reject_to
            )
            for row in rows
        }
        counts = _store(campaign, wanted, now)
        _settle(campaign, wanted, now)
    return RatingReport(campaign.slug, *counts, raters=len(raters), items=len(images))


def _images(rows: Sequence[RatingRow], named_by: str) -> dict[str, Candidate]:
    names = {row.file: row.line for row in rows}
    found: dict[str, list[Candidate]] = {name: [] for name in names}
    for candidate in Candidate.objects.rendered().filter(**{f"{named_by}__in": list(names)}):
        found[getattr(candidate, named_by)].append(candidate)
    faults = [
        f"line {names[name]}: "
        + (f"no image {name} was imported" if not images else f"several images are called {name}")
        for name, images in found.items()
        if len(images) != 1
    ]
    if faults:
        raise RatingFileError("\n".join(faults[:20]))
    return {name: images[0] for name, images in found.items()}


def _own_campaign() -> Campaign:
    return Campaign.objects.get_or_create(
        slug=DEFAULT_SLUG,
        defaults={
            "title": "Imported judgements",
            "state": CampaignState.CLOSED,
            "min_judgements": 1,
            "mark_difference": False,
        },
    )[0]


def _raters(names: set[str]) -> dict[str, User]:
    """An account that nobody can sign in with for each rater; its name does not tell theirs."""
    raters = {}
    for name in sorted(names):
        login = keyed_pseudonym(settings.PSEUDONYM_KEY, f"rater:{name}", prefix="rater-")
        raters[name], made = User.objects.get_or_create(
            username=login, defaults={"is_active": False, "display_name": ""}
        )
        if made:
            raters[name].set_unusable_password()
            raters[name].save(update_fields=["password"])
    return raters


def _store(
    campaign: Campaign, wanted: dict[tuple[int, int], str], now: datetime
) -> tuple[int, int, int]:
    """New, unchanged and corrected judgements."""
    current = {
        (row.item_id, row.annotator_id): row
        for row in Judgement.objects.current().filter(
            campaign=campaign, item_id__in={item for item, _ in wanted}
        )
    }
    new, closing, unchanged = [], [], 0
    for (item, rater), verdict in wanted.items():
        old = current.get((item, rater))
        if old is not None and old.verdict == verdict:
            unchanged += 1
            continue
        if old is not None:
            closing.append(old.pk)
        new.append(_judgement(campaign, item, rater, verdict, old, now))
    Judgement.objects.filter(pk__in=closing).update(superseded_at=now)
    Judgement.objects.bulk_create(new, batch_size=CHUNK)
    return len(new) - len(closing), unchanged, len(closing)


def _judgement(
    campaign: Campaign, item: int, rater: int, verdict: str, old: Judgement | None, now: datetime
) -> Judgement:
    turn = old.pk if old else 0
    return Judgement(
        campaign=campaign,
        item_id=item,
        annotator_id=rater,
        verdict=verdict,
        mode=SOURCE,
        source=SOURCE,
        client_key=uuid.uuid5(_KEYS, f"{campaign.slug}:{item}:{rater}:{turn}"),
        supersedes=old,
        answered_at=now,
        created_at=now,
    )


def _settle(campaign: Campaign, wanted: dict[tuple[int, int], str], now: datetime) -> None:
    """In the import's own campaign an item is complete with as many judgements as any has."""
    items = campaign.items.filter(pk__in={item for item, _ in wanted})
    if campaign.slug == DEFAULT_SLUG:
        most = max(Counter(item for item, _ in wanted).values(), default=1)
        if most > campaign.min_judgements:
            campaign.min_judgements = most
            campaign.max_judgements = max(campaign.max_judgements, most)
            campaign.save(update_fields=["min_judgements", "max_judgements"])
            items = campaign.items.all()
    recount_items(campaign=campaign, items=items, now=now)
