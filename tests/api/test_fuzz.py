"""The whole API under generated requests of every kind of caller."""

from __future__ import annotations

import pytest
from django.test import Client
from drf_spectacular.generators import SchemaGenerator

from tests.api.fuzzing import fuzz, load
from tests.api.world import client_of, make_api_world

pytestmark = [
    pytest.mark.django_db(transaction=True),
    # A WSGI client that only looks at an answer does not close the file behind it.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
CALLERS = [
    "visitor", "annotator", "reviewer", "admin",
    "admin, read", "admin, read and write", "annotator, judge",
]  # fmt: skip
SPEC = SchemaGenerator().get_schema(request=None, public=True)


def sign_in_of(world, who) -> dict[str, dict[str, str]]:
    """Headers and cookies apart: the WSGI client takes a cookie header away."""
    if who in world.tokens:
        return {"headers": {"Authorization": f"Bearer {world.tokens[who]}"}}
    if who == "visitor":
        return {}
    client: Client = client_of(world, who)
    token = client.get("/accounts/csrf/").json()["csrf"]
    cookies = {name: morsel.value for name, morsel in client.cookies.items()}
    return {"headers": {"X-CSRFToken": token}, "cookies": cookies}


def run(who, *, examples, seed="s"):
    world = make_api_world()
    return fuzz(
        schema=load(SPEC), words=world.words, sign_in=sign_in_of(world, who),
        examples=examples, seed=f"{seed}{who}",
    )  # fmt: skip


def must_be_right(found, who) -> None:
    assert found.faults == {}
    assert max(found.statuses) < 500
    if who != "visitor":  # nobody stands at the door with a good sign-in
        assert found.statuses[401] == 0
    if who == "admin":  # the generator gets past the first check wherever it can
        assert len(found.reached) >= 15, sorted(found.reached)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("who", ["visitor", "admin"])
def test_a_few_generated_requests_break_nothing(who):
    found = run(who, examples=2)
    assert found.requests >= 60
    must_be_right(found, who)


@pytest.mark.soak
@pytest.mark.timeout(900)
@pytest.mark.parametrize("who", CALLERS)
def test_generated_requests_break_nothing(who):
    """7 callers × 46 kinds of input (27 operations, 19 of which can be broken) × 40 requests."""
    found = run(who, examples=40)
    print(f"\n{who}: {found.requests} requests, {dict(sorted(found.statuses.items()))}")
    print(f"{who}: success from {len(found.reached)} operations; faults: {found.faults}")
    assert found.requests >= 1_500
    must_be_right(found, who)
