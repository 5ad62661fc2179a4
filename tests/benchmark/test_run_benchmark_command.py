"""run_benchmark: resumable, here or over the queue, each image once, nothing scored twice."""

from __future__ import annotations

import random
import re
import sys
import threading
import uuid
from collections import Counter
from io import StringIO

import pytest
from django.core.files.storage import default_storage
from django.core.management import CommandError, call_command
from django.utils import timezone

from croc_annotate.annotation.models import Campaign, Item, Judgement
from croc_annotate.benchmark import tasks
from croc_annotate.benchmark.batching import BatchSize
from croc_annotate.benchmark.benchmarking import NOISE_IMAGES, wanted_tasks
from croc_annotate.benchmark.boards import View, release_board
from croc_annotate.benchmark.metric import MetricFacts, MetricOptions
from croc_annotate.benchmark.models import MetricRun, MetricVersion, Score
from croc_annotate.benchmark.protocol import Policy
from croc_annotate.benchmark.runner import score_tasks
from croc_annotate.benchmark.services import register_metric
from croc_annotate.candidates.models import Candidate
from croc_annotate.releases.models import Release
from tests.benchmark.fakes import Counting
from tests.benchmark.world import close_release, open_release, small_release
from tests.factories import make_user

pytestmark = pytest.mark.django_db
FAKE = "tests.benchmark.fakes:Counting"


@pytest.fixture(autouse=True)
def fresh_counts():
    tasks.forget_loaded()
    Counting.reset()


def run(metric=FAKE, **options):
    out, err = StringIO(), StringIO()
    options.setdefault("metric", [metric])
    call_command("run_benchmark", stdout=out, stderr=err, **options)
    return out.getvalue() + err.getvalue()


def table():
    return sorted(Score.objects.values_list("image_sha256", "text_sha256", "value"))


def test_every_image_is_scored_against_both_texts():
    small_release(pairs=3, images=2)
    out = run()
    assert Score.objects.count() == 3 * 2 * 2 * 2
    metric_run = MetricRun.objects.get()
    assert (metric_run.state, metric_run.n_scores, metric_run.n_missing) == ("done", 24, 0)
    assert metric_run.timing["images"] == 12
    assert metric_run.environment["python"]
    assert "24 scores" in out
    assert out.strip().splitlines()[-1].startswith("Scored “small 1.0.0” with 1 of 1 metrics in ")


def test_each_image_comes_once_with_all_its_texts():
    small_release(pairs=3, images=2)
    run()
    assert sum(Counting.batches) == 12
    assert max(Counter(Counting.calls).values()) == 1


def test_a_second_run_computes_nothing():
    small_release()
    run()
    before = table()
    Counting.reset()
    out = run()
    assert Counting.calls == []
    assert table() == before
    assert MetricRun.objects.count() == 1
    assert "were stored already" in out


def test_killed_at_ten_random_places_it_goes_on_where_it_stopped():
    small_release(pairs=4, images=3)
    run()
    whole = table()
    Score.objects.all().delete()
    MetricRun.objects.all().delete()
    Counting.reset()
    places = random.Random(4)
    for _ in range(10):
        Counting.batches.clear()
        with pytest.raises(KeyboardInterrupt):
            run(option=[f"die_after={places.randrange(2)}"], batch_size="2")
        assert MetricRun.objects.get().state == "running"
    Counting.batches.clear()
    run(batch_size="2")
    assert table() == whole
    assert max(Counter(Counting.calls).values()) == 1
    assert MetricRun.objects.get().state == "done"


def test_the_queue_gives_the_same_scores_as_this_process(monkeypatch):
    small_release(pairs=4, images=3)
    run()
    here = table()
    Score.objects.all().delete()
    MetricRun.objects.all().delete()
    monkeypatch.setattr("croc_annotate.benchmark.benchmarking.CHUNK_IMAGES", 5)
    out = run(queue=True)
    assert "24 images in 5 tasks" in out
    assert table() == here
    metric_run = MetricRun.objects.get()
    assert (metric_run.state, metric_run.n_scores) == ("done", 48)
    assert metric_run.timing["images"] == 24


