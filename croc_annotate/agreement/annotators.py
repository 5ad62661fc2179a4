"""One row per annotator: everything that is known about their work, ready for JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from croc_annotate.agreement import people as p
from croc_annotate.agreement import tables as t
from croc_annotate.agreement.concerns import concerns_about, usual_of
from croc_annotate.agreement.rater_pairs import PairAgreement, pair_agreement
from croc_annotate.agreement.reading import pseudonyms

if TYPE_CHECKING:
    from croc_annotate.agreement.modelling import Model
    from croc_annotate.agreement.reading import CampaignData, GoldVotes

Row = dict[str, Any]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

PARTS = 10
SUSPICIOUS_Z = 4.0
SUSPICIOUS_EXCESS = 0.05
SUSPICIOUS_COMMON = 20


@dataclass(frozen=True, slots=True)
class People:
    """A campaign's people in one numbering: those with judgements or gold."""

    ids: Ints
    names: list[str]
    table: t.JudgementTable  # rater numbered as ``ids``

    @property
    def size(self) -> int:
        """How many people."""
        return self.ids.size


def annotator_rows(data: CampaignData, gold: GoldVotes, model: Model) -> list[Row]:
    """Describe every annotator of a campaign, those to talk to first at the top."""
    everybody = _people(data, gold)
    columns = _columns(everybody, data, gold, model)
    pairs = suspicious_pairs(everybody, model)
    rows = [_row(k, everybody, columns, pairs) for k in range(everybody.size)]
    usual = usual_of(rows)
    for row in rows:
        found = concerns_about(row, usual, gold_threshold=data.campaign.gold_threshold)
        row["concerns"] = [
            {
                "code": one.code,
                "weight": round(one.weight, 2),
                "text": one.text,
                "facts": one.facts,
            }
            for one in found
        ]
        row["weight"] = round(sum(one.weight for one in found), 2)
    return sorted(rows, key=lambda row: (-row["weight"], row["person"]))


def _people(data: CampaignData, gold: GoldVotes) -> People:
    ids = np.union1d(data.rater_ids, gold.rater_id)
    place = np.searchsorted(ids, data.rater_ids)
    table = t.renumbered(data.table, place)
    return People(ids, pseudonyms(data.campaign, ids.tolist()), table)


@dataclass(frozen=True, slots=True)
class _Columns:
    judgements: Floats
    unsure: p.Share
    accepts: p.Share
    accepts_of_others: Floats
    gold: p.Share
    others: p.Share
    parts: p.Share
    thirds: p.Share
    pace: p.Pace
    runs: p.Runs
    last_at: Ints
    model: Model


def _columns(everybody: People, data: CampaignData, gold: GoldVotes, model: Model) -> _Columns:
    table, n = everybody.table, everybody.size
    own = table.of_role(t.OWN)
    # The table stands in the order of items, not of time.
    own_order = data.judgement_id[table.role[table.item] == t.OWN]
    gold_rater = np.searchsorted(everybody.ids, gold.rater_id)
    right = gold.verdict == gold.truth
    last = np.zeros(n, np.int64)
    np.maximum.at(last, table.rater, data.at)
    accepts, accepts_of_others = p.accept_shares(own, n)
    judgements = p.count_by(table.rater, n)
    return _Columns(
        judgements=judgements,
        unsure=p.Share(p.count_by(table.rater, n, table.verdict == t.UNSURE), judgements),
        accepts=accepts,
        accepts_of_others=accepts_of_others,
        gold=p.Share(p.count_by(gold_rater, n, right), p.count_by(gold_rater, n)),
        others=p.agreement_with_others(own, n),
        parts=p.agreement_by_part(own, n, PARTS, own_order),
        thirds=p.agreement_by_part(own, n, 3, own_order),
        pace=p.pace_of(table.rater, data.active_ms, data.at, n),
        runs=p.runs_of(table.rater, table.verdict, data.judgement_id, n),
        last_at=last,
        model=model,
    )


