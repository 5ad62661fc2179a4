"""`requests_per_minute` holds over all workers of a generator."""

from __future__ import annotations

import itertools

import pytest

from generation import turns
from generation.turns import Turns


class Clock:
    """A time that passes only by sleeping; each sleeper is a process with an hour of its own."""

    def __init__(self) -> None:
        self.now = 1_000_000.5
        self.slept: list[float] = []

    def time(self) -> float:
        return self.now

    monotonic = time

    def sleep(self, seconds: float) -> None:
        self.slept.append(round(seconds, 6))


@pytest.fixture
def clock(monkeypatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(turns, "time", made)
    return made


@pytest.fixture
def name(request) -> str:
    """A generator that no other test has asked."""
    return str(request.node.nodeid)


def test_requests_of_several_workers_take_turns(clock: Clock, name: str) -> None:
    workers = [Turns(name, 60) for _ in range(4)]
    for worker in workers:  # all at one moment, in the middle of a second
        worker.wait()
    assert clock.slept == [0.5, 1.5, 2.5]
    starts = [clock.now, *(clock.now + wait for wait in clock.slept)]
    assert all(later - first >= 0.5 for first, later in itertools.pairwise(starts))


def test_one_worker_keeps_a_turn_s_length_between_its_requests(clock: Clock, name: str) -> None:
    worker = Turns(name, 60)
    worker.wait()
    worker.wait()
    assert clock.slept == [1.0]
    clock.now += 60
    worker.wait()
    assert clock.slept == [1.0]


def test_generators_do_not_wait_for_each_other(clock: Clock, name: str) -> None:
    Turns(f"{name}-one", 60).wait()
    Turns(f"{name}-two", 60).wait()
    assert clock.slept == []


def test_without_the_cache_each_worker_keeps_its_own_pace(
    clock: Clock, name: str, monkeypatch
) -> None:
    def away(*_: object, **__: object) -> bool:
        raise ConnectionError("no Redis")

    monkeypatch.setattr(turns.cache, "add", away)
    one, two = Turns(name, 60), Turns(name, 60)
    for worker in (one, two, one):
        worker.wait()
    assert clock.slept == [1.0]
