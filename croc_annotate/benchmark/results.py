"""A metric's results on a release as plain numbers: cells, averages, extra grids (pure).

Accuracies are in 0…1; None stands for a value that does not exist. The keys are those of
`evaluate_scores --json` and `leaderboard --format json` (docs/protocol.md).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from croc_annotate.benchmark import protocol
from croc_annotate.benchmark.intervals import STATISTICS
from croc_annotate.benchmark.layout import DIRECTIONS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from croc_annotate.benchmark.layout import Bools, Direction, Layout, Scores
    from croc_annotate.benchmark.protocol import Cell, Evaluation, Policy, Tally

Numbers = dict[str, Any]


@dataclass(frozen=True)
class MetricResult:
    """One metric's cells by category and their average, ready to be shown or dumped."""

    name: str
    categories: dict[str, Numbers]
    average: Numbers
    missing_categories: tuple[str, ...]
    """Categories where the release allows a value that the metric does not have."""

    @property
    def complete(self) -> bool:
        """Whether every value that the release allows is there; others are not ranked."""
        return not self.missing_categories

    def as_json(self) -> Numbers:
        """The metric's entry in the JSON documents."""
        return {
            "categories": self.categories,
            "average": self.average,
            "complete": self.complete,
            "missing_categories": list(self.missing_categories),
        }


def evaluate_all(
    layout: Layout,
    scores: Mapping[str, Scores],
    *,
    policy: Policy,
    halves: frozenset[str] = frozenset(),
    sparse: frozenset[str] = frozenset(),
) -> dict[str, Evaluation]:
    """Evaluate each metric.

    Those in `halves` count a tie as ½ by their own rule; those in `sparse` score only some
    images by their nature, so that what they lack is always skipped.
    """
    return {
        name: protocol.evaluate(
            layout,
            own,
            policy=replace(
                policy,
                ties="half" if name in halves else policy.ties,
                missing="skip" if name in sparse else policy.missing,
            ),
            name=name,
        )
        for name, own in scores.items()
    }


def metric_result(name: str, evaluation: Evaluation, *, scores: Scores | None) -> MetricResult:
    """Cells of one metric; with `scores` also the same-generator grid and the group score."""
    layout = evaluation.layout
    possible = possible_cells(layout)
    cells = evaluation.by_category()
    extra = _extra(evaluation, scores) if scores is not None else {}
    categories = {
        category: {
            **_numbers(cells[category], possible[:, code]),
            **_extra_numbers(evaluation, extra, layout.category == code),
        }
        for code, category in enumerate(layout.categories)
    }
    lacking = tuple(
        category
        for code, category in enumerate(layout.categories)
        if any(
            possible[row, code] and cells[category][d].value is None
            for row, d in enumerate(DIRECTIONS)
        )
    )
    everywhere = {d: evaluation.cell(d, np.ones(layout.n_pairs, dtype=bool)) for d in DIRECTIONS}
    average = _average(categories, everywhere, np.asarray(possible.any(axis=1)))
    return MetricResult(name, categories, average, lacking)


def possible_cells(layout: Layout) -> Bools:
    """Whether the release has images for a direction in a category, shape (4, categories)."""
    table = np.zeros((len(DIRECTIONS), len(layout.categories)), dtype=bool)
    for code in range(len(layout.categories)):
        table[:, code] = layout.possible[:, layout.category == code].any(axis=1)
    return table


def facet_cells(evaluation: Evaluation, values: tuple[str, ...]) -> dict[str, Numbers]:
    """The four cells for each value of a grouping of pairs, e.g. by topic ("" is left out)."""
    labels = np.array(values, dtype=object)
    return {
        value: _numbers(
            {d: evaluation.cell(d, labels == value) for d in DIRECTIONS},
            np.array([evaluation.layout.possible[r, labels == value].any() for r in range(4)]),
        )
        for value in sorted(set(values) - {""})
    }


FACETS = ("generator", "property", "topic", "entity", "difficulty")


