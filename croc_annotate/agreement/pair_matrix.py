"""How often every two annotators agree, as a square table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from croc_annotate.agreement import coefficients as c
from croc_annotate.agreement import tables as t

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from croc_annotate.agreement.modelling import Model
    from croc_annotate.agreement.reading import CampaignData


def pair_matrix(data: CampaignData, model: Model) -> dict[str, Any]:
    """Raw agreement, Cohen's κ and common votes of every two people on own texts.

    People stand in the order of sensitivity + specificity, so that a group that
    agrees among itself only can be seen.
    """
    own = data.table.of_role(t.OWN)
    voting = own.first_two_votes() if data.policy.adaptive else own
    n = data.rater_ids.size
    joint = _joint(voting, n)
    total = joint.sum(axis=-1)
    raw = np.where(total > 0, joint[..., 0] + joint[..., 3], np.nan) / np.maximum(total, 1)
    kappa = c.cohen_from_joint(joint)
    order = _by_skill(data, model)
    names = data.table.labels["rater"]
    return {
        "people": [names[k] for k in order],
        "ids": [int(data.rater_ids[k]) for k in order],
        "raw_agreement": _listed(raw, order),
        "cohen_kappa": _listed(kappa, order),
        "common": total[np.ix_(order, order)].astype(int).tolist(),
    }


def _joint(table: t.JudgementTable, n: int) -> NDArray[np.float64]:
    """Joint counts (n, n, 4) of the votes of every two people, both ways round."""
    pairs = t.vote_pairs(table)
    votes = pairs.only((pairs.first_verdict != t.UNSURE) & (pairs.second_verdict != t.UNSURE))
    kind = (1 - votes.first_verdict.astype(np.int64)) * 2 + 1 - votes.second_verdict
    cell = (votes.first * n + votes.second) * 4 + kind
    joint = np.bincount(cell, minlength=4 * n * n).reshape(n, n, 4).astype(np.float64)
    mirrored = joint.transpose(1, 0, 2)[..., [0, 2, 1, 3]]
    both: NDArray[np.float64] = joint + mirrored
    return both


def _by_skill(data: CampaignData, model: Model) -> list[int]:
    place = np.searchsorted(model.rater_ids, data.rater_ids)
    skill = model.fit.sensitivity[place] + model.fit.specificity[place]
    names = data.table.labels["rater"]
    worst_last = np.nan_to_num(-skill, nan=0.0)
    return sorted(range(data.rater_ids.size), key=lambda k: (worst_last[k], names[k]))


def _listed(values: NDArray[np.float64], order: list[int]) -> list[list[float | None]]:
    square = values[np.ix_(order, order)]
    return [[None if np.isnan(v) else round(float(v), 4) for v in row] for row in square]
