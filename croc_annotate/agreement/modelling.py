"""From a campaign's columns to a Dawid–Skene fit and a table of consensus."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from croc_annotate.agreement import consensus, dawid_skene
from croc_annotate.agreement import tables as t

if TYPE_CHECKING:
    from croc_annotate.agreement.reading import CampaignData, GoldVotes

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

TOO_FEW_RATERS = "the model needs at least three annotators"
_ROLES = np.array(["own", "other"])


@dataclass(frozen=True, slots=True)
class Model:
    """A fit of a campaign: items in the order of its columns, people by their id."""

    fit: dawid_skene.Fit
    posterior: Floats  # per work item
    rater_ids: Ints
    priors: dict[str, float]

    @property
    def reason(self) -> str:
        """Why there is no fit; empty where there is one."""
        return self.fit.reason

    def as_dict(self) -> dict[str, Any]:
        """Facts to keep beside numbers that came from the fit."""
        return {
            "model": "two-coin Dawid–Skene",
            "iterations": self.fit.iterations,
            "converged": self.fit.converged,
            "priors": self.priors,
            "reason": self.reason,
        }


@dataclass(frozen=True, slots=True)
class ConsensusTable:
    """One row per work item of a campaign, as columns of one length."""

    item_id: Ints
    candidate_id: Ints
    text_role: NDArray[np.str_]
    state: NDArray[np.str_]
    code: NDArray[np.int8]  # the same as consensus.PENDING …
    verified_by: NDArray[np.str_]
    n_accept: Ints
    n_reject: Ints
    n_unsure: Ints
    posterior: Floats
    complete: NDArray[np.bool_]
    rule: consensus.Rule
    model: dict[str, Any] = field(default_factory=dict)


def fit_campaign(data: CampaignData, gold: GoldVotes) -> Model:
    """Fit people and items, each category and text role with a prior of its own."""
    raters = np.union1d(data.rater_ids, gold.rater_id)
    votes = _vote_list(data, gold, raters)
    n_items = data.items.item_id.size
    if np.unique(votes.rater).size < 3 and not gold.item_id.size:
        fit = dawid_skene.no_fit(votes, TOO_FEW_RATERS)
    else:
        fit = dawid_skene.fit(votes)
    names = [
        f"{category}" if role == t.OWN else f"{category} (other text)"
        for category in data.items.categories
        for role in (t.OWN, t.OTHER)
    ]
    used = np.unique(votes.category[:n_items])
    priors = {names[k]: float(fit.prior[k]) for k in used if not np.isnan(fit.prior[k])}
    return Model(fit, fit.posterior[:n_items], raters, priors)


def _vote_list(data: CampaignData, gold: GoldVotes, raters: Ints) -> dawid_skene.VoteList:
    """Work votes first; gold items stand behind them with their truth."""
    table = data.table.only(data.table.verdict != t.UNSURE)
    n_items, groups = data.items.item_id.size, 2 * len(data.items.categories)
    gold_ids, gold_item = np.unique(gold.item_id, return_inverse=True)
    first = np.zeros(gold_ids.size, np.int64)
    first[gold_item] = np.arange(gold_item.size)
    rater = np.searchsorted(raters, data.rater_ids)[table.rater]
    return dawid_skene.VoteList(
        item=np.concatenate([table.item, gold_item + n_items]),
        rater=np.concatenate([rater, np.searchsorted(raters, gold.rater_id)]),
        vote=np.concatenate([table.verdict, gold.verdict]),
        category=np.concatenate(
            [
                data.items.category * 2 + data.items.role,
                gold.category[first] * 2 + gold.role[first],
            ]
        ),
        truth=np.concatenate([np.full(n_items, -1, np.int8), gold.truth[first]]),
        n_raters=raters.size,
        n_categories=groups,
    )


def votes_of(data: CampaignData) -> consensus.Votes:
    """Counts per work item, and whether the item needs no further judgement."""
    accept, reject, unsure = data.table.counts()
    done = consensus.complete(data.policy, accept, reject, unsure, data.items.extra)
    complete = done | data.items.closed
    return consensus.Votes(accept, reject, unsure, complete)


def judgements_left(data: CampaignData, votes: consensus.Votes) -> Ints:
    """Judgements that each work item certainly still gets; none where it is closed."""
    left = consensus.needed(data.policy, votes.accept, votes.reject, votes.unsure, data.items.extra)
    return np.where(votes.complete, 0, left)


def consensus_table(
    data: CampaignData, rule: consensus.Rule, model: Model, adjudicated: NDArray[np.int8]
) -> ConsensusTable:
    """Decide every item; raises RuleRefusedError where the rule cannot be applied."""
    votes = votes_of(data)
    if rule.name == "posterior":
        consensus.refuse_posterior_without_three(votes, data.policy)
        if model.reason:
            raise consensus.RuleRefusedError(f"the posterior rule cannot be used: {model.reason}")
    states = consensus.decide(
        rule, votes, data.policy, posterior=model.posterior, adjudicated=adjudicated
    )
    decided = np.isin(states, (consensus.ACCEPTED, consensus.REJECTED))
    by_rule = np.where(decided, rule.name, "")
    return ConsensusTable(
        item_id=data.items.item_id,
        candidate_id=data.items.candidate_id,
        text_role=_ROLES[data.items.role],
        state=np.array(consensus.STATES)[states],
        code=states,
        verified_by=np.where(adjudicated >= 0, "adjudicated", by_rule),
        n_accept=votes.accept,
        n_reject=votes.reject,
        n_unsure=votes.unsure,
        posterior=model.posterior,
        complete=votes.complete,
        rule=rule,
        model=model.as_dict(),
    )
