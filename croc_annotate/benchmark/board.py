"""The leaderboard as data: results, intervals, ranks and groups of all metrics (pure)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from croc_annotate.benchmark.comparisons import (
    ALPHA,
    Difference,
    all_differences,
    letter_groups,
    smallest_adjusted_p,
)
from croc_annotate.benchmark.intervals import AVERAGE, DRAWS, SEED, Bootstrap, Bounds, bootstrap
from croc_annotate.benchmark.results import MetricResult, evaluate_all, metric_result

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from croc_annotate.benchmark.layout import Layout, Scores
    from croc_annotate.benchmark.protocol import Evaluation, Policy


@dataclass(frozen=True)
class Entry:
    """One row of the leaderboard."""

    name: str
    """Unique on the board."""
    label: str
    result: MetricResult
    evaluation: Evaluation
    bounds: dict[str, dict[str, Bounds]]
    """By category (or "average") and statistic."""
    reference: bool = False
    rank: int | None = None
    group: str = ""
    facts: dict[str, Any] = field(default_factory=dict)
    """Fingerprint, run, software, hardware: shown, never computed with."""

    @property
    def overall(self) -> float | None:
        """The mean over the directions, averaged over categories: what ranks."""
        value: float | None = self.result.average["overall"]
        return value


@dataclass(frozen=True)
class Board:
    """All entries, ranked ones first, then incomplete ones, then the reference rows."""

    layout: Layout
    policy: Policy
    entries: tuple[Entry, ...]
    differences: tuple[Difference, ...]
    bootstrap: Bootstrap
    made_at: datetime | None = None
    """When it was computed. Shown; in no file, for equal boards give equal files."""
    outdated: bool = False
    """A run that is not on it has ended since."""

    @property
    def too_many_to_tell(self) -> bool:
        """True if no difference could be significant after the correction: more metrics than the draws bear."""
        least = smallest_adjusted_p(len(self.differences), self.bootstrap.n_draws)
        return bool(self.differences) and least > ALPHA

    def entry(self, name: str) -> Entry:
        """The entry of this name; raises KeyError."""
        for entry in self.entries:
            if entry.name == name:
                return entry
        raise KeyError(name)


def build_board(
    layout: Layout,
    scores: Mapping[str, Scores],
    *,
    policy: Policy,
    halves: frozenset[str] = frozenset(),
    sparse: frozenset[str] = frozenset(),
    reference: frozenset[str] = frozenset(),
    labels: Mapping[str, str] | None = None,
    facts: Mapping[str, dict[str, Any]] | None = None,
    draws: int = DRAWS,
    seed: int = SEED,
) -> Board:
    """Evaluate, bootstrap, rank and group; raises MissingScoresError as the policy says.

    `halves` names the metrics whose own rule counts a tie as ½ and `sparse` those that score
    only some images by their nature (the human row is both); `reference` those that are shown
    beside the others and take no rank.
    """
    evaluations = evaluate_all(layout, scores, policy=policy, halves=halves, sparse=sparse)
    results = {n: metric_result(n, e, scores=scores[n]) for n, e in evaluations.items()}
    values = {n: e.values for n, e in evaluations.items()}
    drawn = bootstrap(layout, values, draws=draws, seed=seed)
    ranked = _ranked(results, reference)
    # What has too few pairs for an interval is not tested, and gets no letter either.
    tested = {n: v for n, v in ranked.items() if not drawn.bounds[n][AVERAGE]["overall"].too_few}
    differences = _differences(tested, drawn)
    groups = letter_groups(list(tested), differences) if differences else {}
    places = _places(ranked)
    entries = tuple(
        Entry(
            name=name,
            label=(labels or {}).get(name, name),
            result=results[name],
            evaluation=evaluations[name],
            bounds=drawn.bounds[name],
            reference=name in reference,
            rank=places.get(name),
            group=groups.get(name, ""),
            facts=(facts or {}).get(name, {}),
        )
        for name in _display_order(results, ranked, reference)
    )
    return Board(layout, policy, entries, tuple(differences), drawn)


def board_json(board: Board) -> dict[str, Any]:
    """The document of `leaderboard --format json`."""
    return {
        "ties": board.policy.ties,
        "missing": board.policy.missing,
        "margin": board.policy.margin,
        "pairs": board.layout.n_pairs,
        "images": len(board.layout.prompt) + len(board.layout.contrast),
        "categories": list(board.layout.categories),
        "generators": list(board.layout.generators),
        "bootstrap": {"draws": board.bootstrap.n_draws, "seed": board.bootstrap.seed},
        "too_many_to_tell": board.too_many_to_tell,
        "metrics": {entry.name: entry_json(entry) for entry in board.entries},
        "differences": [
            {
                "first": d.first, "second": d.second, "difference": d.difference,
                "low": d.low, "high": d.high, "p": d.p, "p_holm": d.p_holm,
            }
            for d in board.differences
        ],
    }  # fmt: skip


def entry_json(entry: Entry) -> dict[str, Any]:
    """One metric of the document: cells with their intervals, rank and group."""
    document = entry.result.as_json()
    document["categories"] = {
        category: {**cells, "intervals": _bounds_json(entry.bounds.get(category, {}))}
        for category, cells in document["categories"].items()
    }
    document["average"] = {
        **document["average"],
        "intervals": _bounds_json(entry.bounds.get(AVERAGE, {})),
    }
    return {
        "label": entry.label,
        "rank": entry.rank,
        "group": entry.group or None,
        "reference": entry.reference,
        "ties_rule": entry.evaluation.policy.ties,
        **document,
        **({"run": entry.facts} if entry.facts else {}),
    }


def _bounds_json(bounds: Mapping[str, Bounds]) -> dict[str, Any]:
    return {
        statistic: {
            "low": b.low,
            "high": b.high,
            **({"reason": b.reason} if b.reason else {}),
            **({"undefined_draws": b.undefined_draws} if b.undefined_draws else {}),
        }
        for statistic, b in bounds.items()
    }


def _ranked(results: Mapping[str, MetricResult], reference: frozenset[str]) -> dict[str, float]:
    """Names and averages of the rows that take part, best first."""
    taking_part = {
        name: float(result.average["overall"])
        for name, result in results.items()
        if result.complete and name not in reference and result.average["overall"] is not None
    }
    return dict(sorted(taking_part.items(), key=lambda item: (-item[1], item[0])))


def _places(ranked: Mapping[str, float]) -> dict[str, int]:
    """1, 2, 2, 4: equal averages share a place."""
    values = list(ranked.values())
    return {name: 1 + sum(v > value for v in values) for name, value in ranked.items()}


def _differences(tested: Mapping[str, float], drawn: Bootstrap) -> list[Difference]:
    """Differences of all pairs of the tested metrics, on the same draws."""
    draws = drawn.draws.get("overall", {})
    return all_differences(tested, draws) if len(tested) > 1 else []


def _display_order(
    results: Mapping[str, MetricResult], ranked: Mapping[str, float], reference: frozenset[str]
) -> list[str]:
    others = sorted(n for n in results if n not in ranked and n not in reference)
    return [*ranked, *others, *sorted(n for n in results if n in reference)]
