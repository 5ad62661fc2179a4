"""The protocol a second time: slow, plain loops and exact fractions, sharing no code with ours."""

from __future__ import annotations

import math
from fractions import Fraction


def share(pairs, *, ties, missing):
    """The share of (a, b) with a > b, as a Fraction; None when nothing is left to compare."""
    won, n = Fraction(0), 0
    for a, b in pairs:
        if math.isnan(a) or math.isnan(b):
            if missing == "error":
                raise ValueError("missing")
            n += missing == "loss"
            continue
        n += 1
        if a > b:
            won += 1
        elif a == b and ties == "half":
            won += Fraction(1, 2)
    return won / n if n else None


def four_directions(p_images, q_images, *, ties="loss", missing="loss"):
    """`p_images` are (s(T,i), s(C,i)), `q_images` are (s(C,j), s(T,j)) of one pair."""
    return {
        "text_forward": share([(t, c) for t, c in p_images], ties=ties, missing=missing),
        "text_inverse": share([(c, t) for c, t in q_images], ties=ties, missing=missing),
        "image_forward": share(
            [(t, tj) for t, _ in p_images for _, tj in q_images], ties=ties, missing=missing
        ),
        "image_inverse": share(
            [(c, ci) for c, _ in q_images for _, ci in p_images], ties=ties, missing=missing
        ),
    }


def macro(pairs, direction, **policy):
    """Mean over pairs that have a value."""
    values = [four_directions(p, q, **policy)[direction] for p, q in pairs]
    known = [v for v in values if v is not None]
    return float(sum(known) / len(known)) if known else None


def all_four_right(p_images, q_images):
    """Share of (i, j) where every one of the four comparisons is strictly right."""
    grid = [t > c and cj > tj and t > tj and cj > c for t, c in p_images for cj, tj in q_images]
    return sum(grid) / len(grid) if grid else None
