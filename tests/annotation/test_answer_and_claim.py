"""One request that brings answers and takes the next items home; the session's short way in."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from croc_annotate.annotation.models import Assignment, Judgement
from croc_annotate.annotation.services import make_known_item
from tests.annotation.test_api import Page
from tests.annotation.world import (
    NOW,
    assert_sound,
    make_images,
    make_open_campaign,
    make_pairs,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def campaign():
    return make_open_campaign(pairs=20)


@pytest.fixture
def desk(campaign):
    return Page(campaign)


def send(desk, items, want, **fields):
    rows = [desk.row(item, **fields) for item in items]
    reply = desk.post("answers", {"answers": rows, "want": want})
    assert reply.status_code == 200, reply.content
    return reply.json()


def test_answers_bring_the_next_items(campaign, desk):
    items = desk.claim(3)["items"]
    seen = {item["item"] for item in items}
    for _ in range(4):
        reply = send(desk, items, 3)
        assert [result["status"] for result in reply["results"]] == ["stored"] * 3
        items = reply["items"]
        assert len(items) == 3
        assert not seen & {item["item"] for item in items}
        seen |= {item["item"] for item in items}
    assert Judgement.objects.count() == 12
    assert Assignment.objects.filter(state="leased").count() == 3
    assert_sound(campaign)


def test_what_is_held_comes_first_and_counts(campaign, desk):
    first, second, third = desk.claim(3)["items"]
    items = send(desk, [first], 4)["items"]
    assert [item["item"] for item in items[:2]] == [second["item"], third["item"]]
    assert len(items) == 4
    assert [i["item"] for i in desk.claim(4)["items"]] == [i["item"] for i in items]
    assert_sound(campaign)


def test_without_a_wish_nothing_is_handed_out(desk):
    item = desk.claim(1)["items"][0]
    assert send(desk, [item], 0)["items"] == []
    assert not Assignment.objects.filter(state="leased").exists()


@pytest.mark.parametrize("want", [-1, 61, "3", None, True])
def test_a_silly_wish_is_refused_and_nothing_stored(desk, want):
    row = desk.row(desk.claim(1)["items"][0])
    assert desk.post("answers", {"answers": [row], "want": want}).status_code == 400
    assert not Judgement.objects.exists()


def test_the_same_request_again_stores_nothing_twice_and_brings_the_same_items(campaign, desk):
    row = desk.row(desk.claim(1)["items"][0])
    first, again = (desk.post("answers", {"answers": [row], "want": 3}).json() for _ in range(2))
    assert [first["results"][0]["status"], again["results"][0]["status"]] == [
        "stored",
        "duplicate",
    ]
    assert [i["item"] for i in first["items"]] == [i["item"] for i in again["items"]]
    assert Judgement.objects.count() == 1
    assert_sound(campaign)


def test_an_answer_and_its_correction_with_a_wish(campaign, desk):
    item = desk.claim(1)["items"][0]
    rows = [desk.row(item, "accept"), desk.row(item, "reject")]
    reply = desk.post("answers", {"answers": rows, "want": 2}).json()
    assert [result["status"] for result in reply["results"]] == ["stored", "stored"]
    assert len(reply["items"]) == 2
    assert Judgement.objects.current().get().verdict == "reject"
    assert_sound(campaign)


def test_the_cap_holds(campaign, desk):
    campaign.session_cap = 3
    campaign.save()
    items = desk.claim(2)["items"]
    reply = send(desk, items, 5)
    assert len(reply["items"]) == 1
    reply = send(desk, reply["items"], 5)
    assert (reply["stage"], reply["items"]) == ("ended", [])
    assert_sound(campaign)


@pytest.mark.parametrize("state", ["paused", "closed"])
def test_a_campaign_that_stopped_takes_answers_and_hands_out_nothing(campaign, desk, state):
    items = desk.claim(2)["items"]
    campaign.state = state
    campaign.save()
    reply = send(desk, items, 2)
    assert [result["status"] for result in reply["results"]] == ["stored", "stored"]
    assert reply["items"] == []


def test_who_fails_gold_is_handed_nothing_more():
    campaign = make_open_campaign(pairs=20, gold_rate=1.0, gold_spacing=0, gold_minimum=1)
    for candidate in make_images(make_pairs(4)):
        make_known_item(
            campaign=campaign, candidate=candidate, verdict="accept", purpose="gold", now=NOW
        )
    desk = Page(campaign)
    items = desk.claim(4)["items"]
    assert Assignment.objects.filter(purpose="gold").exists()
    reply = send(desk, items, 4, verdict="reject")
    assert (reply["stage"], reply["items"]) == ("paused", [])


# --- the session's short way -----------------------------------------------------------------


def questions_about_people(desk) -> int:
    with CaptureQueriesContext(connection) as caught:
        reply = desk.post("claim", {"n": 1})
    assert reply.status_code == 200
    return sum('FROM "accounts_user"' in query["sql"] for query in caught)


def test_the_person_is_read_with_their_place_not_on_its_own(desk):
    desk.get("session")
    assert questions_about_people(desk) == 0


def test_a_new_password_ends_the_session(desk):
    desk.claim(1)
    desk.user.set_password("another-one-12345")
    desk.user.save()
    reply = desk.post("claim", {"n": 1})
    assert (reply.status_code, reply.json()["code"]) == (401, "signed_out")


def test_who_is_deactivated_is_out_at_once(desk):
    item = desk.claim(1)["items"][0]
    desk.user.is_active = False
    desk.user.save()
    reply = desk.post("answers", {"answers": [desk.row(item)], "want": 1})
    assert reply.status_code == 401
    assert not Judgement.objects.exists()


def test_a_session_of_a_backend_that_is_gone_is_out(desk):
    desk.claim(1)
    session = desk.client.session
    session["_auth_user_backend"] = "somewhere.else.Backend"
    session.save()
    assert desk.post("claim", {"n": 1}).status_code == 401


def test_an_expired_session_is_out(desk):
    session = desk.client.session
    session.set_expiry(-60)
    session.save()
    assert desk.post("claim", {"n": 1}).status_code == 401


def test_a_rotated_secret_key_keeps_people_signed_in(desk, settings):
    desk.claim(1)
    settings.SECRET_KEY_FALLBACKS = [settings.SECRET_KEY]
    settings.SECRET_KEY = "another-secret-key-of-enough-length-0123456789"
    assert desk.post("claim", {"n": 1}).status_code == 200
