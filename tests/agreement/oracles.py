"""Slow, plain references, written from the formulas and not from the product's code."""

from __future__ import annotations

from itertools import combinations

import numpy as np


def verdict_tables(draw_values, n_items: int, n_raters: int) -> np.ndarray:
    """A raters × items table of 1, 0 and NaN from a flat list of 1, 0 and -1."""
    table = np.array(draw_values, dtype=float).reshape(n_raters, n_items)
    table[table < 0] = np.nan
    return table


def counts(table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Accepts and rejects per item of a raters × items table."""
    return (table == 1).sum(axis=0), (table == 0).sum(axis=0)


def raw_by_pairs(table: np.ndarray) -> float | None:
    """Compare every two votes of every item, one by one."""
    shares = []
    for column in table.T:
        votes = [v for v in column if not np.isnan(v)]
        pairs = list(combinations(votes, 2))
        if pairs:
            shares.append(sum(a == b for a, b in pairs) / len(pairs))
    return sum(shares) / len(shares) if shares else None


def ac1_by_gwet(table: np.ndarray) -> float | None:
    """Gwet (2014), chapter 2: p_a, then p_e = Σ_k π_k (1 - π_k) / (q - 1) with q = 2."""
    agreement, shares = [], []
    for column in table.T:
        votes = [v for v in column if not np.isnan(v)]
        r_i = len(votes)
        if r_i < 2:
            continue
        r_ik = [votes.count(0.0), votes.count(1.0)]
        agreement.append(sum(r * (r - 1) / (r_i * (r_i - 1)) for r in r_ik))
        shares.append([r / r_i for r in r_ik])
    if not agreement:
        return None
    p_a = sum(agreement) / len(agreement)
    pi = [sum(s[k] for s in shares) / len(shares) for k in (0, 1)]
    p_e = sum(p * (1 - p) for p in pi) / (2 - 1)
    return (p_a - p_e) / (1 - p_e)


def dawid_skene_by_loops(
    votes: list[tuple[int, int, int]],
    n_items: int,
    n_raters: int,
    *,
    iterations: int,
    smoothing: float,
    truth: dict[int, int] | None = None,
) -> tuple[list[float], list[float], list[float], float]:
    """EM written with dictionaries and loops, one category: posterior, sens., spec., prior."""
    truth = truth or {}
    of_item: dict[int, list[tuple[int, int]]] = {i: [] for i in range(n_items)}
    for item, rater, vote in votes:
        of_item[item].append((rater, vote))
    share = sum(v for _, _, v in votes) / len(votes)
    p = {}
    for item, given in of_item.items():
        accepts = sum(v for _, v in given)
        p[item] = float(truth.get(item, (accepts + share) / (len(given) + 1)))
    for _ in range(iterations):
        sens, spec = [], []
        for rater in range(n_raters):
            mine = [(item, vote) for item, r, vote in votes if r == rater]
            hit = sum(p[i] for i, v in mine if v == 1) + smoothing
            match = sum(p[i] for i, _ in mine) + 2 * smoothing
            right = sum(1 - p[i] for i, v in mine if v == 0) + smoothing
            other = sum(1 - p[i] for i, _ in mine) + 2 * smoothing
            sens.append(hit / match)
            spec.append(right / other)
        free = [i for i in range(n_items) if i not in truth and of_item[i]]
        prior = (sum(p[i] for i in free) + smoothing) / (len(free) + 2 * smoothing)
        for item, given in of_item.items():
            if item in truth:
                continue
            a, b = prior, 1 - prior
            for rater, vote in given:
                a *= sens[rater] if vote else 1 - sens[rater]
                b *= 1 - spec[rater] if vote else spec[rater]
            p[item] = a / (a + b)
    return [p[i] for i in range(n_items)], sens, spec, prior
