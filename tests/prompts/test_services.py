"""Loading, editing and retiring pairs: nothing under an image ever changes."""

from __future__ import annotations

import dataclasses

import pytest

from croc_annotate.accounts.models import AuditEvent
from croc_annotate.candidates.models import Candidate, Generator
from croc_annotate.prompts.bank import BankError
from croc_annotate.prompts.models import ContrastPair
from croc_annotate.prompts.rules import PairRow
from croc_annotate.prompts.services import (
    LoadReport,
    PairRetired,
    PairTaken,
    add_pair,
    edit_pair,
    load_pairs,
    reinstate_pair,
    retire_pair,
)
from tests.factories import make_user

pytestmark = pytest.mark.django_db

ROWS = [
    PairRow("counting_1", "counting", "one cat", "two cats", property="few", place="line 1"),
    PairRow("counting_10", "counting", "three dogs", "four dogs", place="line 2"),
    PairRow("negation_1", "negation", "with a hat", "without a hat", "bareheaded", place="line 3"),
]


def changed(number: int, **values: str) -> list[PairRow]:
    return [dataclasses.replace(r, **values) if i == number else r for i, r in enumerate(ROWS)]


def pair(slug: str = "counting_1") -> ContrastPair:
    return ContrastPair.objects.active().get(slug=slug)


def with_image(slug: str = "counting_1") -> ContrastPair:
    generator, _ = Generator.objects.get_or_create(slug="g", defaults={"label": "G"})
    Candidate.objects.create(pair=pair(slug), side="prompt", generator=generator, seed=1)
    return pair(slug)


def test_a_bank_is_loaded_and_a_second_time_changes_nothing() -> None:
    assert load_pairs(rows=ROWS, bank="b") == LoadReport(created=3)
    before = list(ContrastPair.objects.order_by("id").values())
    assert load_pairs(rows=ROWS, bank="b") == LoadReport(unchanged=3)
    assert list(ContrastPair.objects.order_by("id").values()) == before
    assert pair().property == "few"
    assert pair("negation_1").alt_contrast == "bareheaded"


def test_one_wrong_row_stops_the_whole_load() -> None:
    with pytest.raises(BankError, match="line 2: contrast: says the same"):
        load_pairs(rows=changed(1, contrast="Three dogs!"), bank="b")
    assert ContrastPair.objects.count() == 0


def test_changed_texts_without_images_are_edited_and_the_old_ones_kept_in_the_log() -> None:
    load_pairs(rows=ROWS, bank="b")
    old = pair()
    assert load_pairs(rows=changed(0, contrast="three cats"), bank="b").edited == 1
    assert (pair().pk, pair().version, pair().contrast) == (old.pk, 1, "three cats")
    event = AuditEvent.objects.get(action="pair_edited")
    assert event.details["before"]["contrast"] == "two cats"


def test_changed_texts_under_images_make_a_new_version() -> None:
    load_pairs(rows=ROWS, bank="b")
    old = with_image()
    report = load_pairs(rows=changed(0, contrast="three cats"), bank="b")
    assert report == LoadReport(versioned=1, unchanged=2)
    old.refresh_from_db()
    assert (old.contrast, old.active, old.retired_reason) == (
        "two cats",
        False,
        "replaced by version 2",
    )
    assert (pair().version, pair().contrast) == (2, "three cats")
    assert old.candidates.count() == 1
    assert load_pairs(rows=changed(0, contrast="three cats"), bank="b") == LoadReport(unchanged=3)


def test_another_bank_with_the_same_id_never_overwrites_a_text() -> None:
    load_pairs(rows=ROWS, bank="b")
    assert load_pairs(rows=changed(0, contrast="three cats"), bank="other").versioned == 1
    assert ContrastPair.objects.filter(slug="counting_1").count() == 2


def test_changed_labels_are_taken_over_even_under_images() -> None:
    load_pairs(rows=ROWS, bank="b")
    with_image()
    assert load_pairs(rows=changed(0, topic="pets"), bank="b").edited == 1
    assert (pair().topic, pair().version) == ("pets", 1)


def test_a_retired_pair_stays_retired_when_its_bank_is_loaded_again() -> None:
    load_pairs(rows=ROWS, bank="b")
    retire_pair(pair=pair(), reason="both texts can be true")
    assert load_pairs(rows=ROWS, bank="b") == LoadReport(unchanged=2, retired=1)
    assert not ContrastPair.objects.active().filter(slug="counting_1").exists()
    assert load_pairs(rows=changed(0, contrast="six cats"), bank="b").versioned == 1
    assert pair().version == 2


def test_ids_are_matched_whole() -> None:
    load_pairs(rows=ROWS, bank="b")
    load_pairs(rows=[dataclasses.replace(ROWS[0], contrast="nine cats")], bank="b")
    assert pair("counting_10").contrast == "four dogs"


def test_loading_needs_few_queries(django_assert_max_num_queries) -> None:
    rows = [
        PairRow(f"shapes_{i}", "shapes", f"a round sign {i}", f"a square sign {i}")
        for i in range(300)
    ]
    with django_assert_max_num_queries(6):
        load_pairs(rows=rows, bank="b")
    with django_assert_max_num_queries(4):
        load_pairs(rows=rows, bank="b")


def test_a_pair_is_added_once() -> None:
    admin = make_user("admin")
    add_pair(row=ROWS[0], bank="site", actor=admin)
    with pytest.raises(PairTaken, match="“counting_1” is in use"):
        add_pair(row=ROWS[0])
    with pytest.raises(BankError):
        add_pair(row=dataclasses.replace(ROWS[2], alt_contrast=""))
    assert AuditEvent.objects.get().actor == admin


def test_an_edit_makes_a_version_only_where_images_exist() -> None:
    load_pairs(rows=ROWS, bank="b")
    new = dataclasses.replace(ROWS[0], contrast="five cats")
    assert not edit_pair(pair=pair(), row=new).versioned
    with_image()
    change = edit_pair(pair=pair(), row=ROWS[0])
    assert change.versioned
    assert (change.pair.version, change.pair.contrast) == (2, "two cats")


def test_an_edit_of_a_replaced_version_is_refused() -> None:
    load_pairs(rows=ROWS, bank="b")
    old = with_image()
    edit_pair(pair=old, row=dataclasses.replace(ROWS[0], contrast="five cats"))
    with pytest.raises(PairRetired, match="not in use any more"):
        edit_pair(pair=old, row=dataclasses.replace(ROWS[0], contrast="six cats"))


def test_retiring_needs_a_reason_is_logged_once_and_can_be_undone() -> None:
    load_pairs(rows=ROWS, bank="b")
    old = pair()
    with pytest.raises(ValueError, match="for a reason"):
        retire_pair(pair=old, reason=" ")
    retire_pair(pair=old, reason="ambiguous")
    retire_pair(pair=old, reason="again")
    assert old.retired_reason == "ambiguous"
    assert AuditEvent.objects.filter(action="pair_retired").count() == 1
    reinstate_pair(pair=old)
    assert old.active


def test_a_version_is_not_reinstated_beside_another() -> None:
    load_pairs(rows=ROWS, bank="b")
    old = with_image()
    edit_pair(pair=old, row=dataclasses.replace(ROWS[0], contrast="five cats"))
    with pytest.raises(PairRetired, match="another version"):
        reinstate_pair(pair=old)
