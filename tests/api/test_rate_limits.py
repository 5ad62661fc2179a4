"""Whoever asks too much is told to wait; a shared address costs nobody their session."""

from __future__ import annotations

import json
import socket

import pytest
import time_machine
from django.core.cache import cache
from django.db import connection
from django.test import RequestFactory
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from redis.exceptions import ConnectionError as RedisDownError

from croc_annotate import settings as settings_module
from croc_annotate.accounts.rate_limits import Bucket, count
from croc_annotate.accounts.tokens import create_token
from croc_annotate.lib.addresses import client_address, client_network
from tests.factories import make_user

pytestmark = pytest.mark.django_db
NOON = "2026-03-02T12:00:00Z"


@pytest.fixture(autouse=True)
def low_limits(settings):
    settings.RATE_LIMIT_SIGN_IN, settings.RATE_LIMIT_VISITORS = 2, 3
    settings.RATE_LIMIT_PEOPLE, settings.RATE_LIMIT_TOKENS = 5, 4
    settings.CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}
    cache.clear()
    yield
    cache.clear()


def statuses(client, path, times, **more):
    return [client.get(path, **more).status_code for _ in range(times)]


@time_machine.travel(NOON, tick=False)
def test_a_visitor_is_limited_and_told_when_to_come_back(client):
    assert statuses(client, "/leaderboard/", 4) == [200, 200, 200, 429]
    page = client.get("/leaderboard/")
    assert page["Retry-After"] == "60"
    assert "60 seconds" in page.content.decode()
    assert statuses(client, "/leaderboard/", 1, REMOTE_ADDR="203.0.113.9") == [200]


def test_the_next_minute_is_free_again(client):
    with time_machine.travel(NOON, tick=False) as clock:
        assert statuses(client, "/releases/", 4)[-1] == 429
        clock.shift(60)
        assert statuses(client, "/releases/", 1) == [200]


@time_machine.travel(NOON, tick=False)
def test_the_api_refuses_with_a_problem_document(client):
    statuses(client, "/api/v1/leaderboard/releases/", 3)
    reply = client.get("/api/v1/leaderboard/releases/")
    assert (reply.status_code, reply["Content-Type"]) == (429, "application/problem+json")
    problem = json.loads(reply.content)
    assert (problem["status"], problem["code"]) == (429, "too_many_requests")
    assert reply["Retry-After"] == "60"


@time_machine.travel(NOON, tick=False)
def test_people_behind_one_address_are_counted_apart(client):
    from django.test import Client

    statuses(client, "/leaderboard/", 4)
    for _ in range(2):
        person = Client()
        person.force_login(make_user("annotator"))
        assert statuses(person, "/annotate/", 6) == [200] * 5 + [429]


def bearer(token):
    return {"Authorization": f"Bearer {token}", "Accept": "application/json"}


@time_machine.travel(NOON, tick=False)
def test_scripts_behind_one_address_are_counted_by_their_tokens(client):
    """A laboratory's scripts must not be refused for a neighbour's, nor use up the visitors' share."""
    user = make_user("reviewer")
    for name in ("one", "two"):
        token = create_token(user=user, name=name, scopes=["read"])
        found = statuses(client, "/api/v1/schema/", 5, headers=bearer(token))
        assert found == [200] * 4 + [429]
    assert statuses(client, "/releases/", 4) == [200] * 3 + [429]


@time_machine.travel(NOON, tick=False)
def test_a_token_counts_as_one_whatever_its_address_and_session(client):
    client.force_login(make_user("reviewer"))
    token = create_token(user=make_user("reviewer"), name="script", scopes=["read"])
    found = [
        client.get(
            "/api/v1/schema/", headers=bearer(token), REMOTE_ADDR=f"203.0.113.{n}"
        ).status_code
        for n in range(5)
    ]
    assert found == [200] * 4 + [429]


@time_machine.travel(NOON, tick=False)
@pytest.mark.parametrize("wrong", ["made up", "revoked", "ended", "of a closed account"])
def test_tokens_that_are_not_valid_count_for_their_address(client, wrong):
    user = make_user("reviewer")
    tokens = [create_token(user=user, name=str(n), scopes=["read"]) for n in range(4)]
    if wrong == "made up":
        tokens = [f"croc_{n}" for n in range(4)]
    elif wrong == "of a closed account":
        type(user).objects.filter(pk=user.pk).update(is_active=False)
    else:
        field = {"revoked": "revoked_at", "ended": "expires_at"}[wrong]
        user.api_tokens.update(**{field: timezone.now()})
    found = [client.get("/api/v1/schema/", headers=bearer(t)).status_code for t in tokens]
    assert found == [401] * 3 + [429]


