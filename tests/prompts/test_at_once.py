"""Several people and commands that write the bank at once."""

from __future__ import annotations

import dataclasses
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from django.db import connection, connections

from croc_annotate.candidates.models import Candidate
from croc_annotate.prompts.models import Category, ContrastPair
from croc_annotate.prompts.rules import PairRow
from croc_annotate.prompts.services import LoadReport, PairRetired, add_pair, edit_pair, load_pairs
from tests.factories import make_generator

pytestmark = pytest.mark.django_db(transaction=True)
ROWS = [
    PairRow(f"shapes_{i}", "shapes", f"a round sign {i}", f"a square sign {i}") for i in range(20)
]
AT_ONCE = 4


def at_once(act):
    """The results (or errors) of several threads that start the act together."""
    if connection.vendor == "sqlite":
        pytest.skip("SQLite's writers wait for one another anyway")
    # An earlier test may have emptied the database.
    Category.objects.get_or_create(slug="shapes", defaults={"label": "Shapes", "position": 5})
    gate = Barrier(AT_ONCE)

    def run(number: int):
        gate.wait()
        try:
            return act(number)
        except (PairRetired, ValueError) as error:
            return error
        finally:
            connections.close_all()

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(run, range(AT_ONCE)))


def test_one_bank_loaded_several_times_at_once_is_there_once() -> None:
    reports = at_once(lambda _: load_pairs(rows=ROWS, bank="b"))
    assert sorted(reports, key=lambda r: r.created) == [
        *[LoadReport(unchanged=20)] * (AT_ONCE - 1),
        LoadReport(created=20),
    ]
    assert ContrastPair.objects.count() == 20


def test_one_id_added_several_times_at_once_is_taken_once() -> None:
    results = at_once(lambda _: add_pair(row=ROWS[0]))
    assert sum(isinstance(result, ContrastPair) for result in results) == 1
    assert sum("is in use" in str(result) for result in results) == AT_ONCE - 1


def test_one_pair_edited_several_times_at_once_gets_one_new_version() -> None:
    Category.objects.get_or_create(slug="shapes", defaults={"label": "Shapes", "position": 5})
    load_pairs(rows=ROWS, bank="b")
    pair = ContrastPair.objects.get(slug="shapes_1")
    Candidate.objects.create(pair=pair, side="prompt", generator=make_generator(), seed=1)

    def edit(number: int):
        return edit_pair(
            pair=pair, row=dataclasses.replace(ROWS[1], contrast=f"a square sign {100 + number}")
        )

    results = at_once(edit)
    assert sum(isinstance(result, PairRetired) for result in results) == AT_ONCE - 1
    assert ContrastPair.objects.filter(slug="shapes_1").count() == 2
    assert ContrastPair.objects.active().filter(slug="shapes_1").count() == 1
