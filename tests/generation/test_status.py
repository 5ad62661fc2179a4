from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
from django.core.management import call_command
from django.urls import reverse
from django.utils import timezone

from croc_annotate.accounts.models import AuditEvent
from croc_annotate.candidates.models import Candidate, Worker
from croc_annotate.candidates.services import fail_candidate
from generation.status import forecast, generation_status, status_lines
from tests import factories
from tests.generation import fakes

pytestmark = pytest.mark.django_db


def scene() -> None:
    """Two categories, two generators: 2 rendered, 1 waiting, 3 failed for two kinds of reason."""
    one = factories.make_generator("GEN_1", pipeline=fakes.PATH)
    two = factories.make_generator("GEN_2", pipeline=fakes.PATH)
    counting, shapes = factories.make_pair("counting"), factories.make_pair("shapes")
    factories.make_candidate(pair=counting, generator=one)
    factories.make_candidate(pair=shapes, generator=two)
    factories.make_candidate(pair=counting, generator=one, rendered=False)
    for reason in ("out of memory: 3 GB", "out of memory: 4 GB", "blank image: black"):
        failed = factories.make_candidate(pair=counting, generator=two, rendered=False)
        fail_candidate(candidate=failed, reason=reason)


def worker(name: str, seconds: int, **fields: object) -> Worker:
    now = timezone.now()
    values = {"queue": "gpu", "device": "NVIDIA H100", "images_done": 7, "started_at": now}
    return Worker.objects.create(
        name=name, heartbeat_at=now - timedelta(seconds=seconds), **{**values, **fields}
    )


def text_of(response) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", response.content.decode()))


def test_the_rate_counts_from_the_first_image_of_the_window() -> None:
    scene()
    now = timezone.now()
    Candidate.objects.rendered().update(rendered_at=now - timedelta(minutes=4))
    assert generation_status(at=now).per_minute == pytest.approx(0.5)
    Candidate.objects.rendered().update(rendered_at=now - timedelta(minutes=11))
    assert generation_status(at=now).per_minute == 0


def test_counts_rate_forecast_workers_and_failures_are_those_of_the_rows() -> None:
    scene()
    now = timezone.now()
    Candidate.objects.rendered().update(rendered_at=now)
    worker("a", 1), worker("b", 4000), worker("c", 9, stopped_at=now)
    status = generation_status(at=now)
    assert (status.rendered, status.waiting, status.failed, status.total) == (2, 1, 3, 6)
    # Two images within the first minute of a run: not two in a window of ten.
    assert status.per_minute == pytest.approx(2)
    assert status.eta - status.at == timedelta(seconds=30)
    assert [(line.name, line.state) for line in status.workers] == [
        ("a", "alive"),
        ("b", "silent"),
        ("c", "stopped"),
    ]
    assert [(f.reason, f.generator, f.count) for f in status.failures] == [
        ("out of memory", "GEN_2", 2),
        ("blank image", "GEN_2", 1),
    ]
    cells = {(c.category, c.generator): (c.rendered, c.waiting, c.failed) for c in status.cells}
    assert cells == {
        ("counting", "GEN_1"): (1, 1, 0),
        ("counting", "GEN_2"): (0, 0, 3),
        ("shapes", "GEN_2"): (1, 0, 0),
    }


def test_a_forecast_needs_work_and_a_rate() -> None:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    assert forecast(at=at, waiting=0, per_minute=5) is None
    assert forecast(at=at, waiting=10, per_minute=0) is None
    assert forecast(at=at, waiting=10, per_minute=5) == at + timedelta(minutes=2)


def test_the_terminal_shows_the_same(capsys) -> None:
    scene()
    lines = "\n".join(status_lines(generation_status(at=timezone.now())))
    assert re.search(r"counting +GEN_1 +1 +1 +0", lines)
    assert "failed 2 × GEN_2: out of memory: 3 GB" in lines
    call_command(
        "generate", "--here", "--seeds", "1", "--category", "shapes", "--generator", "GEN_1"
    )
    assert re.search(r"shapes +GEN_1 +2 +0 +0", capsys.readouterr().out)


def test_the_page_shows_figures_workers_and_failures(client) -> None:
    scene()
    worker("host:1:ab", 1, doing="GEN_1 · counting_1 · prompt")
    client.force_login(factories.make_user("admin"))
    text = text_of(client.get(reverse("generation:status")))
    for words in (
        "0 / 3",
        "3 failed",
        "NVIDIA H100",
        "host:1:ab",
        "alive",
        "out of memory: 3 GB",
        "Ask again",
    ):
        assert words in text
    fragment = client.get(reverse("generation:live"))
    assert "<html" not in fragment.content.decode()
    assert "host:1:ab" in text_of(fragment)


def test_large_counts_have_separators(client) -> None:
    scene()
    worker("host:1:ab", 1, images_done=41_200)
    client.force_login(factories.make_user("admin"))
    assert "41,200" in text_of(client.get(reverse("generation:status")))


def test_without_workers_and_without_work_the_page_says_what_to_do(client) -> None:
    client.force_login(factories.make_user("admin"))
    assert "manage.py generate" in text_of(client.get(reverse("generation:status")))
    scene()
    assert "no worker is alive" in text_of(client.get(reverse("generation:status")))


def test_failures_of_one_reason_are_asked_for_again_and_the_rest_are_left(client) -> None:
    scene()
    client.force_login(factories.make_user("admin"))
    response = client.post(
        reverse("generation:retry"), {"reason": "out of memory", "generator": "GEN_2"}, follow=True
    )
    assert "2 images are asked for again." in text_of(response)
    assert Candidate.objects.failed().get().error == "blank image: black"
    event = AuditEvent.objects.get(action="generation.retry")
    assert event.details == {"reason": "out of memory", "candidates": 2}


@pytest.mark.parametrize("role", ["annotator", "reviewer"])
@pytest.mark.parametrize("name", ["status", "live", "retry"])
def test_only_admins_see_generation(client, role: str, name: str) -> None:
    client.force_login(factories.make_user(role))
    act = client.post if name == "retry" else client.get
    assert act(reverse(f"generation:{name}")).status_code == 403
    client.logout()
    assert act(reverse(f"generation:{name}")).status_code == 302


def test_the_page_takes_few_queries_whatever_its_size(
    client, django_assert_max_num_queries
) -> None:
    scene()
    client.force_login(factories.make_user("admin"))
    with django_assert_max_num_queries(9):
        client.get(reverse("generation:status"))
