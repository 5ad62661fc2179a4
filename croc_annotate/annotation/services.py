"""Acts of the annotation room that other rooms, commands and views call."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

from django.db import transaction
from django.utils import timezone

from croc_annotate.accounts.services import record_audit
from croc_annotate.annotation.answer_shapes import Answer
from croc_annotate.annotation.items import (
    close_items,
    make_known_item,
    open_items,
    recount_items,
)
from croc_annotate.annotation.judging import (
    AnswerRefusedError,
    claim_items,
    flag_item,
    record_one,
    release_items,
    skip_item,
    store_answers,
)
from croc_annotate.annotation.leases import expire_leases
from croc_annotate.annotation.models import (
    Campaign,
    CampaignState,
    ConsentText,
    Guideline,
    Judgement,
)
from croc_annotate.annotation.people import join_campaign
from croc_annotate.annotation.setting_aside import (
    pause_person,
    reinstate_judgements,
    request_more_judgements,
    requeue_skips,
    resume_person,
    set_aside_judgements,
)

if TYPE_CHECKING:
    from datetime import datetime

    from croc_annotate.accounts.models import User
    from croc_annotate.annotation.models import Item
    from croc_annotate.annotation.queue import Claim

__all__ = [
    "AnswerRefusedError",
    "claim",
    "claim_items",
    "close_items",
    "create_campaign",
    "edit_campaign",
    "expire_leases",
    "flag_item",
    "join_campaign",
    "make_known_item",
    "open_items",
    "pause_person",
    "publish_consent_text",
    "publish_guideline",
    "record_judgement",
    "recount_items",
    "reinstate_judgements",
    "release_items",
    "request_more_judgements",
    "requeue_skips",
    "resume_person",
    "set_aside_judgements",
    "set_campaign_state",
    "skip_item",
    "store_answers",
]

# Changing one of these changes what every item still needs.
_QUOTA_FIELDS = {"redundancy", "min_judgements", "max_judgements"}


def create_campaign(
    *, slug: str, title: str, actor: User | None = None, **settings: Any
) -> Campaign:
    """Make a campaign. Its items come with `open_items`; it hands out nothing until it is open.

    Raises ``ValidationError`` with a message for each field that is wrong.
    """
    campaign = Campaign(slug=slug, title=title, created_by=actor, **settings)
    campaign.full_clean()
    with transaction.atomic():
        campaign.save(force_insert=True)
        _audit(actor, "campaign.created", campaign)
    return campaign


def edit_campaign(*, campaign: Campaign, actor: User | None, **changes: Any) -> Campaign:
    """Change settings. A new redundancy reaches every item; order and seed only items made later."""
    before = {name: getattr(campaign, name) for name in changes}
    for name, value in changes.items():
        setattr(campaign, name, value)
    campaign.full_clean()
    changed = sorted(name for name, value in changes.items() if value != before[name])
    with transaction.atomic():
        campaign.save()
        if changed:
            _audit(actor, "campaign.edited", campaign, fields=changed)
    if _QUOTA_FIELDS & set(changed):
        recount_items(campaign=campaign, now=timezone.now())
    return campaign


def set_campaign_state(*, campaign: Campaign, state: str, actor: User | None) -> Campaign:
    """Open, pause or close a campaign. Opening makes the items that are missing.

    Answers that are on their way are stored in every state: only handing out stops.
    """
    campaign.state = CampaignState(state)
    if campaign.state == CampaignState.OPEN:
        open_items(campaign=campaign)
        campaign.refresh_from_db(fields=["distance"])
    with transaction.atomic():
        campaign.save(update_fields=["state"])
        _audit(actor, f"campaign.{campaign.state}", campaign)
    return campaign


def _audit(actor: User | None, action: str, campaign: Campaign, **details: Any) -> None:
    record_audit(
        actor=actor,
        action=action,
        subject_type="campaign",
        subject_id=campaign.pk,
        details={"slug": campaign.slug, **details},
    )


def publish_guideline(*, version: str, body: str, title: str = "Guideline") -> Guideline:
    """A new version of the guideline; the old ones stay. The same version again changes nothing."""
    return Guideline.objects.get_or_create(
        version=version, defaults={"body": body, "title": title}
    )[0]


def publish_consent_text(*, version: str, body: str) -> ConsentText:
    """A new version of the consent text; the old ones stay."""
    return ConsentText.objects.get_or_create(version=version, defaults={"body": body})[0]


def claim(
    *, campaign: Campaign, annotator: User, count: int = 1, now: datetime | None = None
) -> Claim:
    """`claim_items` for callers that have the campaign at hand."""
    found, _ = claim_items(
        slug=campaign.slug, annotator=annotator, count=count, now=now or timezone.now()
    )
    return found


def record_judgement(
    *,
    item: Item,
    annotator: User,
    verdict: str,
    client_key: uuid.UUID | None = None,
    active_ms: int | None = None,
    mode: str = "focus",
    reason: str = "",
    remark: str = "",
    source: str = "web",
    answered_at: datetime | None = None,
    now: datetime | None = None,
) -> Judgement:
    """Store one answer about an item, whether or not it was handed out before.

    The same ``client_key`` again returns the row that there is. Another answer of the same
    person supersedes the earlier one. Without a free place it is kept and marked surplus.
    Raises `AnswerRefusedError`.
    """
    answer = Answer(
        client_key=client_key or uuid.uuid4(),
        item_key=item.key,
        verdict=verdict,
        active_ms=active_ms,
        mode=mode,
        reason=reason,
        remark=remark,
        source=source,
        answered_at=answered_at,
    )
    return record_one(item=item, annotator=annotator, answer=answer, now=now or timezone.now())
