"""Correlations of every metric of a graded set with people (pure)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from croc_annotate.benchmark.correlation import (
    STATISTICS,
    bootstrap_over_groups,
    pairwise_accuracy,
    within_groups,
)

if TYPE_CHECKING:
    from croc_annotate.benchmark.human_files import GradedSet
    from croc_annotate.benchmark.layout import Bools, Floats, Ints

DRAWS = 1_000
SEED = 20_250_515


def correlate(graded: GradedSet, *, draws: int = DRAWS, seed: int = SEED) -> dict[str, Any]:
    """{metric: {n, missing, pearson, …, pairwise_accuracy, within_prompt, intervals, skills}}."""
    return {
        name: {
            **_one(graded.human, scores, graded.prompt, draws=draws, seed=seed),
            **_skills(graded, scores),
        }
        for name, scores in graded.metrics.items()
    }


def _one(human: Floats, scores: Floats, prompt: Ints, *, draws: int, seed: int) -> dict[str, Any]:
    known = ~np.isnan(scores)
    h, m, p = human[known], scores[known], prompt[known]
    result: dict[str, Any] = {"n": len(h), "missing": int((~known).sum())}
    result |= {name: statistic(h, m) for name, statistic in STATISTICS.items()}
    result["pairwise_accuracy"] = _calibration(h, m, None)
    inside: dict[str, Any] = {}
    for name, statistic in STATISTICS.items():
        inside[name], inside[f"n_{name}"] = within_groups(statistic, h, m, p)
    inside["pairwise_accuracy"] = _calibration(h, m, p)
    result["within_prompt"] = inside
    if draws and len(h):
        result["intervals"] = {name: _interval(h, m, p, name, draws, seed) for name in STATISTICS}
    return result


def _interval(h: Floats, m: Floats, p: Ints, name: str, draws: int, seed: int) -> dict[str, Any]:
    interval = bootstrap_over_groups(STATISTICS[name], h, m, p, draws=draws, seed=seed)
    reason = {"reason": interval.reason} if interval.reason else {}
    return {"low": interval.low, "high": interval.high, "prompts": interval.clusters, **reason}


def _calibration(h: Floats, m: Floats, group: Ints | None) -> dict[str, Any] | None:
    found = pairwise_accuracy(h, m, group=group)
    if found is None:
        return None
    return {
        "value": found.accuracy,
        "epsilon": found.epsilon,
        "without_calibration": found.at_zero,
        "pairs": found.pairs,
    }


def _skills(graded: GradedSet, scores: Floats) -> dict[str, Any]:
    if not graded.skills:
        return {}
    return {
        "skills": {
            skill: _skill(graded.human, scores, mask & ~np.isnan(scores))
            for skill, mask in graded.skills.items()
        }
    }


def _skill(human: Floats, scores: Floats, mask: Bools) -> dict[str, Any]:
    h, m = human[mask], scores[mask]
    return {
        "n": len(h),
        **{name: statistic(h, m) for name, statistic in STATISTICS.items()},
        "pairwise_accuracy": _calibration(h, m, None),
    }
