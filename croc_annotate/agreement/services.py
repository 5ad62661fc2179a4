"""Acts of this room: reports, decisions of reviewers, statistics that are kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from croc_annotate.agreement import reporting
from croc_annotate.agreement import tables as t
from croc_annotate.agreement.reading import CampaignData, campaign_data

if TYPE_CHECKING:
    from collections.abc import Sequence

    from croc_annotate.annotation.models import Campaign

TEXT_ROLE = "text_role"
BY = (*t.DIMENSIONS, TEXT_ROLE)


def agreement_report(
    *,
    campaign: Campaign,
    by: Sequence[str] = (),
    draws: int = reporting.DRAWS,
    seed: int = reporting.SEED,
) -> dict[str, Any]:
    """Return the agreement of ``campaign`` over own texts, and apart from it over other texts."""
    return report_of(campaign_data(campaign), by=by, draws=draws, seed=seed)


def report_of(
    data: CampaignData,
    *,
    by: Sequence[str] = (),
    draws: int = reporting.DRAWS,
    seed: int = reporting.SEED,
) -> dict[str, Any]:
    """The agreement report from columns already read; raises ValueError on an unknown ``by``."""
    unknown = [name for name in by if name not in BY]
    if unknown:
        raise ValueError(f"unknown dimension “{unknown[0]}”: use {', '.join(BY)}")
    adaptive = data.policy.adaptive
    dimensions = [name for name in by if name != TEXT_ROLE]

    def of_role(role: int) -> dict[str, Any]:
        table = data.table.of_role(role)
        return reporting.report(
            table, by=dimensions, first_two_only=adaptive, draws=draws, seed=seed
        )

    found = of_role(t.OWN)
    other = of_role(t.OTHER) if (data.items.role == t.OTHER).any() else None
    if TEXT_ROLE in by:
        found["by"][TEXT_ROLE] = {"own": found["all"]}
        if other:
            found["by"][TEXT_ROLE]["other"] = other["all"]
    if other:
        found["other"] = other
    # Databases sort the keys of JSON: the order of the labels is kept apart.
    found["order"] = {name: list(rows) for name, rows in found["by"].items()}
    found["campaign"] = data.campaign.slug
    found["simulated"] = data.campaign.is_simulated
    found["first_two_votes_only"] = adaptive
    found["bootstrap"] = {"draws": draws, "seed": seed, "unit": "contrast pair", "level": 0.95}
    return found
