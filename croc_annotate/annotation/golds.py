"""When the next item with a known answer is due (pure, seeded)."""

from __future__ import annotations

from croc_annotate.lib.hashing import stable_unit


def next_gold(*, after: int, rate: float, spacing: int, seed: int, person: int) -> int:
    """Number of handed-out items at which the next gold comes; 0 if there are none.

    The gap is drawn evenly around 1 / rate and is never below ``spacing``, so that nobody can
    count them out. It depends on person and place only: a reload changes nothing.
    """
    if rate <= 0:
        return 0
    mean = max(1.0 / rate, 1.0)
    least = min(max(spacing, 1), 2 * mean - 1) if mean > spacing else max(spacing, 1)
    most = max(2 * mean - least, least)
    draw = stable_unit(seed, "gold", person, after)
    return after + max(1, round(least + draw * (most - least)))


def below_threshold(*, seen: int, correct: int, minimum: int, threshold: float) -> bool:
    """True if a person's answers to gold are too often wrong to go on."""
    return seen >= max(minimum, 1) and correct / seen < threshold
