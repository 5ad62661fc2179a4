"""No file is forgotten: what an attempt leaves behind is written down and removed, whenever that is possible."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone

from croc_annotate.candidates import leftovers, services
from croc_annotate.candidates.claims import MAX_ATTEMPTS, Group, claim_batch
from croc_annotate.candidates.models import Candidate, LeftFile
from croc_annotate.candidates.storage import write_file
from croc_annotate.candidates.tasks import sweep_left_files
from tests import factories

pytestmark = pytest.mark.django_db(transaction=True)


def files(settings) -> list[Path]:
    return [path for path in Path(settings.MEDIA_ROOT).rglob("*") if path.is_file()]


def broken_off() -> tuple[Candidate, list[str]]:
    """A candidate whose worker died after its files and before its row; the files' names."""
    candidate = factories.make_candidate(rendered=False)
    names = services.fresh_names(".png")
    services._announce(candidate.pk, names, "")
    for name in names:
        write_file(name, b"half")
    candidate.refresh_from_db()
    return candidate, list(names)


def left() -> set[str]:
    return set(LeftFile.objects.values_list("name", flat=True))


@pytest.fixture
def store_refuses(monkeypatch) -> None:
    """A store that takes files and does not delete them."""

    def refuse(name: str) -> None:
        raise OSError("the store is away")

    monkeypatch.setattr("croc_annotate.candidates.storage.delete_file", refuse)


def test_files_that_cannot_be_deleted_now_are_deleted_by_the_next_sweep(
    settings, store_refuses, monkeypatch
) -> None:
    candidate, names = broken_off()
    services.store_image(candidate=candidate, data=factories.png_bytes(), provenance={})
    assert len(files(settings)) == 6
    assert left() == set(names)
    monkeypatch.undo()
    assert leftovers.sweep(at=timezone.now()) == 0  # removed, and kept in mind for an hour
    assert len(files(settings)) == 3
    assert left() == set(names)


def test_a_file_that_comes_late_is_removed_too_and_then_forgotten(settings) -> None:
    candidate, names = broken_off()
    services.store_image(candidate=candidate, data=factories.png_bytes(), provenance={})
    assert len(files(settings)) == 3
    write_file(names[0], b"an upload that the store completed after its sender gave up")
    assert leftovers.sweep(at=timezone.now() + leftovers.GRACE + timedelta(seconds=1)) == 3
    assert len(files(settings)) == 3
    assert left() == set()


def test_a_failure_lets_go_of_what_its_candidate_had_announced(settings) -> None:
    candidate, names = broken_off()
    assert services.fail_candidate(candidate=candidate, reason="blank image: black")
    candidate.refresh_from_db()
    assert (candidate.state, candidate.image) == ("failed", "")
    assert files(settings) == []
    assert left() == set(names)


def test_a_candidate_whose_workers_all_died_is_given_up_with_its_files(settings) -> None:
    candidate, names = broken_off()
    Candidate.objects.filter(pk=candidate.pk).update(attempts=MAX_ATTEMPTS)
    group = Group(candidate.generator_id, candidate.pair_id, candidate.side)
    claim = claim_batch(
        group=group, worker="w", limit=4, at=timezone.now(), lease=timedelta(seconds=9)
    )
    assert claim.candidates == []
    candidate.refresh_from_db()
    assert candidate.error.startswith(f"given up after {MAX_ATTEMPTS} attempts")
    assert files(settings) == []
    assert left() == set(names)


def test_the_scheduler_s_task_waits_for_a_store_that_is_away(monkeypatch, caplog) -> None:
    LeftFile.objects.create(name="originals/aa/x.png", since=timezone.now() - timedelta(days=1))

    def refuse(name: str) -> None:
        raise OSError("the store is away")

    monkeypatch.setattr(leftovers, "delete_file", refuse)
    assert sweep_left_files() == 0
    assert "the store is away" in caplog.text
    assert LeftFile.objects.count() == 1
    monkeypatch.undo()
    assert sweep_left_files() == 1
    assert not LeftFile.objects.exists()
