"""Logging in and out, by page and in place."""

from __future__ import annotations

import pytest
from django.contrib.sessions.models import Session
from django.urls import reverse

from tests.factories import make_user

pytestmark = pytest.mark.django_db
JSON = {"HTTP_ACCEPT": "application/json"}


@pytest.fixture
def ada():
    return make_user(username="ada", language="de")


def test_a_person_logs_in_and_goes_where_they_wanted(client, ada):
    page = reverse("accounts:profile")
    reply = client.post(
        reverse("accounts:login"),
        {"username": "ada", "password": "a good passphrase", "next": page},
    )
    assert (reply.status_code, reply["Location"]) == (302, page)
    assert reply.cookies["django_language"].value == "de"


def test_a_foreign_address_is_not_followed(client, ada):
    reply = client.post(
        reverse("accounts:login"),
        {"username": "ada", "password": "a good passphrase", "next": "https://evil.example/"},
    )
    assert reply["Location"] == reverse("home")


@pytest.mark.parametrize("name", ["ada", "nobody"])
def test_a_wrong_password_and_a_wrong_name_read_the_same(client, ada, name):
    reply = client.post(reverse("accounts:login"), {"username": name, "password": "wrong"})
    assert reply.status_code == 200
    assert "do not belong together" in reply.content.decode()


def test_in_place_the_answer_is_json_with_the_new_token(client, ada):
    reply = client.post(
        reverse("accounts:login"), {"username": "ada", "password": "a good passphrase"}, **JSON
    )
    assert reply.json()["user"] == ada.pk
    assert len(reply.json()["csrf"]) == 64


def test_in_place_a_wrong_password_is_said_in_json(client, ada):
    reply = client.post(reverse("accounts:login"), {"username": "ada", "password": "no"}, **JSON)
    assert reply.status_code == 400
    assert reply.json()["errors"]


def test_in_place_the_right_person_can_take_over_from_another(client, ada):
    client.force_login(make_user())
    reply = client.post(
        reverse("accounts:login"), {"username": "ada", "password": "a good passphrase"}, **JSON
    )
    assert reply.json()["user"] == ada.pk


def test_the_token_page_tells_who_is_signed_in(client, ada):
    assert client.get(reverse("accounts:csrf")).json()["user"] is None
    client.force_login(ada)
    reply = client.get(reverse("accounts:csrf"))
    assert reply.json()["user"] == ada.pk
    assert "no-store" in reply["Cache-Control"]


def test_a_deactivated_person_cannot_log_in(client):
    make_user(username="gone", is_active=False)
    reply = client.post(
        reverse("accounts:login"), {"username": "gone", "password": "a good passphrase"}
    )
    assert reply.status_code == 200


@pytest.mark.field_case(26)
def test_logging_out_works_by_post_only_and_ends_the_session(client, ada):
    client.force_login(ada)
    assert client.get(reverse("accounts:logout")).status_code == 405
    reply = client.post(reverse("accounts:logout"))
    assert reply["Location"] == reverse("accounts:login")
    assert Session.objects.count() == 0
    assert client.post(reverse("accounts:logout")).status_code == 302  # twice is no error


def test_too_many_attempts_are_paused_in_words(client, ada, settings):
    settings.AXES_ENABLED = True
    settings.AXES_FAILURE_LIMIT = 3
    for _ in range(3):
        reply = client.post(reverse("accounts:login"), {"username": "ada", "password": "wrong"})
    assert reply.status_code == 429
    assert "Too many attempts" in reply.content.decode()


@pytest.mark.parametrize("name", ["profile", "password"])
def test_account_pages_ask_visitors_to_log_in(client, name):
    reply = client.get(reverse(f"accounts:{name}"))
    assert reply["Location"].startswith(reverse("accounts:login"))


def test_a_missing_page_says_so_in_the_sites_own_words(client):
    reply = client.get("/no/such/page/")
    assert reply.status_code == 404
    assert "Nothing at this address" in reply.content.decode()


def test_an_old_form_is_explained(ada):
    from django.test import Client

    client = Client(enforce_csrf_checks=True)
    reply = client.post(reverse("accounts:login"), {"username": "ada", "password": "x"})
    assert reply.status_code == 403
    assert "That form was too old" in reply.content.decode()


def test_the_page_of_a_server_fault_needs_neither_database_nor_request():
    from django.template.loader import render_to_string

    assert "Something broke here" in render_to_string("500.html")