def by_facet(facet: str, evaluation: Evaluation, scores: Scores) -> dict[str, Numbers]:
    """The four cells for each value of a facet; {} where the release does not tell it."""
    layout = evaluation.layout
    if facet == "generator":
        return _by_generator(evaluation, scores)
    return facet_cells(evaluation, layout.facets[facet]) if facet in layout.facets else {}


def _by_generator(evaluation: Evaluation, scores: Scores) -> dict[str, Numbers]:
    """Each generator's own images against each other only."""
    layout = evaluation.layout
    cells: dict[str, Numbers] = {}
    for code, name in enumerate(layout.generators):
        part, keep_p, keep_q = layout.restrict(
            prompt=layout.prompt.generator == code, contrast=layout.contrast.generator == code
        )
        if part.n_pairs:
            own = protocol.evaluate(
                part, scores.keep_images(keep_p, keep_q), policy=evaluation.policy
            )
            every = np.ones(part.n_pairs, dtype=bool)
            cells[name] = _numbers(
                {d: own.cell(d, every) for d in DIRECTIONS}, np.asarray(part.possible.any(axis=1))
            )
    return cells


def _numbers(cells: Mapping[Direction, Cell], possible: Bools) -> Numbers:
    """The four cells as flat numbers; `possible` says which directions have images at all."""
    numbers: Numbers = {d: cells[d].value for d in DIRECTIONS}
    numbers |= {f"n_{d}": cells[d].n for d in DIRECTIONS}
    numbers |= {f"micro_{d}": cells[d].micro for d in DIRECTIONS}
    numbers |= {f"ties_{d}": cells[d].tie_rate for d in DIRECTIONS}
    numbers |= {f"coverage_{d}": cells[d].coverage for d in DIRECTIONS}
    numbers |= {f"comparisons_{d}": cells[d].total for d in DIRECTIONS}
    scored = sum(c.scored for c in cells.values())
    total = sum(c.total for c in cells.values())
    numbers["ties"] = sum(c.ties for c in cells.values()) / scored if scored else None
    numbers["coverage"] = scored / total if total else None
    return numbers | _composites(numbers, possible)


def _composites(numbers: Numbers, possible: Bools) -> Numbers:
    """Means over directions; those that the release has no images for are left out."""
    result: Numbers = {}
    for statistic in ("text", "image", "overall"):
        used = [DIRECTIONS[row] for row in STATISTICS[statistic] if possible[row]]
        result[statistic] = protocol.mean_or_none([numbers[d] for d in used])
    return result


def _average(
    categories: Mapping[str, Numbers], everywhere: Mapping[Direction, Cell], possible: Bools
) -> Numbers:
    """Means over categories; counts, ties and coverage are those of all pairs together."""
    average = _numbers(everywhere, possible)
    rows = list(categories.values())
    means = [*DIRECTIONS, *(f"micro_{d}" for d in DIRECTIONS)]
    for key in [*means, *(k for k in _EXTRA_KEYS if any(k in row for row in rows))]:
        present = [row[key] for row in rows if row[key] is not None]
        average[key] = sum(present) / len(present) if present else None
    return average | _composites(average, possible)


_EXTRA_KEYS = ("same_generator_image_forward", "same_generator_image_inverse", "group")


def _extra(evaluation: Evaluation, scores: Scores) -> dict[str, Tally]:
    layout, margin = evaluation.layout, evaluation.policy.margin
    grids = protocol.tally_same_generator(layout, scores, margin=margin)
    return {
        "same_generator_image_forward": grids["image_forward"],
        "same_generator_image_inverse": grids["image_inverse"],
        "group": protocol.tally_group(layout, scores, margin=margin),
    }


def _extra_numbers(evaluation: Evaluation, extra: Mapping[str, Tally], pairs: Bools) -> Numbers:
    policy = evaluation.policy
    numbers: Numbers = {}
    for key, tally in extra.items():
        cell = protocol.summarise(
            tally,
            values=tally.values(ties=policy.ties, missing=policy.missing),
            pairs=pairs & (tally.total > 0),
            policy=policy,
        )
        numbers[key] = cell.value
        numbers[f"n_{key}"] = cell.n
    return numbers
