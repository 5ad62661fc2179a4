"""What a leaderboard shows first is computed when a run ends, kept, and read by whoever comes next."""

from __future__ import annotations

import pickle
import zlib

import pytest
from django.core.cache import cache
from django.core.management import call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from kombu.exceptions import OperationalError

from croc_annotate.benchmark import boards, pages, prepared
from croc_annotate.benchmark.boards import PAGE_VIEW, View, release_board
from croc_annotate.benchmark.models import MetricRun, MetricVersion, PreparedResult
from croc_annotate.benchmark.protocol import Policy
from croc_annotate.benchmark.services import close_run
from croc_annotate.candidates.models import Candidate
from croc_annotate.prompts.models import ContrastPair
from croc_annotate.releases.models import Release
from tests.benchmark.fakes import Counting
from tests.benchmark.world import close_release, open_release, small_release

pytestmark = pytest.mark.django_db
FAKE = "tests.benchmark.fakes:Counting"


@pytest.fixture(autouse=True)
def fresh(settings):
    settings.CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}
    cache.clear()
    Counting.reset()


@pytest.fixture
def release():
    made = small_release(pairs=12, images=2)
    call_command("run_benchmark", metric=[FAKE, "random"], release="small")
    Release.objects.filter(pk=made.pk).update(is_public=True)
    return made


def never(*args, **kwargs):
    raise AssertionError("computed again")


def visit(client, **query):
    response = client.get(reverse("benchmark:leaderboard"), query)
    assert response.status_code == 200
    return response.content.decode()


def test_the_first_visit_after_a_restart_computes_nothing(client, release, monkeypatch):
    cache.clear()  # as a new process finds it
    for step in ("build_board", "load_scores", "release_images"):
        monkeypatch.setattr(boards, step, never)
    with CaptureQueriesContext(connection) as asked:
        html = visit(client)
    assert "Counting" in html
    assert not [q for q in asked.captured_queries if "benchmark_score" in q["sql"]]
    made_at = PreparedResult.objects.get(name="board").made_at
    assert made_at.strftime("%Y-%m-%d %H:%M") in html


def test_a_filter_reads_kept_scores_and_no_score_rows(client, release, monkeypatch):
    visit(client)
    cache.clear()
    monkeypatch.setattr(boards, "load_scores", never)
    assert "Counting" in visit(client, ties="half")
    # Filtered boards are many: they are cached, not kept.
    assert PreparedResult.objects.filter(name="board").count() == 1


def test_what_is_kept_is_what_would_be_computed(release):
    kept = release_board(release, PAGE_VIEW)
    PreparedResult.objects.all().delete()
    cache.clear()
    anew = release_board(release, PAGE_VIEW)
    assert [e.name for e in kept.entries] == [e.name for e in anew.entries]
    assert [e.bounds for e in kept.entries] == [e.bounds for e in anew.entries]
    assert kept.differences == anew.differences


def test_another_run_is_on_the_board_at_once(client, release):
    visit(client)
    call_command("run_benchmark", metric=[FAKE], release="small", revision="2",
                 option=["name=other"])  # fmt: skip
    cache.clear()
    assert "Other" in visit(client)


def test_where_workers_renew_it_a_visitor_sees_the_last_board_and_how_old_it_is(
    client, release, settings, monkeypatch
):
    visit(client)
    run = MetricRun.objects.get(metric__name="random")
    close_run(run=run, state="done", n_scores=run.n_scores, n_missing=0)
    cache.clear()
    asked = []
    settings.CELERY_TASK_ALWAYS_EAGER = False
    monkeypatch.setattr(pages.prepare_board, "delay", asked.append)
    monkeypatch.setattr(boards, "build_board", never)
    html = visit(client)
    assert "a newer run is being counted" in html
    visit(client)
    assert asked == [release.pk]  # once, however many visitors come
    monkeypatch.undo()
    settings.CELERY_TASK_ALWAYS_EAGER = False
    boards.prepare(release)
    assert "a newer run is being counted" not in visit(client)


def test_what_another_version_of_the_code_kept_is_computed_again(client, release):
    PreparedResult.objects.update(data=b"not what it should be")
    cache.clear()
    assert "Counting" in visit(client)