@pytest.mark.field_case(42)
def test_images_a_second_are_told_and_kept():
    small_release(pairs=3, images=2)
    assert re.search(r"[\d,.]+ images/s", run())
    assert MetricRun.objects.get().timing["images_per_second"] > 0


@pytest.mark.field_case(42)
def test_a_worker_loads_the_metric_once_for_all_tasks_of_a_run(monkeypatch):
    small_release(pairs=4, images=3)
    monkeypatch.setattr("croc_annotate.benchmark.benchmarking.CHUNK_IMAGES", 5)
    run(queue=True)
    assert Counting.built == 2  # once to plan, once in the worker


def test_a_worker_closes_one_metric_before_it_loads_the_next():
    small_release()
    run(queue=True)
    closed = Counting.closed
    run(queue=True, revision="2")
    assert Counting.closed == closed + 2  # the one that planned the run, and the one held


def test_a_task_that_is_delivered_twice_changes_nothing():
    small_release()
    run(queue=True)
    before, calls = table(), len(Counting.calls)
    tasks.score_run_range(MetricRun.objects.get().pk, 0, 100)
    assert table() == before
    assert len(Counting.calls) == calls


def test_scores_of_images_that_two_releases_share_are_computed_once():
    first = small_release(name="first")
    run()
    Counting.reset()
    members = list(Candidate.objects.filter(memberships__release=first).order_by("pk"))
    close_release(open_release("second"), [m.pair for m in members[::4]], members)
    run(release="second")
    assert Counting.calls == []
    assert MetricRun.objects.get(release__name="second").n_scores == 24


def test_scores_that_failed_calls_left_missing_are_counted_and_asked_for_again():
    small_release(pairs=2, images=1)
    out = run(option=["blank=in small", "flaky=1"])
    assert "4 missing (no noun phrase)" in out
    assert "remembered" not in out
    assert MetricRun.objects.get().n_missing == 4
    Counting.reset()
    run(option=["flaky=1"])
    assert len(Counting.calls) == 4
    assert MetricRun.objects.get().n_missing == 0
    assert MetricRun.objects.get().reasons == []


def test_a_score_that_the_metric_cannot_give_is_remembered_with_its_reason():
    small_release(pairs=2, images=1)
    out = run(option=["blank=in small"])
    assert "4 missing (no noun phrase), remembered (--retry-missing asks again)" in out
    Counting.reset()
    run()
    assert Counting.calls == []
    metric_run = MetricRun.objects.get()
    assert (metric_run.n_scores, metric_run.n_missing) == (4, 4)
    assert metric_run.reasons == ["no noun phrase"]
    assert "NaN" not in str(table())
    run(retry_missing=True)
    assert len(Counting.calls) == 4
    metric_run.refresh_from_db()
    assert (metric_run.n_missing, metric_run.reasons) == (0, [])


def test_a_remembered_missing_score_is_missing_on_every_release_that_shares_the_image():
    first = small_release(pairs=2, images=1)
    run(option=["blank=in small"])
    members = list(Candidate.objects.filter(memberships__release=first))
    close_release(open_release("second"), list({m.pair for m in members}), members)
    Counting.reset()
    run(release="second")
    assert Counting.calls == []
    second = MetricRun.objects.get(release__name="second")
    assert (second.n_missing, second.reasons) == (4, ["no noun phrase"])


def test_texts_that_were_cut_are_counted_once_however_often_a_run_is_taken_up():
    small_release(pairs=4, images=3)
    with pytest.raises(KeyboardInterrupt):
        run(option=["long=1", "die_after=3"], batch_size="4")
    Counting.batches.clear()
    run(option=["long=1"], batch_size="4")
    assert MetricRun.objects.get().n_truncated == 8


def test_over_the_queue_cut_texts_are_counted_once_and_the_workers_machine_is_named(monkeypatch):
    small_release(pairs=4, images=3)
    monkeypatch.setattr("croc_annotate.benchmark.benchmarking.CHUNK_IMAGES", 5)
    monkeypatch.setattr("croc_annotate.benchmark.benchmarking.peak_memory_mb", lambda: 4321)
    run(queue=True, option=["long=1"])
    metric_run = MetricRun.objects.get()
    assert metric_run.n_truncated == 8
    assert metric_run.environment["peak_memory_mb"] == 4321


