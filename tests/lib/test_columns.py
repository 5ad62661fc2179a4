"""Rows read as columns are the rows."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from django.db.models import F

from croc_annotate.candidates.models import Candidate
from croc_annotate.lib.columns import EpochSeconds, read_columns
from tests.agreement.rows import rendered_candidate
from tests.factories import make_generator, make_pair

pytestmark = pytest.mark.django_db


@pytest.fixture
def candidates():
    pair, generator = make_pair(), make_generator()
    return [rendered_candidate(pair, "prompt", generator) for _ in range(5)]


def test_columns_are_those_of_the_rows_in_their_order(candidates):
    rows = Candidate.objects.filter(side="prompt").order_by("-seed")
    found = read_columns(rows, {"pk": "id", "seed": "seed", "twice": F("width") * 2})
    assert list(found) == ["pk", "seed", "twice"]
    assert found["pk"].tolist() == [c.pk for c in reversed(candidates)]
    assert found["seed"].tolist() == [c.seed for c in reversed(candidates)]
    assert set(found["twice"].tolist()) == {64}
    assert found["pk"].flags.c_contiguous


def test_no_rows_are_empty_columns(candidates):
    found = read_columns(Candidate.objects.filter(side="contrast"), {"pk": "id", "seed": "seed"})
    assert [column.tolist() for column in found.values()] == [[], []]


def test_large_and_negative_numbers_survive(candidates):
    Candidate.objects.filter(pk=candidates[0].pk).update(phash=-(2**62), seed=2**62)
    found = read_columns(
        Candidate.objects.filter(pk=candidates[0].pk), {"phash": "phash", "seed": "seed"}
    )
    assert (found["phash"][0], found["seed"][0]) == (-(2**62), 2**62)


def test_times_are_whole_seconds_since_1970(candidates):
    at = datetime(2026, 3, 1, 12, 0, 0, 900_000, tzinfo=UTC)
    Candidate.objects.update(created_at=at)
    found = read_columns(Candidate.objects.all(), {"at": EpochSeconds(F("created_at"))})
    assert set(found["at"].tolist()) == {int(at.timestamp())}


def test_a_null_is_an_error_and_not_a_number(candidates):
    with pytest.raises(ValueError, match="null"):
        read_columns(Candidate.objects.all(), {"phash": "phash"})


def test_quotes_and_per_cent_signs_in_a_filter_are_data(candidates):
    Candidate.objects.filter(pk=candidates[0].pk).update(source_name="50% 'off' \\ é")
    rows = Candidate.objects.filter(source_name="50% 'off' \\ é")
    assert read_columns(rows, {"pk": "id"})["pk"].tolist() == [candidates[0].pk]
