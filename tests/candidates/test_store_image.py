from __future__ import annotations

import io
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from django.db import connection
from PIL import Image

from croc_annotate.candidates import services
from croc_annotate.candidates.attempts import times_held
from croc_annotate.candidates.models import Candidate, CandidateState
from croc_annotate.candidates.storage import read_file
from croc_annotate.lib.hashing import sha256_bytes
from croc_annotate.lib.imagefiles import BadImageError
from tests import factories

pytestmark = pytest.mark.django_db


def waiting(**fields: object) -> Candidate:
    return factories.make_candidate(rendered=False, **fields)


def files(settings) -> list[Path]:
    return [path for path in Path(settings.MEDIA_ROOT).rglob("*") if path.is_file()]


def test_the_image_its_copies_and_its_facts_are_stored(settings) -> None:
    data = factories.png_bytes(size=400)
    stored = services.store_image(candidate=waiting(), data=data, provenance={"model_id": "m"})
    assert stored.state == CandidateState.RENDERED
    assert stored.sha256 == sha256_bytes(data) == sha256_bytes(read_file(stored.image))
    assert (stored.width, stored.height) == (400, 400)
    assert stored.provenance == {"model_id": "m"}
    assert stored.rendered_at is not None
    assert len(files(settings)) == 3
    assert Image.open(io.BytesIO(read_file(stored.preview))).size == (320, 320)


def test_storage_names_are_random_and_tell_neither_generator_nor_side() -> None:
    first, second = (
        services.store_image(candidate=waiting(), data=factories.png_bytes(), provenance={})
        for _ in "ab"
    )
    assert first.image != second.image
    for name in (first.image, first.display, first.preview):
        assert first.generator.slug not in name
        assert first.side not in name
        assert first.pair.slug not in name


def test_a_second_image_of_the_same_seed_is_dropped(settings) -> None:
    first = services.store_image(
        candidate=waiting(), data=factories.png_bytes(), provenance={"n": 1}
    )
    again = services.store_image(candidate=first, data=factories.png_bytes(), provenance={"n": 2})
    assert again.sha256 == first.sha256
    assert again.provenance == {"n": 1}
    assert len(files(settings)) == 3


def test_a_broken_image_changes_nothing(settings) -> None:
    candidate = waiting()
    with pytest.raises(BadImageError):
        services.store_image(candidate=candidate, data=b"no image", provenance={})
    candidate.refresh_from_db()
    assert candidate.state == CandidateState.REQUESTED
    assert files(settings) == []


def test_a_worker_that_lost_its_claim_stores_nothing(settings) -> None:
    candidate = waiting(claimed_by="b#2")
    services.store_image(
        candidate=candidate, data=factories.png_bytes(), provenance={}, claim="a#1"
    )
    candidate.refresh_from_db()
    assert candidate.state == CandidateState.REQUESTED
    assert files(settings) == []


@pytest.mark.field_case(46)
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("after_files", [0, 1, 2, 3])
def test_files_of_an_attempt_that_died_are_removed_by_the_next(settings, after_files: int) -> None:
    candidate = waiting()
    names = services.fresh_names(".png")
    assert services._announce(candidate.pk, names, "") == []
    for name in list(names)[:after_files]:
        services.write_file(name, b"half a fi")
    stored = services.store_image(candidate=candidate, data=factories.png_bytes(), provenance={})
    assert stored.state == CandidateState.RENDERED
    assert len(files(settings)) == 3
    assert sha256_bytes(read_file(stored.image)) == stored.sha256


@pytest.mark.field_case(46)
@pytest.mark.django_db(transaction=True)
def test_a_worker_that_comes_back_after_its_replacement_started_stores_nothing(settings) -> None:
    candidate = waiting()
    slow = services.fresh_names(".png")
    services._announce(candidate.pk, slow, "")
    for name in slow:
        services.write_file(name, b"late")
    stored = services.store_image(candidate=candidate, data=factories.png_bytes(), provenance={})
    facts = services.imagefiles.inspect_image(factories.png_bytes())
    assert not services._settle(candidate, slow, facts, {})
    candidate.refresh_from_db()
    assert candidate.image == stored.image
    assert candidate.sha256 == stored.sha256


@pytest.mark.field_case(46)
@pytest.mark.django_db(transaction=True)
def test_eight_threads_storing_one_seed_leave_one_image(settings) -> None:
    candidate = waiting()
    start = threading.Barrier(8)

    def store(data: bytes) -> None:
        try:
            start.wait()
            services.store_image(candidate=candidate, data=data, provenance={})
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(store, [factories.png_bytes() for _ in range(8)]))
    candidate.refresh_from_db()
    assert candidate.state == CandidateState.RENDERED
    assert sha256_bytes(read_file(candidate.image)) == candidate.sha256
    assert len(files(settings)) == 3


