"""The overview of a campaign from everything that was read of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from croc_annotate.agreement import consensus, modelling, reading, reporting
from croc_annotate.agreement import tables as t
from croc_annotate.agreement.overview import Standing, overview, timeline

if TYPE_CHECKING:
    from datetime import datetime

    from numpy.typing import NDArray

    from croc_annotate.agreement.modelling import ConsensusTable
    from croc_annotate.agreement.reading import CampaignData


def overview_of(
    data: CampaignData, table: ConsensusTable, *, refused: str, now: datetime
) -> dict[str, Any]:
    """The overview, with the headline agreement and the days of work."""
    own = data.items.role == t.OWN
    candidates = reading.candidate_states(data.campaign)
    names, stratum = _strata(data, own, list(candidates))
    votes = modelling.votes_of(data)
    left = modelling.judgements_left(data, votes)
    standing = Standing(
        stratum=stratum,
        cluster=data.items.cluster[own],
        states=table.code[own],
        votes=consensus.Votes(*(column[own] for column in _columns(votes))),
        names=names,
        candidates=candidates,
        known=reading.known_items(data.campaign),
        left=left[own],
        other_judgements_left=int(left[~own].sum()),
        policy=data.policy,
        active_ms=data.active_ms,
        at=data.at,
        now=int(now.timestamp()),
    )
    headline = reporting.report(data.table.of_role(t.OWN), first_two_only=data.policy.adaptive)[
        "all"
    ]
    return {
        **overview(standing),
        "agreement": headline,
        "rule": table.rule.as_dict(),
        "rule_refused": refused,
        "judgements": int(data.table.item.size),
        "items": int(data.items.item_id.size),
        "complete": int(table.complete.sum()),
        "raters": int(data.rater_ids.size),
        "timeline": timeline(data.at, data.table.verdict),
    }


def _columns(votes: consensus.Votes) -> tuple[NDArray[Any], ...]:
    return votes.accept, votes.reject, votes.unsure, votes.complete


def _strata(
    data: CampaignData, own: NDArray[np.bool_], others: list[tuple[str, str, str]]
) -> tuple[list[tuple[str, str, str]], NDArray[np.int64]]:
    """Number the strata of items and candidates in the order of the categories."""
    labels, codes = data.table.labels, data.table.item_codes
    parts = [codes[name][own] for name in ("category", "generator", "side")]
    sizes = [max(len(labels[name]), 1) for name in ("category", "generator", "side")]
    flat = (parts[0] * sizes[1] + parts[1]) * sizes[2] + parts[2]
    distinct, place = np.unique(flat, return_inverse=True)
    names = [
        (
            labels["category"][int(code) // (sizes[1] * sizes[2])],
            labels["generator"][int(code) // sizes[2] % sizes[1]],
            labels["side"][int(code) % sizes[2]],
        )
        for code in distinct
    ]
    position = {category: i for i, category in enumerate(data.items.categories)}
    every = sorted({*names, *others}, key=lambda name: (position.get(name[0], 99), *name[1:]))
    number = {name: i for i, name in enumerate(every)}
    return every, np.array([number[name] for name in names], dtype=np.int64)[place]
