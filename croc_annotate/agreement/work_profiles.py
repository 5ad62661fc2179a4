"""How each person's counted work is spread over categories, days and times for one answer (pure).

Computed with the other statistics: a person's page then costs the same however much they judged.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np

from croc_annotate.agreement import tables as t
from croc_annotate.agreement.people import divide

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from croc_annotate.agreement.reading import CampaignData

Row = dict[str, Any]

BIN_MS = 1_000
BINS = 20
_DAY = 86_400
_CODES = (t.ACCEPT, t.REJECT, t.UNSURE)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def work_profiles(data: CampaignData) -> dict[str, Row]:
    """By the person's id (a string, for JSON): ``categories``, ``days`` and ``pace``.

    A category has its counts of accepts, rejects and unsure answers and the mean active time in ms;
    a day its date (UTC) and the same counts; ``pace`` counts answers by active time, in BINS bins of
    BIN_MS each (longer ones are left out).
    """
    table, n = data.table, data.rater_ids.size
    if table.item.size == 0:
        return {}
    labels, category = data.items.categories, data.items.category[table.item]
    days, day = np.unique(data.at // _DAY, return_inverse=True)
    by_category = _verdicts(table, n, category, len(labels))
    by_day = _verdicts(table, n, day, days.size)
    known = data.active_ms >= 0
    place = (table.rater * len(labels) + category)[known]
    size = n * len(labels)
    times = np.bincount(place, weights=data.active_ms[known], minlength=size)
    mean_ms = divide(times, np.bincount(place, minlength=size)).reshape(n, len(labels))
    inside = known & (data.active_ms < BINS * BIN_MS)
    bins = (table.rater * BINS + data.active_ms // BIN_MS)[inside]
    pace = np.bincount(bins, minlength=n * BINS).reshape(n, BINS)
    dates = [(_EPOCH + timedelta(days=int(one))).date().isoformat() for one in days]
    return {
        str(person): {
            "categories": [
                {**row, "mean_ms": None if np.isnan(mean_ms[k, c]) else float(mean_ms[k, c])}
                for c, row in _named(by_category[k], labels, "category")
            ],
            "days": [row for _, row in _named(by_day[k], dates, "day")],
            "pace": pace[k].tolist(),
        }
        for k, person in enumerate(data.rater_ids.tolist())
    }


def _verdicts(
    table: t.JudgementTable, n: int, group: NDArray[np.int64], groups: int
) -> NDArray[np.int64]:
    """Accepts, rejects and unsure answers: an array of (people, groups, 3)."""
    place = table.rater * groups + group
    counts = [np.bincount(place[table.verdict == code], minlength=n * groups) for code in _CODES]
    return np.stack(counts, axis=-1).reshape(n, groups, len(_CODES))


def _named(
    counts: NDArray[np.int64], labels: list[str], name: str
) -> list[tuple[int, dict[str, Any]]]:
    """The groups with any judgement, each with its number."""
    found = np.flatnonzero(counts.sum(axis=1))
    names = ("accept", "reject", "unsure")
    return [
        (int(k), {name: labels[k], **dict(zip(names, counts[k].tolist(), strict=True))})
        for k in found
    ]
