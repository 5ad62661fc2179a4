"""What a judging page is told: nothing about generator, side, purpose or anybody's verdict."""

from __future__ import annotations

import contextlib
from functools import lru_cache
from statistics import median
from typing import TYPE_CHECKING, Any

from django.core.cache import cache
from django.db.models import Count, Q
from django.urls import reverse
from redis.exceptions import RedisError

from croc_annotate.annotation.models import Item, Purpose
from croc_annotate.annotation.stages import quota
from croc_annotate.lib.textdiff import differing_spans, text_direction, utf16_spans

if TYPE_CHECKING:
    from croc_annotate.annotation.answer_shapes import Result
    from croc_annotate.annotation.models import Campaign, Judgement, Participation
    from croc_annotate.annotation.queue import Claim, Handed

TOTALS_SECONDS = 20


@lru_cache(maxsize=4096)
def marked_spans(text: str, other: str) -> list[list[int]]:
    """The words of ``text`` that ``other`` does not have, in JavaScript's units."""
    return utf16_spans(text, differing_spans(text, other)[0])


@lru_cache(maxsize=4096)
def _direction(text: str) -> str:
    return text_direction(text)


@lru_cache(maxsize=16384)
def image_addresses(key: str) -> tuple[str, str]:
    """Where the display copy and the thumbnail of an image are served."""
    return reverse("candidates:display", args=[key]), reverse("candidates:preview", args=[key])


def item_json(item: Item, *, mark: bool) -> dict[str, Any]:
    """One item as it is shown."""
    text, candidate = item.text, item.candidate
    image, preview = image_addresses(candidate.key)
    return {
        "item": item.key,
        "group": item.group[:16],
        "text": text,
        "spans": marked_spans(text, item.other_text) if mark else [],
        "dir": _direction(text),
        "category": item.pair.category.title,
        "image": image,
        "preview": preview,
        "width": candidate.width,
        "height": candidate.height,
    }


def handed_json(handed: Handed, campaign: Campaign) -> dict[str, Any]:
    """One item in a person's hands."""
    return {
        "assignment": str(handed.assignment),
        **item_json(handed.item, mark=campaign.mark_difference),
        "expires_at": handed.expires_at.isoformat(),
    }


def claim_json(claim: Claim, person: Participation, stage: str) -> dict[str, Any]:
    """The answer to a claim."""
    return {
        "state": claim.state,
        "retry_at": claim.retry_at.isoformat() if claim.retry_at else None,
        "stage": stage,
        "items": [handed_json(handed, person.campaign) for handed in claim.items],
        # At the end people look at the numbers: they must be those of now.
        "progress": progress_json(person, fresh=claim.state in {"finished", "nothing"}),
    }


def result_json(result: Result) -> dict[str, Any]:
    """What became of one answer."""
    row: dict[str, Any] = {
        "client_key": str(result.client_key),
        "status": result.status,
        "message": result.message,
    }
    if result.correct is not None:
        row["feedback"] = {"correct": result.correct, "explanation": result.explanation}
    return row


def judgement_json(row: Judgement, *, mark: bool) -> dict[str, Any]:
    """One of the person's own answers."""
    return {
        **item_json(row.item, mark=mark),
        "verdict": row.verdict,
        "at": row.answered_at.isoformat(),
    }


def progress_json(person: Participation, *, fresh: bool = False) -> dict[str, Any]:
    """Three counts, each with its own name: my answers, my quota, the campaign's items."""
    complete, total = campaign_totals(person.campaign_id, fresh=fresh)
    return {
        "mine": person.answered,
        "quota": quota(person),
        "items_complete": complete,
        "items_total": total,
    }


def pace_ms(person: Participation) -> int | None:
    """Median active time of the person's last answers; None before the first."""
    return round(median(person.paces)) if person.paces else None


def campaign_totals(campaign_id: int, *, fresh: bool = False) -> tuple[int, int]:
    """Complete and all items of the job, at most `TOTALS_SECONDS` old unless ``fresh``."""
    key = f"annotation:totals:{campaign_id}"
    found = None if fresh else _remembered(key)
    if found is None:
        row = Item.objects.filter(campaign_id=campaign_id, purpose=Purpose.WORK).aggregate(
            complete=Count("pk", filter=Q(closed_at__isnull=False)), total=Count("pk")
        )
        found = row["complete"], row["total"]
        # A cache that is down slows the page; it must not stop the judging.
        with contextlib.suppress(RedisError):
            cache.set(key, found, TOTALS_SECONDS)
    return found


def _remembered(key: str) -> tuple[int, int] | None:
    found: tuple[int, int] | None = None
    with contextlib.suppress(RedisError):
        found = cache.get(key)
    return found
