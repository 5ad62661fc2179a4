"""Compare what each rule would verify in a campaign, with its estimated label error."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from croc_annotate.agreement import consensus, rule_comparison
from croc_annotate.agreement import tables as t
from croc_annotate.agreement.consensus import Rule, RuleRefusedError
from croc_annotate.agreement.modelling import votes_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from croc_annotate.agreement.modelling import Model
    from croc_annotate.agreement.reading import CampaignData, GoldVotes

Row = dict[str, Any]

THRESHOLDS = (0.8, 0.9, 0.95, 0.99)


def rules() -> list[Rule]:
    """The rules that are compared."""
    return [
        Rule("majority"),
        Rule("unanimous"),
        *(Rule("posterior", threshold=threshold) for threshold in THRESHOLDS),
    ]


def title_of(rule: Rule) -> str:
    """A rule in a few words."""
    return f"posterior ≥ {rule.threshold:g}" if rule.name == "posterior" else rule.name


def compare_rules(
    data: CampaignData, gold: GoldVotes, model: Model, adjudicated: NDArray[np.int8]
) -> list[Row]:
    """One row per rule: verified images by category, and estimated errors of those labels."""
    return [_row(rule, data, gold, model, adjudicated) for rule in rules()]


def gold_rates(gold: GoldVotes) -> rule_comparison.GoldRates:
    """All people's votes on own-text gold, together."""
    own = gold.role == t.OWN
    match, accept = gold.truth[own] == t.ACCEPT, gold.verdict[own] == t.ACCEPT
    return rule_comparison.GoldRates(
        hits=int((match & accept).sum()),
        matches=int(match.sum()),
        correct_rejects=int((~match & ~accept).sum()),
        others=int((~match).sum()),
    )


def _row(
    rule: Rule, data: CampaignData, gold: GoldVotes, model: Model, adjudicated: NDArray[np.int8]
) -> Row:
    row: Row = {"title": title_of(rule), **rule.as_dict(), "refused": ""}
    votes = votes_of(data)
    if rule.name == "posterior" and model.reason:
        return {**row, "refused": model.reason, "verified": None, "by_category": {}}
    try:
        states = consensus.decide(
            rule, votes, data.policy, posterior=model.posterior, adjudicated=adjudicated
        )
    except RuleRefusedError as refused:
        return {**row, "refused": str(refused), "verified": None, "by_category": {}}
    own = data.items.role == t.OWN
    accepted = own & (states == consensus.ACCEPTED)
    by_votes = accepted & (adjudicated == t.UNSURE)
    from_gold = rule_comparison.error_from_gold(
        by_votes, votes.accept, votes.reject, data.items.category, gold_rates(gold)
    )
    counts = np.bincount(data.items.category[accepted], minlength=len(data.items.categories))
    used = np.unique(data.items.category[own])
    return {
        **row,
        "verified": int(accepted.sum()),
        "rejected": int((own & (states == consensus.REJECTED)).sum()),
        "disputed": int((own & (states == consensus.DISPUTED)).sum()),
        "pending": int((own & (states == consensus.PENDING)).sum()),
        "by_category": {data.items.categories[k]: int(counts[k]) for k in used},
        "error_model": asdict(rule_comparison.error_from_model(by_votes, model.posterior)),
        "error_gold": asdict(from_gold),
    }
