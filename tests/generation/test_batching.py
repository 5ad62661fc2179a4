from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from generation.batching import FittingBatches
from generation.pipeline import (
    DoesNotFit,
    GeneratorSpec,
    Outcome,
    Pipeline,
    PipelineError,
    RenderedImage,
    RenderFailure,
)
from generation.registry import dotted_path
from generation.render_settings import RenderSettings, SettingsError, parse_settings
from generation.streak import ERRORS_IN_A_ROW
from tests.generation.fakes import Noise


class Memory:
    """A pipeline that can hold so many images, and yields some of a batch before it gives up."""

    def __init__(self, holds: int, batch: int, before: int = 0) -> None:
        self.spec = GeneratorSpec("m", "m", RenderSettings(batch_size=batch))
        self.holds, self.before = holds, before

    def render(self, text: str, seeds: Sequence[int]) -> Iterator[Outcome]:
        for number, seed in enumerate(seeds):
            if len(seeds) > self.holds and number >= self.before:
                raise DoesNotFit("too large")
            yield RenderedImage(seed, data=b"x")


@pytest.mark.field_case(47)
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    holds=st.integers(0, 9),
    batch=st.integers(1, 12),
    before=st.integers(0, 3),
    seeds=st.lists(st.integers(0, 500), unique=True, max_size=30),
)
def test_every_seed_has_one_outcome_whatever_fits(
    holds: int, batch: int, before: int, seeds: list[int]
) -> None:
    outcomes = list(FittingBatches(Memory(holds, batch, before)).render("t", seeds))
    assert sorted(o.seed for o in outcomes) == sorted(seeds)
    if holds:
        assert all(isinstance(o, RenderedImage) for o in outcomes)


class Babbler(Memory):
    """Answers with a seed that nobody asked for, one twice, and one not at all."""

    def render(self, text: str, seeds: Sequence[int]) -> Iterator[Outcome]:
        yield RenderedImage(999, data=b"x")
        yield RenderedImage(seeds[0], data=b"x")
        yield RenderedImage(seeds[0], data=b"y")


def test_a_pipeline_that_answers_too_much_or_too_little_is_put_right() -> None:
    outcomes = list(FittingBatches(Babbler(9, 9)).render("t", [1, 2]))
    assert [(type(o), o.seed) for o in outcomes] == [(RenderedImage, 1), (RenderFailure, 2)]


class Broken(Memory):
    def render(self, text: str, seeds: Sequence[int]) -> Iterator[Outcome]:
        raise RuntimeError("no kernel image")
        yield


def test_errors_in_a_row_stop_instead_of_failing_everything() -> None:
    batches = FittingBatches(Broken(9, 1))
    outcomes = batches.render("t", range(100))
    failed = [next(outcomes) for _ in range(ERRORS_IN_A_ROW - 1)]
    assert {o.reason for o in failed} == {"RuntimeError: no kernel image"}
    with pytest.raises(PipelineError, match="5 batches in a row"):
        next(outcomes)


class Spoilt(Memory):
    """Each call with one of the bad seeds ends in an error before its first image."""

    def __init__(self, bad: set[int], batch: int) -> None:
        super().__init__(holds=99, batch=batch)
        self.bad, self.calls = bad, 0

    def render(self, text: str, seeds: Sequence[int]) -> Iterator[Outcome]:
        self.calls += 1
        if self.bad & set(seeds):
            raise ValueError("a bad seed")
        yield from super().render(text, seeds)


@given(bad=st.sets(st.integers(0, 11), max_size=2), batch=st.integers(1, 12), n=st.integers(0, 12))
def test_an_error_of_a_whole_call_fails_only_the_seed_that_meets_it_alone(
    bad: set[int], batch: int, n: int
) -> None:
    # One bad seed a batch: more of them could be an error of the whole pipeline.
    bad = set({seed // batch: seed for seed in bad}.values())
    pipeline = Spoilt(bad, batch)
    outcomes = list(FittingBatches(pipeline).render("t", range(n)))
    assert sorted(o.seed for o in outcomes) == list(range(n))
    assert {o.seed for o in outcomes if isinstance(o, RenderFailure)} == bad & set(range(n))


def test_an_error_that_is_not_one_seed_s_is_not_met_by_each_seed_twice() -> None:
    pipeline = Spoilt(set(range(100)), batch=16)
    outcomes = list(FittingBatches(pipeline).render("t", range(16)))
    assert [o.reason for o in outcomes] == ["ValueError: a bad seed"] * 16
    assert pipeline.calls == 1 + 2


def test_what_ends_the_pipeline_while_seeds_are_tried_alone_is_no_seed_s_failure() -> None:
    class Lost(Spoilt):
        def render(self, text: str, seeds: Sequence[int]) -> Iterator[Outcome]:
            if self.calls:
                raise PipelineError("the device is gone")
            yield from super().render(text, seeds)

    outcomes = FittingBatches(Lost({1}, batch=4)).render("t", range(4))
    with pytest.raises(PipelineError, match="the device is gone"):
        next(outcomes)


def test_a_stop_ends_it_also_between_the_seeds_of_a_spoilt_batch() -> None:
    done: list[int] = []
    batches = FittingBatches(Spoilt({3}, batch=4))
    for outcome in batches.render("t", range(8), stopped=lambda: len(done) >= 2):
        done.append(outcome.seed)  # noqa: PERF401 - asked between the outcomes
    assert done == [0, 1]


def test_a_stop_ends_it_after_the_batch_at_hand() -> None:
    done: list[int] = []
    batches = FittingBatches(Memory(holds=9, batch=2))
    for outcome in batches.render("t", range(8), stopped=lambda: len(done) >= 3):
        done.append(outcome.seed)  # noqa: PERF401 - asked between the outcomes
    assert done == [0, 1, 2, 3]


def test_the_fake_and_the_protocol_agree() -> None:
    assert isinstance(Noise(GeneratorSpec("n", "m", RenderSettings())), Pipeline)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"stepps": 4}, "Unknown setting stepps"),
        ({"steps": "4"}, "steps must be int"),
        ({"steps": True}, "steps must be int"),
        ({"steps": 0}, "steps must be at least 1"),
        ({"guidance": "high"}, "guidance must be a number"),
        ({"dtype": "float8"}, "possible: bfloat16, float16, float32"),
        ({"offload": "disk"}, "possible: none, model, sequential"),
        ({"error_rate": 1.5}, "between 0 and 1"),
        ({"requests_per_minute": 0}, "above 0"),
        ({"max_spend": -1}, "must not be negative"),
        ({"extra": 3}, "must be an object"),
        ({"compile": 1}, "compile must be bool"),
    ],
)
def test_settings_that_cannot_be_meant_are_refused_by_name(given: dict, reason: str) -> None:
    with pytest.raises(SettingsError, match=reason):
        parse_settings(given)


def test_a_row_s_settings_lie_over_the_pipeline_s() -> None:
    merged = parse_settings(
        {"steps": 4, "first_block_cache": 1, "guidance": 2}, defaults={"steps": 50, "width": 512}
    )
    assert (merged.steps, merged.width, merged.guidance) == (4, 512, 2.0)
    assert merged.first_block_cache == 1.0


def test_a_pipeline_that_nobody_knows_is_refused_with_the_known_ones() -> None:
    with pytest.raises(SettingsError, match="Known: diffusers, flux, openai-images, scenes, sd3"):
        dotted_path("dalle")
    assert dotted_path("my.module:Mine") == "my.module:Mine"


def test_an_image_has_either_pixels_or_bytes() -> None:
    with pytest.raises(ValueError, match="either"):
        RenderedImage(1)
