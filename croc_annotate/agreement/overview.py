"""Where a campaign stands: work done and left, what is verified, what to expect (pure)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from croc_annotate.agreement import consensus
from croc_annotate.agreement import tables as t
from croc_annotate.agreement.forecast import Cells, Forecast, forecast

if TYPE_CHECKING:
    from collections.abc import Mapping

    from croc_annotate.agreement.consensus import Votes
    from croc_annotate.annotation.redundancy import Policy

Row = dict[str, Any]
Ints = NDArray[np.int64]
Stratum = tuple[str, str, str]  # category, generator, side

WEEK = 7 * 86_400
_STATE_NAMES = ("pending", "accepted", "rejected", "disputed")


@dataclass(frozen=True, slots=True)
class Standing:
    """What the overview is computed from. Item columns are of own texts only."""

    stratum: Ints  # per item: number of its stratum
    cluster: Ints  # per item: its contrast pair
    states: NDArray[np.int8]
    votes: Votes
    names: list[Stratum]
    candidates: Mapping[Stratum, Mapping[str, int]]  # candidate states
    known: Mapping[Stratum, int]  # gold and training items
    left: Ints  # per item: judgements that it still gets
    other_judgements_left: int
    policy: Policy
    active_ms: Ints
    at: Ints
    now: int


def overview(standing: Standing) -> Row:
    """Return rows per stratum, totals, forecast and pace, ready for JSON."""
    n = len(standing.names)
    left = standing.left
    per_item = _judgements_at_completion(standing)
    rows = [_row(k, standing, left, per_item) for k in range(n)]
    whole, strata = forecast(_cells(standing, rows), n)
    for row, found in zip(rows, strata, strict=True):
        row["forecast"] = _forecast(found)
    totals = {
        name: sum(row[name] for row in rows)
        for name in (
            "candidates", "rendered", "failed", "judged", *_STATE_NAMES, "judgements_left",
        )
    }  # fmt: skip
    totals["judgements_left"] += standing.other_judgements_left
    return {
        "rows": rows,
        "totals": totals,
        "forecast": _forecast(whole),
        "pace": _pace(standing, totals["judgements_left"]),
    }


def _judgements_at_completion(standing: Standing) -> float:
    """How many judgements an item takes: as wanted, or in adaptive campaigns as seen so far."""
    if not standing.policy.adaptive:
        return float(standing.policy.least)
    done = standing.votes.judgements[standing.votes.complete]
    return float(done.mean()) if done.size >= 30 else float(standing.policy.least)


def _row(k: int, standing: Standing, left: Ints, per_item: float) -> Row:
    category, generator, side = standing.names[k]
    mine = standing.stratum == k
    candidates = standing.candidates.get(standing.names[k], {})
    rendered = candidates.get("rendered", 0)
    requested = candidates.get("requested", 0)
    states = np.bincount(standing.states[mine], minlength=len(_STATE_NAMES))
    known = standing.known.get(standing.names[k], 0)
    # Images that are not made yet, or not opened in the campaign yet, come on top.
    to_come = requested + max(rendered - int(mine.sum()) - known, 0)
    return {
        "category": category,
        "generator": generator,
        "side": side,
        "candidates": sum(candidates.values()),
        "rendered": rendered,
        "requested": requested,
        "failed": candidates.get("failed", 0),
        "known": known,
        "to_come": to_come,
        "judged": int((standing.votes.judgements[mine] > 0).sum()),
        **{name: int(states[code]) for code, name in enumerate(_STATE_NAMES)},
        "judgements_left": round(float(left[mine].sum()) + to_come * per_item),
    }


def _cells(standing: Standing, rows: list[Row]) -> Cells:
    """Counts per stratum and contrast pair; images to come are a cell of their own."""
    n_clusters = int(standing.cluster.max()) + 1 if standing.cluster.size else 1
    code = standing.stratum * n_clusters + standing.cluster
    found, place = np.unique(code, return_inverse=True)
    accepted = standing.states == consensus.ACCEPTED
    decided = accepted | (standing.states == consensus.REJECTED)
    to_come = np.array([row["to_come"] for row in rows], dtype=np.int64)
    extra = np.flatnonzero(to_come)
    none = np.zeros(extra.size, np.int64)

    def count(mask: NDArray[np.bool_]) -> Ints:
        return np.bincount(place[mask], minlength=found.size)

    return Cells(
        stratum=np.concatenate([found // n_clusters, extra]),
        accepted=np.concatenate([count(accepted), none]),
        decided=np.concatenate([count(decided), none]),
        remaining=np.concatenate([count(~decided), to_come[extra]]),
    )


def _forecast(found: Forecast) -> Row:
    return {
        "value": found.value,
        "low": found.low,
        "high": found.high,
        "reason": found.reason,
    }


def _pace(standing: Standing, left: int) -> Row:
    """Hours of work left at people's median time, and days at last week's rate."""
    known = standing.active_ms[standing.active_ms >= 0]
    median = float(np.median(known)) if known.size else None
    recent = standing.at[standing.at > standing.now - WEEK]
    days = (standing.now - int(recent.min())) / 86_400 if recent.size else 0.0
    per_day = recent.size / max(days, 1 / 24) if recent.size else 0.0
    return {
        "median_ms": median,
        "hours_left": left * median / 3_600_000 if median is not None else None,
        "per_day": per_day,
        "days_left": left / per_day if per_day else None,
    }


def timeline(at: Ints, verdict: NDArray[np.int8]) -> list[Row]:
    """Judgements of each day, by verdict."""
    if at.size == 0:
        return []
    day = at // 86_400
    first, n = int(day.min()), int(day.max() - day.min()) + 1
    columns = {
        name: np.bincount(day[verdict == code] - first, minlength=n)
        for name, code in (("accept", t.ACCEPT), ("reject", t.REJECT), ("unsure", t.UNSURE))
    }
    names = (np.arange(first, first + n) * 86_400).astype("datetime64[s]").astype("datetime64[D]")
    return [
        {"day": str(names[k]), **{name: int(column[k]) for name, column in columns.items()}}
        for k in range(n)
        if any(column[k] for column in columns.values())
    ]