def suspicious_pairs(everybody: People, model: Model) -> dict[int, list[Row]]:
    """Pairs that agree more than their skill explains, listed under both people."""
    if model.reason:
        return {}
    found = agreement_of_pairs(everybody, model)
    enough = (found.z >= SUSPICIOUS_Z) & (found.common >= SUSPICIOUS_COMMON)
    listed: dict[int, list[Row]] = {}
    for k in np.flatnonzero(enough & (found.excess >= SUSPICIOUS_EXCESS)):
        first, second = int(found.first[k]), int(found.second[k])
        facts = {
            "common": int(found.common[k]),
            "equal": int(found.equal[k]),
            "expected": float(found.expected[k]),
            "z": float(found.z[k]),
        }
        listed.setdefault(first, []).append({"with": everybody.names[second], **facts})
        listed.setdefault(second, []).append({"with": everybody.names[first], **facts})
    return listed


def agreement_of_pairs(everybody: People, model: Model) -> PairAgreement:
    """Agreement of every two people against what the model expects."""
    return pair_agreement(
        t.vote_pairs(everybody.table),
        posterior=model.posterior,
        sensitivity=model.fit.sensitivity,
        specificity=model.fit.specificity,
    )


def _row(k: int, everybody: People, columns: _Columns, pairs: dict[int, list[Row]]) -> Row:
    fit, runs = columns.model.fit, columns.runs
    return {
        "person": everybody.names[k],
        "id": int(everybody.ids[k]),
        "judgements": int(columns.judgements[k]),
        "last_at": int(columns.last_at[k]) or None,
        "unsure_share": number(columns.unsure.value[k]),
        "accept_share": _share(columns.accepts, k),
        "accept_share_others": number(columns.accepts_of_others[k]),
        "gold": _share(columns.gold, k),
        "others": _share(columns.others, k),
        "sensitivity": _rate(fit.sensitivity, fit.sensitivity_interval, k),
        "specificity": _rate(fit.specificity, fit.specificity_interval, k),
        "median_ms": number(columns.pace.median_ms[k]),
        "quick_share": number(columns.pace.quick.value[k]),
        "busiest_minute": int(columns.pace.busiest_minute[k]),
        "longest_run": int(runs.longest[k]),
        "longest_run_chance": number(runs.chance[k]),
        "drift": _drift(columns.thirds, k),
        "parts": [number(value) for value in columns.parts.value[:, k]],
        "suspicious_pairs": pairs.get(k, []),
        "undefined": _why(columns, k),
    }


def _share(share: p.Share, k: int) -> Row:
    low, high = share.interval()
    return {
        "value": number(share.value[k]),
        "low": number(low[k]),
        "high": number(high[k]),
        "part": int(share.part[k]),
        "n": int(share.whole[k]),
    }


def _rate(values: Floats, interval: Floats, k: int) -> Row:
    return {
        "value": number(values[k]),
        "low": number(interval[k, 0]),
        "high": number(interval[k, 1]),
    }


def _drift(thirds: p.Share, k: int) -> Row:
    first, last = thirds.value[0, k], thirds.value[-1, k]
    n_first, n_last = p.n_or_nan(thirds.whole[[0, -1], k])
    pooled = np.clip((thirds.part[:, k].sum() + 1) / (thirds.whole[:, k].sum() + 2), 0.02, 0.98)
    error = np.sqrt(pooled * (1 - pooled) * (1 / n_first + 1 / n_last))
    return {
        "first": number(first),
        "last": number(last),
        "difference": number(last - first),
        "error": number(error),
        "n": int(thirds.whole[:, k].sum()),
    }


def _why(columns: _Columns, k: int) -> dict[str, str]:
    """Reasons, in words, for what is not known about a person."""
    reasons = {}
    if columns.gold.whole[k] == 0:
        reasons["gold"] = "no gold item answered"
    if columns.others.whole[k] == 0:
        reasons["others"] = "nobody else has a majority on the same items"
    if np.isnan(columns.model.fit.sensitivity[k]):
        reason = columns.model.reason or "no vote"
        reasons["sensitivity"] = reasons["specificity"] = reason
    if np.isnan(columns.pace.median_ms[k]):
        reasons["median_ms"] = "no answer with a measured time"
    return reasons


def number(value: float | np.floating[Any]) -> float | None:
    """A float for JSON: NaN becomes None."""
    return None if np.isnan(value) else float(value)
