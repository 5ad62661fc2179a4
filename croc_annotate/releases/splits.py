"""Splits by pair: no text on both sides, each category in its share. Pure and seeded."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from croc_annotate.lib.components import connected_components
from croc_annotate.lib.hashing import stable_unit
from croc_annotate.releases.export.options import REMAINDER

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from croc_annotate.releases.records import PairRecord


@dataclass(frozen=True, slots=True)
class Splits:
    """The split and the component of each pair, by the pair's id."""

    names: tuple[str, ...]
    of: Mapping[str, str]
    component: Mapping[str, int]


def assign_splits(
    pairs: Sequence[PairRecord],
    shares: Mapping[str, float],
    *,
    seed: int,
    remainder: str = REMAINDER,
) -> Splits:
    """Give each pair a split: ``shares`` of the pairs of each category, the rest to ``remainder``.

    Pairs that share a text, directly or through others, stay together, so a category's share
    is met only as nearly as they allow.
    """
    numbers = connected_components([(pair.prompt, pair.contrast) for pair in pairs]).tolist()
    members: dict[int, list[PairRecord]] = {}
    for pair, number in zip(pairs, numbers, strict=True):
        members.setdefault(number, []).append(pair)
    order = sorted(members, key=lambda number: _rank(members[number], seed))
    of: dict[str, str] = {}
    for name, share in shares.items():
        free = [number for number in order if members[number][0].slug not in of]
        for number in _chosen(free, members, share, Counter(pair.category for pair in pairs)):
            of.update(dict.fromkeys((pair.slug for pair in members[number]), name))
    of = {pair.slug: of.get(pair.slug, remainder) for pair in pairs}
    # A split without pairs would be an empty folder, which loaders refuse.
    used = set(of.values()) or {remainder}
    return Splits(
        names=tuple(name for name in (*shares, remainder) if name in used),
        of=of,
        component=dict(zip((pair.slug for pair in pairs), numbers, strict=True)),
    )


def _rank(pairs: Sequence[PairRecord], seed: int) -> tuple[float, str]:
    first = min(pair.slug for pair in pairs)
    return stable_unit("split", seed, first), first


def _chosen(
    order: Sequence[int],
    members: Mapping[int, Sequence[PairRecord]],
    share: float,
    sizes: Counter[str],
) -> list[int]:
    """Take components while each brings the categories nearer to their number of pairs."""
    missing = {category: round(share * size) for category, size in sizes.items()}
    taken = []
    for number in order:
        brings = Counter(pair.category for pair in members[number])
        gain = sum(
            abs(missing[category]) - abs(missing[category] - n) for category, n in brings.items()
        )
        if gain > 0:
            taken.append(number)
            for category, n in brings.items():
                missing[category] -= n
    return taken
