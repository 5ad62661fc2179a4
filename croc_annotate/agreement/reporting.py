"""The agreement report: coefficients with intervals and counts, for all and by dimension."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from croc_annotate.agreement import coefficients as c
from croc_annotate.agreement import tables as t
from croc_annotate.lib import bootstrap

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Row = dict[str, Any]

DRAWS = 1000
SEED = 20_250_511
NO_JUDGEMENT = "no judgement"
COEFFICIENTS = (
    "raw_agreement",
    "krippendorff_alpha",
    "gwet_ac1",
    "fleiss_kappa",
    "cohen_kappa",
    "prevalence_accept",
)
_JOINT = slice(c.N_SUMS, c.N_SUMS + 4)


@dataclass(frozen=True, slots=True)
class Group:
    """What one row of the report is computed from.

    ``sums`` has a row per contrast pair; ``all_*`` are over every judgement of the
    group, also where only the first two votes count.
    """

    sums: Floats
    items: int
    judgements: int
    unsure: int
    raters: int
    equal_votes: bool
    two_raters: bool


def describe(group: Group, *, draws: int = DRAWS, seed: int = SEED) -> Row:
    """Return one row: counts, coefficients, intervals, and reasons for what is undefined."""
    total = group.sums.sum(axis=0)
    undefined = _reasons(group, total)
    values = {name: _value(name, total, undefined) for name in COEFFICIENTS}
    unsure = group.unsure / group.judgements if group.judgements else None
    if unsure is None:
        undefined["unsure_share"] = NO_JUDGEMENT
    return {
        "items": group.items,
        "items_with_two": int(total[c.ITEMS]),
        "judgements": group.judgements,
        "raters": group.raters,
        **values,
        "unsure_share": unsure,
        "intervals": _intervals(group, values, undefined, draws=draws, seed=seed),
        "undefined": undefined,
    }


def report(
    table: t.JudgementTable,
    *,
    by: Sequence[str] = (),
    first_two_only: bool = False,
    draws: int = DRAWS,
    seed: int = SEED,
) -> Row:
    """Return ``{"all": row, "by": {dimension: {label: row}}}`` of one kind of item."""
    unknown = set(by) - set(t.DIMENSIONS)
    if unknown:
        raise ValueError(f"unknown dimension {sorted(unknown)[0]!r}: {', '.join(t.DIMENSIONS)}")
    voting = table.first_two_votes() if first_two_only else table
    found: Row = {"all": describe(_group(table, voting), draws=draws, seed=seed), "by": {}}
    for dimension in by:
        groups = _groups(table, voting, dimension)
        found["by"][dimension] = {
            label: describe(group, draws=draws, seed=seed) for label, group in groups
        }
    return found


def prevalence_from_sums(sums: Floats) -> Floats:
    """Share of accepts among the votes of items with two."""
    votes = sums[..., c.VOTES]
    share: Floats = sums[..., c.ACCEPTS] / np.where(votes == 0, np.nan, votes)
    return share


def _cohen(sums: Floats) -> Floats:
    return c.cohen_from_joint(sums[..., _JOINT])


_STATISTICS: dict[str, bootstrap.Statistic] = {
    "raw_agreement": c.raw_from_sums,
    "krippendorff_alpha": c.alpha_from_sums,
    "gwet_ac1": c.ac1_from_sums,
    "fleiss_kappa": c.fleiss_from_sums,
    "cohen_kappa": _cohen,
    "prevalence_accept": prevalence_from_sums,
}


def _reasons(group: Group, total: Floats) -> dict[str, str]:
    """Why a coefficient is not given, before its value is even looked at."""
    if total[c.ITEMS] == 0:
        return dict.fromkeys(COEFFICIENTS, c.NO_OVERLAP)
    reasons = {}
    if not group.equal_votes:
        reasons["fleiss_kappa"] = c.UNEQUAL_VOTES
    if not group.two_raters:
        reasons["cohen_kappa"] = c.NOT_TWO_RATERS
    return reasons


def _value(name: str, total: Floats, undefined: dict[str, str]) -> float | None:
    if name in undefined:
        return None
    value = float(_STATISTICS[name](total))
    if np.isnan(value):
        undefined[name] = c.ONE_VERDICT
        return None
    return value


def _intervals(
    group: Group, values: Row, undefined: dict[str, str], *, draws: int, seed: int
) -> Row:
    wanted = {name: _STATISTICS[name] for name in COEFFICIENTS if values[name] is not None}
    seen = group.sums[group.sums[:, c.ITEMS] > 0]
    found = bootstrap.bootstrap_intervals(seen, wanted, draws=draws, seed=seed)
    rows: Row = {}
    for name in COEFFICIENTS:
        if name not in found:
            rows[name] = {"low": None, "high": None, "reason": undefined[name]}
            continue
        interval = found[name]
        rows[name] = {
            "low": interval.low,
            "high": interval.high,
            "draws": interval.draws,
            "undefined_draws": interval.undefined_draws,
            "pairs": interval.clusters,
        }
        if interval.reason:
            rows[name]["reason"] = interval.reason
    return rows


def _group(table: t.JudgementTable, voting: t.JudgementTable) -> Group:
    """The group of all judgements of ``table``, its coefficients over those of ``voting``."""
    accept, reject, _ = voting.counts()
    terms = c.item_sums(accept, reject)
    joint, two_raters = _joint(voting, accept + reject)
    clusters = int(table.cluster.max()) + 1 if table.cluster.size else 0
    terms = np.concatenate([terms, joint], axis=1)
    return Group(
        sums=bootstrap.cluster_sums(terms, table.cluster, clusters),
        items=int(np.count_nonzero(np.bincount(table.item))),
        judgements=table.item.size,
        unsure=int((table.verdict == t.UNSURE).sum()),
        raters=int(np.count_nonzero(np.bincount(table.rater))),
        equal_votes=c.equally_many_votes(accept, reject),
        two_raters=two_raters,
    )


def _joint(voting: t.JudgementTable, votes: Ints) -> tuple[Floats, bool]:
    """Per item the four joint counts of the two raters, zeros unless there are exactly two."""
    n = voting.n_items
    in_pairs = voting.only((voting.verdict != t.UNSURE) & (votes[voting.item] >= 2))
    raters = np.flatnonzero(np.bincount(in_pairs.rater))
    if raters.size != 2:
        return np.zeros((n, 4)), False
    given = np.full((2, n), t.UNSURE, np.int8)
    given[np.searchsorted(raters, in_pairs.rater), in_pairs.item] = in_pairs.verdict
    return c.joint_terms(given[0], given[1]), True


def _groups(
    table: t.JudgementTable, voting: t.JudgementTable, dimension: str
) -> Iterator[tuple[str, Group]]:
    if dimension == t.PAIR_DIMENSION:
        yield from _pair_groups(table, voting)
        return
    for code, label in enumerate(table.labels[dimension]):
        mine = table.only(_codes(table, dimension) == code)
        if mine.item.size:
            yield label, _group(mine, voting.only(_codes(voting, dimension) == code))


def _codes(table: t.JudgementTable, dimension: str) -> Ints:
    if dimension in t.ITEM_DIMENSIONS:
        return table.item_codes[dimension][table.item]
    return table.codes[dimension]


def _pair_groups(table: t.JudgementTable, voting: t.JudgementTable) -> Iterator[tuple[str, Group]]:
    """One group per two people who judged an item in common; each such item has two judgements."""
    everything, votes = t.vote_pairs(table), t.vote_pairs(voting)
    n_raters = len(table.labels["rater"])
    all_codes = everything.first * n_raters + everything.second
    vote_codes = votes.first * n_raters + votes.second
    order: Ints = np.argsort(all_codes, kind="stable")
    vote_order: Ints = np.argsort(vote_codes, kind="stable")
    found, starts = np.unique(all_codes[order], return_index=True)
    bounds = np.r_[starts, order.size]
    low = np.asarray(np.searchsorted(vote_codes[vote_order], found, side="left"))
    high = np.asarray(np.searchsorted(vote_codes[vote_order], found, side="right"))
    names = table.labels["rater"]
    for k, code in enumerate(found):
        first, second = divmod(int(code), n_raters)
        whole = everything.only(order[bounds[k] : bounds[k + 1]])
        voted = votes.only(vote_order[low[k] : high[k]])
        yield f"{names[first]}|{names[second]}", _pair_group(table.cluster, whole, voted)


def _pair_group(cluster: Ints, whole: t.VotePairs, votes: t.VotePairs) -> Group:
    accept = (votes.first_verdict == t.ACCEPT).astype(np.int64) + (votes.second_verdict == t.ACCEPT)
    reject = (votes.first_verdict == t.REJECT).astype(np.int64) + (votes.second_verdict == t.REJECT)
    joint = c.joint_terms(votes.first_verdict, votes.second_verdict)
    terms = np.concatenate([c.item_sums(accept, reject), joint], axis=1)
    clusters, dense = np.unique(cluster[votes.item], return_inverse=True)
    unsure = (whole.first_verdict == t.UNSURE).sum() + (whole.second_verdict == t.UNSURE).sum()
    return Group(
        sums=bootstrap.cluster_sums(terms, dense, clusters.size),
        items=whole.item.size,
        judgements=2 * whole.item.size,
        unsure=int(unsure),
        raters=2,
        equal_votes=True,
        two_raters=bool(joint.any()),
    )
