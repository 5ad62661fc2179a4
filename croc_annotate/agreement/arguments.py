"""Arguments that the commands of this room share."""

from __future__ import annotations

from django.core.management.base import CommandError

from croc_annotate.annotation.models import Campaign


def campaign_named(slug: str | None) -> Campaign:
    """The campaign ``slug``, or the only one; raises CommandError with what helps."""
    campaigns = Campaign.objects.order_by("slug")
    if slug:
        campaigns = campaigns.filter(slug=slug)
    found = list(campaigns[:2])
    if len(found) == 1:
        return found[0]
    names = ", ".join(Campaign.objects.order_by("slug").values_list("slug", flat=True)[:10])
    if not names:
        raise CommandError("There is no campaign yet. Make one, or run import_ratings.")
    problem = f"No campaign “{slug}”." if slug else "There are several campaigns."
    raise CommandError(f"{problem} Give --campaign with one of: {names}")
