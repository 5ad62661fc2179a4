from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from croc_annotate.candidates.models import Candidate, Generator
from croc_annotate.candidates.planning import plan_candidates, request_candidates
from croc_annotate.candidates.seeds import parse_seeds, show_seeds
from croc_annotate.candidates.services import fail_candidate
from tests import factories


@pytest.mark.parametrize(
    ("text", "seeds"),
    [("1-3", [1, 2, 3]), ("7", [7]), ("9,1-2, 2", [1, 2, 9]), ("0", [0]), ("5-5", [5])],
)
def test_seeds_are_read_as_people_write_them(text: str, seeds: list[int]) -> None:
    assert parse_seeds(text) == seeds


@pytest.mark.parametrize("text", ["", "a", "1-", "-1", "3-1", "1..4", "1,,2", "0-99999999", "1.5"])
def test_what_is_no_seed_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"neither|backwards|more than"):
        parse_seeds(text)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sets(st.integers(0, 300), min_size=1, max_size=40))
def test_seeds_survive_being_shown_and_read_again(seeds: set[int]) -> None:
    assert parse_seeds(show_seeds(seeds)) == sorted(seeds)


@pytest.mark.django_db
def test_a_plan_counts_what_is_there_and_asks_for_the_rest() -> None:
    pair, generator = factories.make_pair("negation"), factories.make_generator()
    factories.make_candidate(pair=pair, generator=generator, seed=2)
    factories.make_candidate(pair=pair, generator=generator, seed=3, rendered=False)
    failed = factories.make_candidate(pair=pair, generator=generator, seed=4, rendered=False)
    fail_candidate(candidate=failed, reason="gone")
    factories.make_candidate(pair=pair, generator=generator, seed=99)
    plan = plan_candidates(pairs=[pair], generators=[generator], seeds=[1, 2, 3, 4, 6])
    assert (plan.wanted, plan.rendered, plan.waiting, plan.failed, plan.missing) == (10, 1, 1, 1, 7)
    assert request_candidates(plan=plan) == 7
    sides = Candidate.objects.filter(seed=6).values_list("side", flat=True)
    assert sorted(sides) == ["alt_contrast", "prompt"]
    again = plan_candidates(pairs=[pair], generators=[generator], seeds=[1, 2, 3, 4, 6])
    assert (again.missing, again.waiting) == (0, 8)


@pytest.mark.django_db
def test_rows_made_in_bulk_are_as_those_that_the_model_makes() -> None:
    pair, generator = factories.make_pair(), factories.make_generator()
    plan = plan_candidates(pairs=[pair], generators=[generator], seeds=[1])
    request_candidates(plan=plan)
    bulk = Candidate.objects.get(side="prompt", seed=1)
    plain = factories.make_candidate(pair=pair, generator=generator, seed=2, rendered=False)
    plain.refresh_from_db()
    own = {"id", "key", "seed", "created_at"}
    fields = [field.attname for field in Candidate._meta.concrete_fields if field.name not in own]
    assert {f: getattr(bulk, f) for f in fields} == {f: getattr(plain, f) for f in fields}
    assert len(bulk.key) == 32


@pytest.mark.django_db(transaction=True)
def test_plans_at_once_make_each_row_once() -> None:
    pairs = [factories.make_pair() for _ in range(4)]
    generator = factories.make_generator()
    start = threading.Barrier(4)

    def plan(_: int) -> None:
        try:
            made = plan_candidates(pairs=pairs, generators=[generator], seeds=list(range(1, 21)))
            start.wait()
            request_candidates(plan=made)
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(plan, range(4)))
    assert Candidate.objects.count() == 4 * 2 * 20
    assert Generator.objects.get() == generator


@pytest.mark.django_db
def test_planning_takes_as_many_queries_as_generators_not_as_candidates(
    django_assert_max_num_queries,
) -> None:
    pairs = [factories.make_pair() for _ in range(10)]
    generators = [factories.make_generator() for _ in range(2)]
    with django_assert_max_num_queries(12):
        plan = plan_candidates(pairs=pairs, generators=generators, seeds=list(range(1, 51)))
        request_candidates(plan=plan)
    with django_assert_max_num_queries(2):
        assert (
            plan_candidates(pairs=pairs, generators=generators, seeds=list(range(1, 51))).missing
            == 0
        )
