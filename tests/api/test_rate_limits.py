"""Whoever asks too much is told to wait; a shared address costs nobody their session."""

from __future__ import annotations

import json

import pytest
import time_machine
from django.core.cache import cache
from django.test import RequestFactory
from redis.exceptions import ConnectionError as RedisDownError

from croc_annotate.lib.addresses import client_address, client_network
from tests.factories import make_user

pytestmark = pytest.mark.django_db
NOON = "2026-03-02T12:00:00Z"


@pytest.fixture(autouse=True)
def low_limits(settings):
    settings.RATE_LIMIT_SIGN_IN, settings.RATE_LIMIT_VISITORS = 2, 3
    settings.RATE_LIMIT_PEOPLE = 5
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


@pytest.mark.parametrize(
    ("count", "header", "expected"),
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
def test_only_what_our_proxies_wrote_is_believed(settings, count, header, expected):
    settings.PROXY_COUNT = count
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