def test_kept_scores_are_not_those_of_the_run_before(release):
    before = release_board(release, View(policy=Policy(ties="half"))).entry("counting").overall
    run = MetricRun.objects.get(metric__name="counting")
    run.metric.scores.filter(pk__in=run.metric.scores.values("pk")[:24]).update(value=0.5)
    close_run(run=run, state="done", n_scores=run.n_scores, n_missing=0)
    after = release_board(release, View(policy=Policy(ties="half"))).entry("counting").overall
    assert before != after


def test_a_run_that_had_nothing_to_compute_has_pages_too(client, release):
    """All its scores were stored already: no images per second, no time, and no broken page."""
    members = list(Candidate.objects.filter(memberships__release=release))
    other = close_release(open_release("second"), list({m.pair for m in members}), members)
    Release.objects.filter(pk=other.pk).update(is_public=True)
    call_command("run_benchmark", metric=[FAKE], release="second")
    assert MetricRun.objects.get(release=other).timing == {}
    assert "Counting" in visit(client, release="second")
    address = reverse("benchmark:metric", args=["counting"])
    assert client.get(address, {"release": "second"}).status_code == 200


class Bomb:
    """Runs something when it is unpickled."""

    def __reduce__(self):
        return (pytest.fail, ("a planted pickle was opened",))


def test_a_row_that_this_installation_did_not_sign_is_not_opened(release):
    release_board(release, PAGE_VIEW)
    row = PreparedResult.objects.get(name="board")
    kept = bytes(row.data)
    bomb = zlib.compress(pickle.dumps(Bomb()))
    for planted in (bomb, kept[:32] + bomb, b""):
        PreparedResult.objects.filter(pk=row.pk).update(data=planted)
        assert prepared.read(release, "board", row.stamp) is None
    PreparedResult.objects.filter(pk=row.pk).update(data=kept)
    assert prepared.read(release, "board", row.stamp) is not None


def test_another_secret_key_makes_what_was_kept_a_stranger(release, settings):
    release_board(release, PAGE_VIEW)
    stamp = PreparedResult.objects.get(name="board").stamp
    settings.SECRET_KEY = "another one, at least as long as the first one was, or longer"
    assert prepared.read(release, "board", stamp) is None


def test_an_older_board_of_another_version_of_the_code_is_not_shown(
    client, release, settings, monkeypatch
):
    """Its classes may lack what the pages show now: better to wait than to break."""
    monkeypatch.setattr(prepared, "__version__", "0.0.1")
    visit(client)
    monkeypatch.undo()
    cache.clear()
    settings.CELERY_TASK_ALWAYS_EAGER = False
    html = visit(client)
    assert "a newer run is being counted" not in html
    assert "Counting" in html


def test_a_new_label_is_on_the_board_at_once(client, release):
    visit(client)
    MetricVersion.objects.filter(name="counting").update(label="Counting, renamed")
    assert "Counting, renamed" in visit(client)


def test_a_gap_that_a_run_on_another_release_filled_is_filled_here_too(client):
    one = small_release(pairs=12, images=2)
    again = close_release(
        open_release("again"),
        list(ContrastPair.objects.all()),
        list(Candidate.objects.all()),
    )
    options = ["blank=3 red", "flaky=1"]
    call_command("run_benchmark", metric=[FAKE], release="small", option=options)
    first = release_board(one, PAGE_VIEW).entry("counting").result.average["coverage"]
    call_command("run_benchmark", metric=[FAKE], release="again", option=["flaky=1"])
    filled = release_board(again, PAGE_VIEW).entry("counting").result.average["coverage"]
    assert first < filled == 1.0
    assert release_board(one, PAGE_VIEW).entry("counting").result.average["coverage"] == filled


def test_a_visitor_sees_the_last_board_also_while_the_broker_is_away(
    client, release, settings, monkeypatch
):
    visit(client)
    run = MetricRun.objects.get(metric__name="random")
    close_run(run=run, state="done", n_scores=run.n_scores, n_missing=0)
    cache.clear()

    def away(*args):
        raise OperationalError("connection refused")

    settings.CELERY_TASK_ALWAYS_EAGER = False
    monkeypatch.setattr(pages.prepare_board, "delay", away)
    assert "a newer run is being counted" in visit(client)


def test_a_board_that_was_kept_while_public_is_for_reviewers_only_once_it_is_not(client, release):
    visit(client, release="small")
    Release.objects.update(is_public=False)
    response = client.get(reverse("benchmark:leaderboard"), {"release": "small"})
    assert response.status_code == 403