def test_a_queued_run_with_missing_scores_comes_to_its_end(monkeypatch):
    small_release(pairs=4, images=3)
    monkeypatch.setattr("croc_annotate.benchmark.benchmarking.CHUNK_IMAGES", 5)
    run(queue=True, option=["blank=in small"])
    metric_run = MetricRun.objects.get()
    assert (metric_run.state, metric_run.n_missing) == ("done", 24)
    assert metric_run.reasons == ["no noun phrase"]


def test_an_unreadable_image_is_missing_and_is_scored_when_it_is_back():
    small_release(pairs=2, images=1)
    candidate = Candidate.objects.first()
    with default_storage.open(candidate.image) as file:
        data = file.read()
    default_storage.delete(candidate.image)
    out = run(option=["needs=pixels"])
    assert "2 missing (image not readable: FileNotFoundError)" in out
    from django.core.files.base import ContentFile

    default_storage.save(candidate.image, ContentFile(data))
    run(option=["needs=pixels"])
    assert MetricRun.objects.get().n_missing == 0


def test_when_memory_runs_out_the_batch_is_halved_and_nothing_is_lost():
    small_release(pairs=4, images=2)
    run(option=["memory=3"], batch_size="8")
    assert max(Counting.batches) == 2
    assert Score.objects.count() == 32


def test_when_not_even_one_image_fits_the_run_fails_in_words():
    small_release()
    with pytest.raises(CommandError, match="did not work"):
        run(option=["memory=0"])
    metric_run = MetricRun.objects.get()
    assert metric_run.state == "failed"
    assert "not even one image fits" in metric_run.error


def test_a_metric_that_fails_leaves_the_others_their_turn():
    small_release()
    out, err = StringIO(), StringIO()
    with pytest.raises(CommandError, match="did not work: human"):
        call_command("run_benchmark", metric=["human", "random"], stdout=out, stderr=err)
    assert "votes that were kept out" in err.getvalue()
    assert "with 1 of 2 metrics" in out.getvalue()


def test_a_trial_is_partial_and_not_on_the_leaderboard():
    small_release(pairs=4, images=2)
    run(limit=3)
    metric_run = MetricRun.objects.get()
    assert (metric_run.state, metric_run.n_scores) == ("partial", 6)
    run()
    assert MetricRun.objects.get().state == "done"


def test_a_replicate_is_scored_again_and_never_ranked():
    release = small_release()
    run()
    Counting.reset()
    run(replicate="again")
    assert len(Counting.calls) == 24
    assert MetricVersion.objects.count() == 2
    board = release_board(release, View(draws=50))
    assert [e.name for e in board.entries] == ["counting"]


def test_two_models_of_one_metric_are_two_rows():
    release = small_release()
    run(revision="1")
    run(revision="2")
    board = release_board(release, View(draws=50))
    assert len({e.name for e in board.entries}) == 2


def test_truncated_texts_are_counted():
    small_release(pairs=2, images=1)
    out = run(option=["long=1"])
    assert "4 texts were longer than the model reads" in out


def test_an_unknown_metric_names_a_near_one():
    small_release()
    with pytest.raises(CommandError):
        run("clipscor")


@pytest.mark.field_case(45)
def test_the_human_row_counts_ties_half_and_only_votes_kept_out_of_the_selection():
    release = small_release(pairs=2, images=1)
    campaign = Campaign.objects.create(slug="c", title="C")
    person = make_user()
    for candidate in Candidate.objects.all():
        for role, verdict in (("own", "accept"), ("other", "reject")):
            item = Item.objects.create(
                campaign=campaign, candidate=candidate, pair=candidate.pair, text_role=role,
                group="g", position=candidate.pk * 2 + (role == "other"), opened_at=timezone.now(),
            )  # fmt: skip
            purpose = "reference" if candidate.pair_id % 2 else "work"
            now = timezone.now()
            Judgement.objects.create(
                campaign=campaign, item=item, annotator=person, verdict=verdict,
                purpose=purpose, client_key=uuid.uuid4(), answered_at=now, created_at=now,
            )  # fmt: skip
    run("human")
    run("random")
    board = release_board(release, View(policy=Policy(missing="error"), draws=50))
    human = board.entry("human")
    assert human.reference
    assert human.rank is None
    assert human.evaluation.policy.ties == "half"
    assert human.result.average["text_forward"] == 1.0
    assert human.result.average["n_text_forward"] == 1
    both = release_board(release, View(voted_only=True, draws=50))
    assert both.layout.n_pairs == 1
    assert {e.result.average["n_text_forward"] for e in both.entries} == {1}