def test_near_duplicates_of_one_text_are_flagged_and_others_are_not() -> None:
    pair = factories.make_pair()

    def drawn(x: int, quality: int = 90) -> bytes:
        image = Image.new("RGB", (128, 128), "white")
        image.paste((200, 30, 30), (x, 20, x + 40, 90))
        out = io.BytesIO()
        image.save(out, "JPEG", quality=quality)
        return out.getvalue()

    first = factories.make_candidate(pair=pair, data=drawn(10))
    same = factories.make_candidate(pair=pair, data=drawn(10, quality=70))
    other = factories.make_candidate(pair=pair, data=drawn(80))
    elsewhere = factories.make_candidate(data=drawn(10))
    assert first.near_duplicate_of is None
    assert same.near_duplicate_of == first
    assert other.near_duplicate_of is None
    assert elsewhere.near_duplicate_of is None


def test_near_means_at_most_four_bits_of_all_sixty_four() -> None:
    pair = factories.make_pair()

    def hashed(phash: int) -> Candidate:
        row = waiting(pair=pair)
        facts = services.imagefiles.inspect_image(factories.png_bytes())
        names = services.fresh_names(".png")
        services._announce(row.pk, names, "")
        assert services._settle(row, names, replace(facts, phash=phash), {})
        row.refresh_from_db()
        return row

    everything = hashed(2**64 - 1)
    Candidate.objects.filter(pk=hashed(0x0F0F).pk).update(phash=None)  # its hash is not known
    assert everything.near_duplicate_of is None
    assert hashed(2**60 - 1).near_duplicate_of == everything  # 4 bits, the sign's among them
    assert hashed(2**64 - 1 - 0b11111).near_duplicate_of is None
    assert hashed(0x0F0F).near_duplicate_of is None


def test_a_failure_keeps_its_reason_and_can_be_asked_for_again() -> None:
    candidate = waiting(attempts=3)
    assert services.fail_candidate(candidate=candidate, reason="blank image: black")
    candidate.refresh_from_db()
    assert (candidate.state, candidate.error) == ("failed", "blank image: black")
    assert services.retry_failed(candidates=Candidate.objects.all()) == 1
    candidate.refresh_from_db()
    assert (candidate.state, candidate.error, candidate.attempts) == ("requested", "", 0)


def test_what_was_held_before_it_was_asked_for_again_is_not_forgotten() -> None:
    generator = factories.make_generator("paid")
    rows = [waiting(generator=generator, attempts=n) for n in (3, 2, 1)]
    for _ in range(2):
        for row in rows[:2]:
            services.fail_candidate(candidate=row, reason="refused")
        assert services.retry_failed(candidates=Candidate.objects.all()) == 2
        assert times_held(generator=generator) == 6
        Candidate.objects.filter(pk=rows[0].pk).update(attempts=0)
    Candidate.objects.filter(pk__in=[row.pk for row in rows[:2]]).update(attempts=1)
    assert times_held(generator=generator) == 8
    stored = services.store_image(
        candidate=rows[0], data=factories.png_bytes(), provenance={"model_id": "m"}
    )
    assert (stored.attempts, stored.provenance) == (4, {"model_id": "m"})
    assert times_held(generator=generator) == 8


def test_storing_an_image_takes_two_statements(django_assert_num_queries) -> None:
    candidate, data = waiting(), factories.png_bytes()
    derived = services.imagefiles.derive(data)
    with django_assert_num_queries(2):
        services.keep_image(candidate=candidate, data=data, provenance={}, derived=derived)


def test_a_rendered_candidate_cannot_fail_and_a_failure_needs_a_reason() -> None:
    candidate = factories.make_candidate()
    assert not services.fail_candidate(candidate=candidate, reason="late news")
    with pytest.raises(ValueError, match="reason"):
        services.fail_candidate(candidate=candidate, reason=" ")


def test_an_image_that_arrives_after_its_failure_is_kept() -> None:
    candidate = waiting()
    services.fail_candidate(candidate=candidate, reason="gone")
    stored = services.store_image(candidate=candidate, data=factories.png_bytes(), provenance={})
    assert (stored.state, stored.error) == ("rendered", "")


@pytest.mark.parametrize("value", [0, 1, 2**63 - 1, 2**63, 2**64 - 1])
def test_hashes_survive_the_database_s_signed_numbers(value: int) -> None:
    assert services.signed(value) % 2**64 == value
    assert -(2**63) <= services.signed(value) < 2**63
