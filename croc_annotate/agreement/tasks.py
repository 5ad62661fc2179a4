"""Background work of this room: ids in, services called, safe to run twice."""

from __future__ import annotations

from celery import shared_task

from croc_annotate.agreement.statistics import fingerprint, newest, renew
from croc_annotate.annotation.models import Campaign, CampaignState


@shared_task(name="agreement.renew_statistics")
def renew_statistics(campaign_id: int) -> None:
    """Compute the statistics of one campaign, unless another worker is at it."""
    campaign = Campaign.objects.filter(pk=campaign_id).first()
    if campaign:
        renew(campaign=campaign)


@shared_task(name="agreement.renew_stale_statistics")
def renew_stale_statistics() -> None:
    """Compute what has changed since it was last computed, campaign by campaign."""
    for campaign in Campaign.objects.exclude(state=CampaignState.DRAFT):
        found = newest(campaign, "overview")
        if found is None or found.parameters != fingerprint(campaign):
            renew_statistics.delay(campaign.pk)