@time_machine.travel(NOON, tick=False)
def test_a_token_frees_no_page_from_its_limit_and_no_guess_at_a_password(client):
    token = create_token(user=make_user("reviewer"), name="script", scopes=["read"])
    found = statuses(client, "/releases/", 4, headers={"Authorization": f"Bearer {token}"})
    assert found == [200] * 3 + [429]
    tries = [
        client.post("/accounts/login/", {"username": "u", "password": "x"}, headers=bearer(token))
        for _ in range(3)
    ]
    assert tries[-1].status_code == 429


def test_counting_a_token_asks_the_database_nothing_more(client):
    token = create_token(user=make_user("reviewer"), name="script", scopes=["read"])
    client.get("/api/v1/schema/", headers=bearer(token))  # notes the time of its use
    with CaptureQueriesContext(connection) as asked:
        client.get("/api/v1/schema/", headers=bearer(token))
    assert sum("accounts_apitoken" in query["sql"] for query in asked) == 1


@time_machine.travel(NOON, tick=False)
def test_guessing_passwords_is_limited_by_address_whatever_the_name(client):
    found = [
        client.post("/accounts/login/", {"username": f"u{n}", "password": "x"}).status_code
        for n in range(3)
    ]
    assert found == [200, 200, 429]
    # Looking at the page is a visit, not an attempt.
    assert client.get("/accounts/login/").status_code == 200


@time_machine.travel(NOON, tick=False)
def test_monitors_are_never_refused(client):
    assert set(statuses(client, "/healthz", 8)) == {200}


def test_a_cache_that_is_down_lets_everybody_through(client, monkeypatch):
    class Down:
        def incr(self, key):
            raise RedisDownError("refused")

    monkeypatch.setattr("croc_annotate.accounts.rate_limits.cache", Down())
    assert set(statuses(client, "/releases/", 6)) == {200}


def test_a_redis_that_says_nothing_holds_nobody_up(settings):
    """It accepts and never answers, as on a machine that ran out of memory."""
    assert settings_module.CACHES["default"]["OPTIONS"]["socket_timeout"] == 1
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        address = f"redis://127.0.0.1:{silent.getsockname()[1]}/0"
        usual = settings.CACHES
        settings.CACHES = {"default": {**settings_module.CACHES["default"], "LOCATION": address}}
        assert count(Bucket("visitors", "198.51.100.1", 3), now=0.0) == 0
        settings.CACHES = usual  # the fixture empties it


@pytest.mark.parametrize(
    ("proxies", "header", "expected"),
    [
        (0, "198.51.100.1", "10.0.0.1"),
        (1, "198.51.100.1", "198.51.100.1"),
        (1, "6.6.6.6, 198.51.100.1", "198.51.100.1"),  # the first was made up by the client
        (2, "6.6.6.6, 198.51.100.1, 10.0.0.2", "198.51.100.1"),
        (2, "198.51.100.1", "10.0.0.1"),  # came past the outer proxy
        (1, "rubbish", "10.0.0.1"),
        (1, "198.51.100.1:5512", "198.51.100.1"),
        (1, "[2001:db8::1]:443", "2001:db8::1"),
        (1, "", "10.0.0.1"),
    ],
)
def test_only_what_our_proxies_wrote_is_believed(settings, proxies, header, expected):
    settings.PROXY_COUNT = proxies
    request = RequestFactory().get("/", REMOTE_ADDR="10.0.0.1", headers={"X-Forwarded-For": header})
    assert client_address(request) == expected


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("198.51.100.7", "198.51.100.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
        ("::ffff:198.51.100.7", "198.51.100.7"),
        ("", "0.0.0.0"),
    ],
)
def test_one_machine_cannot_use_its_many_ipv6_addresses(address, network):
    request = RequestFactory().get("/", REMOTE_ADDR=address)
    assert client_network(request) == network


@time_machine.travel(NOON, tick=False)
def test_a_made_up_header_does_not_help_behind_the_proxy(client, settings):
    settings.PROXY_COUNT = 1
    found = [
        client.get(
            "/leaderboard/", headers={"X-Forwarded-For": f"6.6.6.{n}, 198.51.100.1"}
        ).status_code
        for n in range(4)
    ]
    assert found == [200, 200, 200, 429]


def test_the_lock_out_sees_the_client_not_the_proxy(client, settings):
    """Behind a proxy all failures would else count for one address and lock everybody out."""
    from axes.helpers import get_client_ip_address

    settings.PROXY_COUNT = 1
    request = RequestFactory().post(
        "/accounts/login/", REMOTE_ADDR="127.0.0.1", headers={"X-Forwarded-For": "198.51.100.1"}
    )
    assert get_client_ip_address(request) == "198.51.100.1"
