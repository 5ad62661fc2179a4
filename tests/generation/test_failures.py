"""What fails, fails alone and with its reason; what is drawn is kept."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import pytest
from django.core.management import CommandError
from django.db import connection  # noqa: F401 - for the condition of a skip

from croc_annotate.candidates import claims
from croc_annotate.candidates.models import Candidate, Generator
from generation import heart
from generation.pipeline import PipelineError, TryLater
from generation.worker import Worker as HereWorker
from tests import factories
from tests.generation import fakes
from tests.generation.rendering import claims_time, generate, make_generator, states

pytestmark = pytest.mark.django_db


@pytest.mark.field_case(48)
def test_blank_broken_and_absent_images_are_failures_with_their_reason() -> None:
    factories.make_pair()
    make_generator(black=[1], broken=[2], nothing=[3], refused=[4])
    result = generate("--seeds", "1-5")
    reasons = dict(Candidate.objects.filter(side="prompt").failed().values_list("seed", "error"))
    assert result["failed_now"] == 8
    assert reasons[1] == "blank image: black"
    assert "not a readable PNG" in reasons[2]
    assert reasons[3] == "the pipeline answered with no image"
    assert reasons[4] == "refused by the source"
    assert states()[5] == "rendered"


def test_failed_ones_stay_failed_until_they_are_asked_for_again() -> None:
    factories.make_pair()
    generator = make_generator(black=[1, 2])
    generate("--seeds", "1-3")
    assert generate("--seeds", "1-3")["rendered_now"] == 0
    generator.settings["extra"] = {"black": [2]}
    generator.save()
    result = generate("--seeds", "1-3", "--retry-failed")
    assert (result["retried"], result["rendered_now"], result["failed_now"]) == (4, 2, 2)
    assert states() == {1: "rendered", 2: "failed", 3: "rendered"}


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("crash", "ValueError: a bug at seed 2"),  # after the images before it
        ("spoils", "RuntimeError: shapes do not match"),  # before any image of its call
        ("black", "blank image: black"),
        ("nothing", "the pipeline answered with no image"),
        ("unspeakable", "TypeError: Object of type object is not JSON serializable"),
    ],
)
def test_a_seed_that_goes_wrong_fails_alone_and_the_rest_of_its_batch_is_stored(
    fault: str, reason: str
) -> None:
    factories.make_pair()
    make_generator(**{fault: [2]})
    assert generate("--seeds", "1-9")["rendered_now"] == 2 * 8
    failed = Candidate.objects.failed().values_list("side", "seed", "error")
    assert set(failed) == {("prompt", 2, reason), ("contrast", 2, reason)}


def test_a_generator_that_always_breaks_stops_the_run_instead_of_failing_everything() -> None:
    factories.make_pair()
    make_generator(crash=list(range(1, 101)))
    with pytest.raises(CommandError, match="5 batches in a row"):
        generate("--seeds", "1-100")
    assert Candidate.objects.requested().count() > 150
    assert not Candidate.objects.requested().exclude(claimed_by="").exists()


def group_of(generator: Generator, seeds: int) -> claims.Group:
    pair = factories.make_pair()
    for seed in range(1, seeds + 1):
        factories.make_candidate(pair=pair, generator=generator, seed=seed, rendered=False)
    return claims.Group(generator.pk, pair.pk, "prompt")


@pytest.fixture
def worker():
    made = HereWorker(queue="here")
    yield made
    made.close()


def at_seed(monkeypatch, seed: int, act) -> None:
    plain = fakes.Noise._one

    def one(self: fakes.Noise, text: str, asked: int) -> object:
        if asked == seed:
            act()
        return plain(self, text, asked)

    monkeypatch.setattr(fakes.Noise, "_one", one)


def test_an_image_is_stored_while_the_next_of_its_batch_is_drawn(monkeypatch, worker) -> None:
    gate = threading.Event()
    waited: list[bool] = []
    at_seed(monkeypatch, 4, lambda: waited.append(gate.wait(30)))
    results = worker.results(group_of(make_generator(), 5))
    stored = [next(results)[0].seed for _ in range(3)]
    assert waited == []  # seed 4 is being drawn, or will be
    assert set(Candidate.objects.rendered().values_list("seed", flat=True)) == {1, 2, 3}
    gate.set()
    assert sorted(stored + [candidate.seed for candidate, _ in results]) == [1, 2, 3, 4, 5]


def test_what_was_drawn_before_a_source_went_away_is_stored(monkeypatch, worker) -> None:
    def away() -> None:
        raise TryLater("no answer")

    at_seed(monkeypatch, 5, away)
    with pytest.raises(TryLater):
        worker.render_group(group_of(make_generator(), 9))
    assert states() == {
        **dict.fromkeys([1, 2, 3, 4], "rendered"),
        **dict.fromkeys(range(5, 10), "requested"),
    }
    assert set(Candidate.objects.requested().values_list("claimed_by", "attempts")) == {("", 0)}


@pytest.mark.parametrize("error", [KeyError("unet"), MemoryError("host")])
def test_a_pipeline_that_cannot_be_loaded_gives_its_candidates_back(
    monkeypatch, worker, error: Exception
) -> None:
    def load(_self: fakes.Noise) -> None:
        raise error

    monkeypatch.setattr(fakes.Noise, "load", load)
    with pytest.raises(PipelineError, match=f"noise cannot be loaded: {type(error).__name__}"):
        worker.render_group(group_of(make_generator(), 3))
    assert set(Candidate.objects.values_list("state", "claimed_by")) == {("requested", "")}


def test_images_that_can_never_be_stored_stop_the_run_too() -> None:
    factories.make_pair()
    make_generator(unspeakable=list(range(1, 101)))
    with pytest.raises(CommandError, match="5 images in a row could not be encoded or stored"):
        generate("--seeds", "1-100")
    assert Candidate.objects.failed().count() == 4
    assert not Candidate.objects.requested().exclude(claimed_by="").exists()


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif("connection.vendor != 'postgresql'", reason="SQLite takes every text")
def test_what_the_database_refuses_fails_one_image_and_leaves_no_file(
    monkeypatch, settings
) -> None:
    """PostgreSQL's JSON holds no NUL; a service's own words about an image may."""
    factories.make_pair()
    make_generator()
    plain = fakes.Noise._one

    def with_nul(self: fakes.Noise, text: str, seed: int) -> object:
        outcome = plain(self, text, seed)
        return replace(outcome, facts={"revised_prompt": "a\0b"}) if seed == 2 else outcome

    monkeypatch.setattr(fakes.Noise, "_one", with_nul)
    assert generate("--seeds", "1-6")["rendered_now"] == 2 * 5
    failed = Candidate.objects.failed()
    assert set(failed.values_list("seed", flat=True)) == {2}
    assert "DataError" in failed.first().error
    files = [path for path in Path(settings.MEDIA_ROOT).rglob("*") if path.is_file()]
    assert len(files) == 10 * 3


@pytest.mark.field_case(47)
def test_out_of_memory_halves_the_batch_and_every_image_is_made(tmp_path: Path) -> None:
    factories.make_pair()
    log = tmp_path / "log"
    generator = make_generator(fits=3, log=str(log))
    generator.settings["batch_size"] = 16
    generator.save()
    assert generate("--seeds", "1-20")["rendered_now"] == 40
    sizes = [
        len(line.split()[-1].split(","))
        for line in log.read_text().splitlines()
        if "render" in line
    ]
    assert max(sizes) > 3
    assert set(sizes[-5:]) <= {1, 2}


@pytest.mark.field_case(47)
def test_an_image_that_does_not_fit_alone_fails_with_its_reason() -> None:
    factories.make_pair()
    make_generator(fits=0)
    assert generate("--seeds", "1-2")["failed_now"] == 4
    assert "does not fit into memory, even alone" in Candidate.objects.failed().first().error


def test_a_source_that_is_down_is_said_and_its_candidates_wait_on() -> None:
    factories.make_pair()
    make_generator(down=True)
    with pytest.raises(CommandError, match="noise is down"):
        generate("--seeds", "1-2")
    assert set(states().values()) == {"requested"}
    assert set(Candidate.objects.values_list("attempts", "claimed_by")) == {(0, "")}


def test_a_candidate_that_ends_its_worker_each_time_is_given_up() -> None:
    pair, generator = factories.make_pair(), make_generator()
    factories.make_candidate(
        pair=pair, generator=generator, seed=1, rendered=False,
        claimed_by="dead#1", claimed_until=claims_time(-1), attempts=claims.MAX_ATTEMPTS,
    )  # fmt: skip
    generate("--seeds", "1")
    assert "given up after 10 attempts" in Candidate.objects.get(side="prompt").error


def test_who_was_at_many_deaths_is_tried_alone_with_nothing_else_at_stake(worker, tmp_path) -> None:
    log = tmp_path / "log"
    group = group_of(make_generator(log=str(log)), 6)
    Candidate.objects.filter(seed__in=[2, 3]).update(attempts=claims.ALONE_AFTER)
    held = Candidate.objects.requested().exclude(claimed_by="")
    for candidate, _ in worker.results(group):
        if candidate.seed in (2, 3):
            assert not held.exists()
    assert set(states().values()) == {"rendered"}
    drawn = [line.split()[-1] for line in log.read_text().splitlines() if "render" in line]
    assert drawn == ["1", "2", "3", "4,5,6"]


@pytest.mark.django_db(transaction=True)
def test_the_heart_beats_on_when_a_chore_goes_wrong(monkeypatch) -> None:
    monkeypatch.setattr(heart, "BEAT_SECONDS", 0.01)
    worker, calls = HereWorker(queue="here"), threading.Semaphore(0)

    def chore() -> None:
        calls.release()
        raise RuntimeError("the broker answered nonsense")

    worker.heart.chores.append(chore)
    worker.start()
    try:
        assert all(calls.acquire(timeout=60) for _ in range(3))
    finally:
        worker.close()
