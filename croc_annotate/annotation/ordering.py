"""The order in which items are handed out (pure, seeded).

Whoever sees "three apples" right after "four apples" answers by comparing. So items of one
pair are kept ``distance`` places apart, and each pair's items are spread over the whole order.
"""

from __future__ import annotations

import heapq
from collections import defaultdict, deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from croc_annotate.lib.hashing import stable_unit

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


@dataclass(frozen=True, slots=True)
class Entry:
    """One item to be placed: ``key`` names it, ``text`` groups images of one text."""

    key: int
    pair: int
    text: str
    category: str


Unit = tuple[Entry, ...]


def reachable_distance(pairs: int, wanted: int) -> int:
    """The distance that can be held for everybody with ``pairs`` pairs: half of them at most."""
    return min(wanted, pairs // 2)


def arrange(
    entries: Iterable[Entry], *, seed: int, distance: int, in_runs: bool = False, chunk: int = 1
) -> list[Entry]:
    """``entries`` in the order of the campaign, the same for the same seed, whatever the input's order.

    Between two units of one pair stand at least ``distance`` others, as long as other pairs
    are left. A unit is one item, or up to ``chunk`` images of one text (grid mode). With
    ``in_runs`` the categories follow one another; otherwise they are mixed.
    """
    parts: dict[str, list[Entry]] = defaultdict(list)
    for entry in sorted(entries, key=lambda entry: entry.key):
        parts[entry.category if in_runs else ""].append(entry)
    order = sorted(parts, key=lambda category: stable_unit(seed, "run", category))
    return [
        entry
        for category in order
        for unit in _spread(_units(parts[category], seed, chunk), seed, distance)
        for entry in unit
    ]


def _units(entries: Sequence[Entry], seed: int, chunk: int) -> list[Unit]:
    shuffled = sorted(entries, key=lambda entry: stable_unit(seed, "item", entry.key))
    if chunk <= 1:
        return [(entry,) for entry in shuffled]
    texts: dict[tuple[int, str], list[Entry]] = defaultdict(list)
    for entry in shuffled:
        texts[entry.pair, entry.text].append(entry)
    return [
        tuple(group[start : start + chunk])
        for group in texts.values()
        for start in range(0, len(group), chunk)
    ]


def _timed(units: Sequence[Unit], seed: int) -> dict[int, deque[tuple[float, Unit]]]:
    """For each pair its units with the times at which they should come, evenly over [0, 1)."""
    by_pair: dict[int, list[Unit]] = defaultdict(list)
    for unit in units:
        by_pair[unit[0].pair].append(unit)
    timed: dict[int, deque[tuple[float, Unit]]] = {}
    for pair, own in by_pair.items():
        own.sort(key=lambda unit: stable_unit(seed, "unit", unit[0].key))
        start = stable_unit(seed, "pair", pair)
        timed[pair] = deque(
            ((i + 0.7 * start + 0.3 * stable_unit(seed, "jitter", unit[0].key)) / len(own), unit)
            for i, unit in enumerate(own)
        )
    return timed


def _spread(units: Sequence[Unit], seed: int, distance: int) -> Iterator[Unit]:
    """By time, but a pair rests for ``distance`` units after each of its own."""
    queues = _timed(units, seed)
    ready = [(queue[0][0], pair) for pair, queue in queues.items()]
    heapq.heapify(ready)
    resting: deque[int] = deque()
    for _ in units:
        if not ready:  # only resting pairs are left: the one that rested longest comes back
            _wake(resting, queues, ready)
        _, pair = heapq.heappop(ready)
        yield queues[pair].popleft()[1]
        resting.append(pair)
        if len(resting) > distance:
            _wake(resting, queues, ready)


def _wake(
    resting: deque[int],
    queues: dict[int, deque[tuple[float, Unit]]],
    ready: list[tuple[float, int]],
) -> None:
    """Put the next resting pair that has units left back among the ready ones."""
    pair = resting.popleft()
    if queues[pair]:
        heapq.heappush(ready, (queues[pair][0][0], pair))
    elif not ready and resting:
        _wake(resting, queues, ready)


def smallest_gap(pairs: Sequence[int]) -> int | None:
    """Fewest places between two of the same pair in ``pairs``; None if none comes twice."""
    seen: dict[int, int] = {}
    gaps: list[int] = []
    for index, pair in enumerate(pairs):
        if pair in seen:
            gaps.append(index - seen[pair] - 1)
        seen[pair] = index
    return min(gaps, default=None)