class Watching(Counting):
    """Notes which threads make images ready, and how many are when a batch is scored."""

    threads: list[int] = []
    prepared = 0
    wait_for = 0
    enough = threading.Condition()

    def __init__(self, *, options):
        super().__init__(options=options)
        self.needs = "pixels"

    def prepare(self, *, image):
        with self.enough:
            self.threads.append(threading.get_ident())
            type(self).prepared += 1
            self.enough.notify_all()
        return image

    def score(self, *, images, texts):
        with self.enough:
            # While a batch is scored the next one is made ready; if it were not, this would end.
            reached = self.enough.wait_for(lambda: self.prepared >= self.wait_for, timeout=120)
            assert reached, f"{self.prepared} of {self.wait_for} images were made ready"
        return super().score(images=images, texts=texts)


WATCHING = "tests.benchmark.test_run_benchmark_command:Watching"


@pytest.fixture
def watching(monkeypatch):
    monkeypatch.setattr(Watching, "threads", [])
    monkeypatch.setattr(Watching, "prepared", 0)
    monkeypatch.setattr(Watching, "wait_for", 0)
    return Watching


@pytest.mark.parametrize("workers", [1, 3])
def test_images_are_decoded_in_as_many_workers_as_asked_for(watching, workers):
    small_release(pairs=6, images=2)
    run(WATCHING, workers=workers, batch_size="2")
    counts = Counter(watching.threads)
    # In this thread only what is scored once more afterwards, for the noise floor.
    assert counts.pop(threading.get_ident()) == NOISE_IMAGES
    assert counts.total() == 24
    assert 1 <= len(counts) <= workers
    assert MetricRun.objects.get().environment["decoding_workers"] == workers
    assert MetricRun.objects.get().n_scores == 48


def test_a_batch_that_has_grown_finds_its_next_one_decoded(watching):
    """Not only the few images that were enough for the first, small batch."""
    small_release(pairs=30, images=2)
    version = register_metric(MetricFacts(name="watching"))
    metric = watching(options=MetricOptions())
    batch = BatchSize()
    release = Release.objects.get()

    def grow(images):
        if batch.size == 4:  # as `report` does once twice the batch was faster
            batch.size = 40
            watching.wait_for = 4 + 40 + 40  # scored, in this batch, and in the next

    todo = wanted_tasks(release, 0)
    tally = score_tasks(metric=metric, version=version, tasks=todo, batch=batch, on_batch=grow)
    assert tally.images == 120
    assert Counting.batches[:2] == [4, 40]


class Terminal(StringIO):
    def isatty(self):
        return True


def test_a_terminal_shows_images_a_second_and_the_time_that_is_left(monkeypatch):
    small_release(pairs=4, images=3)
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    run(batch_size="4")
    shown = screen.getvalue()
    assert re.search(r" 24/24 \[\d\d:\d\d<\d\d:\d\d, +[\d.]+image/s\]", shown), shown
    assert shown.startswith("\r" + FAKE)


def test_the_batch_size_grows_while_it_pays():
    size = BatchSize()
    for _ in range(30):
        # Twice the batch is twice as fast up to 32, then no faster.
        size.report(images=size.size, seconds=size.size / (10 * min(size.size, 32)))
    assert size.size == 32


def test_the_batch_size_stops_below_what_did_not_fit():
    size = BatchSize()
    for _ in range(3):
        size.report(images=size.size, seconds=0.1)
    assert size.size == 8
    assert size.shrink()
    for _ in range(10):
        size.report(images=size.size, seconds=0.1)
    assert size.size == 4
    assert not BatchSize(1).shrink()
