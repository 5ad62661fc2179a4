"""Freezing from the page: asked for once, made in the background, told when it is refused."""

from __future__ import annotations

import os
import signal
from threading import Event, Thread

import pytest
from django.db import connection, connections
from django.urls import reverse

from croc_annotate.accounts.models import AuditEvent
from croc_annotate.releases import freezes, services
from croc_annotate.releases.freezes import request_freeze, run_freeze, steps_done
from croc_annotate.releases.models import JobState, Release, ReleaseFreeze
from croc_annotate.releases.services import STEPS, ReleaseRefusedError, freeze_release
from tests.factories import make_user
from tests.releases.world import NOW, full_world

pytestmark = pytest.mark.django_db


@pytest.fixture
def world():
    return full_world(pairs=1, seeds=1)


@pytest.fixture
def admin(client):
    person = make_user("admin")
    client.force_login(person)
    return person


def wish(world, **more) -> dict[str, str]:
    return {"name": "from-page", "campaign": str(world.campaign.pk), **more}


def unsent(world) -> ReleaseFreeze:
    """A wish whose message is still on its way (after a commit the task would run here)."""
    return ReleaseFreeze.objects.create(
        name="r", version="1.0.0", campaign=world.campaign, created_at=NOW
    )


def test_an_admin_freezes_from_the_page(client, admin, world, django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks(execute=True):
        answer = client.post(
            reverse("releases:new"),
            wish(world, rule="unanimous", min_judgements="3", notes="First try.", public="on"),
        )
    release = Release.objects.get(name="from-page")
    assert answer["Location"] == reverse("releases:list")
    assert (release.rule, release.n_verified, release.created_by) == ("unanimous", 32, admin)
    assert (release.version, release.notes, release.is_public) == ("1.0.0", "First try.", True)
    assert release.freeze.state == JobState.DONE
    assert AuditEvent.objects.filter(action="release.frozen", actor=admin).exists()
    page = client.get(reverse("releases:freezes")).content.decode()
    assert reverse("releases:detail", args=["from-page", "1.0.0"]) in page

    again = client.post(reverse("releases:new"), wish(world, version="1.0.0"))
    assert "cannot be changed" in again.content.decode()
    assert (Release.objects.count(), ReleaseFreeze.objects.count()) == (1, 1)


@pytest.mark.django_db(transaction=True)
def test_without_a_worker_the_page_freezes_itself(client, admin, world, settings):
    # The embedded default has no broker: the task runs where it is called.
    assert settings.CELERY_TASK_ALWAYS_EAGER
    answer = client.post(reverse("releases:new"), wish(world))
    assert answer["Location"] == reverse("releases:detail", args=["from-page", "1.0.0"])
    assert Release.objects.get().sealed


def test_two_clicks_are_one_wish(client, admin, world, django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks(execute=True):
        for _ in range(2):
            client.post(reverse("releases:new"), wish(world))
        assert ReleaseFreeze.objects.count() == 1
        assert "Waiting" in client.get(reverse("releases:list")).content.decode()
        other = client.post(reverse("releases:new"), wish(world, exclusive="on"))
        assert "other settings" in other.content.decode()
    assert Release.objects.count() == ReleaseFreeze.objects.count() == 1


def test_a_second_run_changes_nothing(world):
    asked = request_freeze(name="r", campaign=world.campaign)
    assert run_freeze(freeze_id=asked.pk) is True
    assert run_freeze(freeze_id=asked.pk) is False
    assert Release.objects.count() == 1


def test_a_refusal_is_shown_and_can_be_asked_for_again(client, admin, world):
    asked = request_freeze(name="r", campaign=world.campaign)
    freeze_release(name="r", campaign=world.campaign)
    assert run_freeze(freeze_id=asked.pk) is True
    asked.refresh_from_db()
    assert (asked.state, asked.release) == (JobState.FAILED, None)
    page = client.get(reverse("releases:list")).content.decode()
    assert "there is a release r 1.0.0" in page
    assert "Try again" in page
    assert request_freeze(name="r", campaign=world.campaign).version == "1.1.0"


def test_wrong_wishes_are_refused_at_once(world):
    with pytest.raises(ReleaseRefusedError, match="no name"):
        request_freeze(name="a b", campaign=world.campaign)
    with pytest.raises(ReleaseRefusedError):
        request_freeze(name="r", campaign=world.campaign, rule="posterior", threshold=2.0)
    assert not ReleaseFreeze.objects.exists()


def test_an_unexpected_error_is_no_endless_wait(world, monkeypatch):
    asked = request_freeze(name="r", campaign=world.campaign)
    monkeypatch.setattr(services, "seal", lambda release: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        run_freeze(freeze_id=asked.pk)
    asked.refresh_from_db()
    assert (asked.state, "unexpected" in asked.error) == (JobState.FAILED, True)
    assert not Release.objects.exists()


def test_each_step_is_seen_while_it_is_done(world, monkeypatch):
    asked = request_freeze(name="r", campaign=world.campaign)
    seen = []
    monkeypatch.setattr(
        freezes.cache, "set", lambda key, value, seconds: seen.append(value), raising=True
    )
    run_freeze(freeze_id=asked.pk)
    assert seen == list(range(len(STEPS)))
    assert steps_done(asked) == 0


@pytest.mark.parametrize("role", ["annotator", "reviewer"])
def test_others_see_nothing_of_it(client, world, role):
    request_freeze(name="hidden-wish", campaign=world.campaign)
    client.force_login(make_user(role))
    assert "hidden-wish" not in client.get(reverse("releases:list")).content.decode()
    assert client.get(reverse("releases:freezes")).status_code == 403
    assert client.post(reverse("releases:new"), wish(world)).status_code == 403


@pytest.mark.django_db(transaction=True)
def test_a_second_worker_leaves_a_running_freeze_alone(world, monkeypatch):
    if connection.vendor != "postgresql":
        pytest.skip("SQLite lets one writer in at a time; the second finds it done")
    asked = unsent(world)
    inside, go_on, outcomes = Event(), Event(), []
    real = services.seal

    def slow(release: Release) -> None:
        inside.set()
        go_on.wait(60)
        real(release)

    monkeypatch.setattr(services, "seal", slow)

    def first() -> None:
        try:
            outcomes.append(run_freeze(freeze_id=asked.pk))
        finally:
            connection.close()

    thread = Thread(target=first)
    thread.start()
    assert inside.wait(60)
    assert run_freeze(freeze_id=asked.pk) is False
    assert steps_done(asked) == STEPS.index("seal"), "the second one wiped the first one's progress"
    go_on.set()
    thread.join()
    assert outcomes == [True]
    assert Release.objects.get().freeze == asked


@pytest.mark.django_db(transaction=True)
def test_a_killed_worker_leaves_nothing_and_the_next_one_finishes(world):
    asked = unsent(world)
    pid = os.fork()
    if pid == 0:
        try:
            # The parent's connection is the parent's: forget it without closing it.
            connections["default"].connection = None
            services.seal = lambda release: os.kill(os.getpid(), signal.SIGKILL)
            run_freeze(freeze_id=asked.pk)
        finally:
            os._exit(1)
    _, status = os.waitpid(pid, 0)
    assert os.WIFSIGNALED(status)
    asked.refresh_from_db()
    assert (asked.state, Release.objects.count()) == (JobState.RUNNING, 0)
    # The broker gives the message of a lost worker to another one.
    assert run_freeze(freeze_id=asked.pk) is True
    asked.refresh_from_db()
    assert asked.release == Release.objects.get()
