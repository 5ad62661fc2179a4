"""What other rooms and the pages ask about a campaign's consensus."""

from __future__ import annotations

from typing import TYPE_CHECKING

from croc_annotate.agreement.consensus import Rule
from croc_annotate.agreement.modelling import ConsensusTable, consensus_table, fit_campaign
from croc_annotate.agreement.reading import adjudications_in_force, campaign_data, gold_votes

if TYPE_CHECKING:
    from croc_annotate.agreement.reading import CampaignData
    from croc_annotate.annotation.models import Campaign

__all__ = ["ConsensusTable", "campaign_consensus", "rule_of"]


def rule_of(campaign: Campaign) -> Rule:
    """The rule that the campaign was set up with."""
    if campaign.rule == "posterior":
        return Rule("posterior", threshold=campaign.posterior_threshold)
    return Rule("unanimous" if campaign.rule == "unanimous" else "majority")


def campaign_consensus(
    *, campaign: Campaign, rule: Rule | None = None, data: CampaignData | None = None
) -> ConsensusTable:
    """Decide every work item of ``campaign``; without ``rule`` by the campaign's own.

    ``data`` are its judgements where the caller has read them already. Raises RuleRefusedError
    where the rule cannot be applied, with the reason.
    """
    data = data or campaign_data(campaign)
    model = fit_campaign(data, gold_votes(campaign))
    adjudicated = adjudications_in_force(campaign, data.items)
    return consensus_table(data, rule or rule_of(campaign), model, adjudicated)
