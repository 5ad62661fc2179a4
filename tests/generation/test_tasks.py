from __future__ import annotations

from pathlib import Path

import pytest
from celery.exceptions import WorkerShutdown

from croc_annotate.candidates.claims import Group, waiting_groups
from croc_annotate.candidates.models import Candidate, Worker
from croc_annotate.candidates.planning import plan_candidates, request_candidates
from generation import tasks
from generation.pipeline import DeviceLost
from tests import factories
from tests.generation import fakes

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def fresh_worker():
    """No worker of another test, none for the next."""
    tasks._worker = None
    tasks._unusable.clear()
    yield
    if tasks._worker is not None:
        tasks._worker.close()
    tasks._worker = None


def wanted(seeds: int = 3, **extra: object) -> Group:
    pair = factories.make_pair()
    generator = factories.make_generator("noise", pipeline=fakes.PATH, settings={"extra": extra})
    request_candidates(
        plan=plan_candidates(pairs=[pair], generators=[generator], seeds=list(range(1, seeds + 1)))
    )
    return Group(generator.pk, pair.pk, "prompt")


def ring(group: Group) -> None:
    tasks.render_group(group.generator_id, group.pair_id, group.side)


def test_a_message_renders_its_group_and_a_second_one_nothing() -> None:
    group = wanted()
    ring(group)
    done = set(Candidate.objects.rendered().values_list("side", "seed", "sha256"))
    assert {(side, seed) for side, seed, _ in done} == {("prompt", 1), ("prompt", 2), ("prompt", 3)}
    ring(group)
    assert set(Candidate.objects.rendered().values_list("side", "seed", "sha256")) == done
    assert tasks._worker.heart.images_done == 3
    assert Worker.objects.get().name == tasks._worker.name


def test_a_message_is_kept_until_its_work_is_done_and_one_waits_at_a_worker() -> None:
    conf = tasks.app.conf
    assert tasks.render_group.acks_late
    assert (conf.task_acks_late, conf.task_reject_on_worker_lost) == (True, True)
    assert conf.worker_prefetch_multiplier == 1
    # Fifty images that take seven minutes each, far more than any figure in docs/operations.md.
    assert conf.broker_transport_options["visibility_timeout"] >= 50 * 7 * 60
    assert conf.task_routes["generation.tasks.*"] == {"queue": tasks.QUEUE}


def test_a_message_for_a_group_that_is_gone_does_nothing() -> None:
    ring(Group(987_654, 1, "prompt"))
    assert not Candidate.objects.exists()


def test_a_source_that_is_down_is_left_alone_for_a_while(tmp_path: Path, caplog) -> None:
    log = tmp_path / "log"
    group = wanted(down=True, log=str(log))
    for _ in range(5):
        ring(group)
    assert log.read_text().count("load noise") == 1
    assert "noise is down" in caplog.text
    assert set(Candidate.objects.values_list("state", "claimed_by")) == {("requested", "")}
    tasks._unusable.clear()
    generator = Candidate.objects.first().generator
    generator.settings = {}
    generator.save()
    ring(group)
    assert Candidate.objects.rendered().count() == 3


def test_a_lost_device_ends_the_process_and_gives_everything_back(monkeypatch) -> None:
    group = wanted()

    def lost(self: fakes.Noise, text: str, seeds: object):
        raise DeviceLost("CUDA error: an illegal memory access")
        yield

    monkeypatch.setattr(fakes.Noise, "render", lost)
    with pytest.raises(WorkerShutdown, match="illegal memory access"):
        ring(group)
    assert set(Candidate.objects.values_list("state", "claimed_by", "attempts")) == {
        ("requested", "", 0)
    }


def test_a_worker_of_a_forked_parent_is_not_used() -> None:
    first = tasks.worker()
    assert tasks.worker() is first
    first.pid -= 1
    second = tasks.worker()
    assert second is not first
    first.close()


def test_generators_that_are_off_or_imported_are_not_rung_for() -> None:
    from django.utils import timezone

    group = wanted()
    assert len(waiting_groups(at=timezone.now())) == 2
    generator = Candidate.objects.first().generator
    for change in ({"active": False}, {"active": True, "pipeline": ""}):
        type(generator).objects.filter(pk=group.generator_id).update(**change)
        assert waiting_groups(at=timezone.now()) == []
