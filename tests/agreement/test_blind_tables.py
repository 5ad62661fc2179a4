"""Tables, lists and the API are no way around the blind of a review, nor around its record."""

from __future__ import annotations

import csv
import io

import pytest
from django.test import Client
from django.urls import reverse

from croc_annotate.accounts.models import AuditEvent
from croc_annotate.accounts.tokens import create_token
from croc_annotate.agreement import reviewing
from croc_annotate.agreement.models import Adjudication, ItemConsensus
from croc_annotate.agreement.statistics import compute_statistics
from tests.agreement.rows import judged_campaign
from tests.factories import make_user

pytestmark = [pytest.mark.django_db, pytest.mark.field_case(28)]

VOTES = ("n_accept", "n_reject", "n_unsure", "posterior")
DISPUTED, CLEAR, WEAK = range(3)


@pytest.fixture
def judged():
    """A disputed item, a clear one, and one that was accepted with doubt."""
    # The others teach the model that these people are careful.
    words = ["aru", "aaa", "aau", *["aaa", "rrr"] * 10]
    judged = judged_campaign(words, slug="main")
    compute_statistics(campaign=judged.campaign)
    ItemConsensus.objects.filter(item=judged.items[WEAK]).update(state="accepted", posterior=0.6)
    return judged


@pytest.fixture
def reviewer(client):
    user = make_user("reviewer")
    client.force_login(user)
    return user


def listed(client, judged, **query):
    """The API's rows of the three items, in their order."""
    reply = client.get("/api/v1/campaigns/main/consensus/", query)
    assert reply.status_code == 200, reply.content
    return [
        row
        for item in judged.items[:3]
        for row in reply.json()["results"]
        if row["item"] == item.key
    ]


def sheet(client, kind):
    reply = client.get(reverse("agreement:csv", args=[kind]) + "?campaign=main")
    text = b"".join(reply.streaming_content).decode()
    return list(csv.DictReader(io.StringIO(text)))[:3]


def told(row):
    return [row[name] for name in VOTES if row[name] not in (None, "")]


def test_the_api_withholds_votes_on_what_waits_for_a_review(client, reviewer, judged):
    rows = listed(client, judged)
    assert [row["hidden"] for row in rows] == [True, False, True]
    assert [len(told(row)) for row in rows] == [0, 4, 0]
    assert rows[CLEAR]["n_accept"] == 3
    assert not AuditEvent.objects.filter(action="review.revealed").exists()


def test_a_token_reads_what_its_person_may_read(judged):
    text = create_token(user=make_user("reviewer"), name="script", scopes=["read"])
    reply = Client().get(
        "/api/v1/campaigns/main/consensus/", headers={"Authorization": f"Bearer {text}"}
    )
    assert [len(told(row)) for row in reply.json()["results"][:3]] == [0, 4, 0]


def test_the_table_withholds_the_same(client, reviewer, judged):
    rows = sheet(client, "consensus")
    assert [row["hidden"] for row in rows] == ["True", "False", "True"]
    assert [len(told(row)) for row in rows] == [0, 4, 0]


def test_what_was_revealed_or_decided_is_told(client, reviewer, judged):
    reviewing.reveal(item=judged.items[DISPUTED], actor=reviewer)
    reviewing.adjudicate(
        item=judged.items[WEAK], reviewer=reviewer, verdict="accept", reason="clear"
    )
    assert [row["hidden"] for row in listed(client, judged)] == [False, False, False]
    assert {row["hidden"] for row in sheet(client, "consensus")} == {"False"}
    # The blind is lifted for one person only.
    client.force_login(make_user("reviewer"))
    assert [row["hidden"] for row in listed(client, judged)] == [True, False, False]


def test_admins_may_ask_for_all_votes_and_that_is_recorded(client, judged):
    admin = make_user("admin")
    client.force_login(admin)
    assert [row["hidden"] for row in listed(client, judged)] == [True, False, True]
    rows = listed(client, judged, reveal="true")
    assert [len(told(row)) for row in rows] == [4, 4, 4]
    listed(client, judged, reveal="true")
    events = AuditEvent.objects.filter(action="review.revealed", actor=admin)
    waiting = [str(judged.items[place].pk) for place in (DISPUTED, WEAK)]
    assert sorted(events.values_list("subject_id", flat=True)) == sorted(waiting)
    # Their decision on such an item says that it was not blind.
    client.post(
        f"/api/v1/campaigns/main/review/{judged.items[DISPUTED].key}/decision/",
        {"verdict": "accept", "reason": "clear"}, content_type="application/json",
    )  # fmt: skip
    assert Adjudication.objects.get().blind is False


def test_what_many_reveals_record_is_one_statement(judged, django_assert_num_queries):
    admin, items = make_user("admin"), [item.pk for item in judged.items]
    with django_assert_num_queries(4):  # a savepoint around the items and their lines
        reviewing.reveal_many(items=items, campaign=judged.campaign, actor=admin)
    events = AuditEvent.objects.filter(action="review.revealed", actor=admin)
    assert sorted(int(event.subject_id) for event in events) == sorted(items)
    details = {"campaign": "main", "candidate": judged.items[0].candidate_id, "text_role": "own"}
    assert events.get(subject_id=judged.items[0].pk).details == details


def test_a_filter_by_somebodys_verdict_does_not_tell_it_to_an_admin(client, judged):
    admin = make_user("admin")
    client.force_login(admin)
    person = judged.items[0].judgements.order_by("pk").first().annotator.username
    query = {"campaign": "main", "annotator": person}

    def found(**more):
        wall = client.get(reverse("agreement:images"), {**query, **more})
        first = {item.pk for item in judged.items[:3]}
        return {row.item_id for row in wall.context["rows"]} & first, wall.content.decode()

    everything, words = found()
    assert everything == {item.pk for item in judged.items[:3]}
    assert "leaves out images that wait for review" not in words
    accepted, words = found(verdict="accept")
    assert accepted == {judged.items[CLEAR].pk}
    assert "leaves out images that wait for review" in words
    reviewing.reveal(item=judged.items[DISPUTED], actor=admin)
    assert found(verdict="accept")[0] == {judged.items[place].pk for place in (DISPUTED, CLEAR)}


def test_the_log_looks_only_at_the_decisions_that_it_shows(client, reviewer, judged, monkeypatch):
    from croc_annotate.agreement import listing_pages

    asked = []
    monkeypatch.setattr(
        listing_pages, "hidden_decisions", lambda *_, among: asked.append(list(among)) or set()
    )
    reviewing.adjudicate(
        item=judged.items[CLEAR], reviewer=make_user("reviewer"), verdict="accept", reason="clear"
    )
    client.get(reverse("agreement:log"), {"campaign": "main"})
    assert asked == [[Adjudication.objects.get().pk]]


def test_reviewers_cannot_lift_the_blind_of_many(client, reviewer, judged):
    reply = client.get("/api/v1/campaigns/main/consensus/", {"reveal": "true"})
    assert reply.status_code == 403
    assert "admins" in reply.json()["detail"]
    assert not AuditEvent.objects.filter(action="review.revealed").exists()


@pytest.mark.parametrize("query", [{"posterior_from": "0.01"}, {"posterior_to": "1"}])
def test_a_filter_by_posterior_does_not_tell_it(client, reviewer, judged, query):
    assert [row["item"] for row in listed(client, judged, **query)] == [judged.items[CLEAR].key]
    wall = client.get(reverse("agreement:images"), {"campaign": "main", **query})
    found = {row.item_id for row in wall.context["rows"]}
    assert found & {item.pk for item in judged.items[:3]} == {judged.items[CLEAR].pk}
    assert "leaves out images that wait for review" in wall.content.decode()
    reviewing.reveal(item=judged.items[DISPUTED], actor=reviewer)
    assert len(listed(client, judged, **query)) == 2


@pytest.mark.parametrize("place", [DISPUTED, CLEAR])
def test_a_second_reviewer_cannot_read_the_first_decision(client, reviewer, judged, place):
    first, item = make_user("reviewer"), judged.items[place]
    values = {"item": item, "verdict": "accept", "reason": "other", "second_wanted": True}
    reviewing.adjudicate(reviewer=first, note="four legs, see the shadow", **values)

    def told_by_table_and_log():
        (row,) = sheet(client, "decisions")
        log = client.get(reverse("agreement:log"), {"campaign": "main"}).content.decode()
        return (row["verdict"], row["note"] != "", "see the shadow" in log)

    assert told_by_table_and_log() == ("", False, False)
    client.force_login(first)
    assert told_by_table_and_log() == ("accept", True, True)
    client.force_login(reviewer)
    reviewing.adjudicate(reviewer=reviewer, note="agreed", **values)
    assert told_by_table_and_log() == ("accept", True, True)
