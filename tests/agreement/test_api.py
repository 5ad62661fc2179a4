"""The agreement API: the numbers of the pages and of the commands, for scripts."""

from __future__ import annotations

import json
from io import StringIO

import pytest
from django.core.management import call_command

from croc_annotate.agreement.models import Adjudication
from tests.agreement.rows import judged_campaign
from tests.factories import make_user

pytestmark = pytest.mark.django_db

WORDS = ["aaa", "aar", "rrr", "arr", "aaa", "rru", "aua", "rrr"] * 3


@pytest.fixture
def judged(client):
    client.force_login(make_user("admin"))
    return judged_campaign(WORDS, slug="main", categories=["counting", "action"] * 12)


def get(client, path, **query):
    reply = client.get(f"/api/v1/campaigns/main/{path}", query)
    assert reply.status_code == 200, reply.content
    return json.loads(reply.content)


def test_the_report_is_that_of_the_command(client, judged):
    out = StringIO()
    call_command("agreement", "--json", "--by", "category,mode", stdout=out)
    command = json.loads(out.getvalue())
    api = get(client, "agreement/", by="category,mode")
    assert api["statistics"]["all"] == command["all"]
    assert api["statistics"]["by"] == command["by"]
    assert api["as_of"]


def test_an_unknown_part_is_a_readable_error(client, judged):
    reply = client.get("/api/v1/campaigns/main/agreement/", {"by": "colour"})
    assert reply.status_code == 400
    assert b"colour" in reply.content
    assert client.get("/api/v1/campaigns/other/agreement/").status_code == 404


@pytest.mark.parametrize("path", ["overview/", "pairs/", "rules/", "annotators/"])
def test_each_kind_of_statistics_has_an_address(client, judged, path):
    found = get(client, path)
    assert found["campaign"] == "main"
    assert found["statistics"]


def test_a_person_is_the_same_row_as_in_the_table(client, judged):
    rows = get(client, "annotators/")["statistics"]["rows"]
    pk = judged.raters[1].pk
    (expected,) = [row for row in rows if row["id"] == pk]
    assert get(client, f"annotators/{pk}/")["statistics"] == expected
    assert client.get("/api/v1/campaigns/main/annotators/0/").status_code == 404


def test_the_effect_of_setting_aside_is_told_and_nothing_is_done(client, judged):
    found = get(client, f"annotators/{judged.raters[0].pk}/effect/")
    assert found["judgements"] == 24
    assert found["after"]["judgements_left"] == 24
    again = get(client, f"annotators/{judged.raters[0].pk}/effect/")
    assert again == found


def test_the_list_of_items_is_filtered_and_comes_in_parts(client, judged):
    everything = get(client, "consensus/")
    assert (len(everything["results"]), everything["next"]) == (24, None)
    disputed = get(client, "consensus/", state="disputed")
    assert 0 < len(disputed["results"]) < 24
    assert {row["state"] for row in disputed["results"]} == {"disputed"}
    assert len(get(client, "consensus/", category="action")["results"]) == 12
    behind = get(client, "consensus/", after=judged.items[19].pk)
    assert len(behind["results"]) == 4
    reply = client.get("/api/v1/campaigns/main/consensus/", {"state": "maybe"})
    assert reply.status_code == 400


def test_a_decision_by_script_has_the_same_rules(client, judged):
    key = judged.items[3].key
    url = f"/api/v1/campaigns/main/review/{key}/decision/"
    values = {"verdict": "accept", "reason": "other"}
    refused = client.post(url, values, content_type="application/json")
    assert refused.status_code == 400
    done = client.post(url, {**values, "note": "seen"}, content_type="application/json")
    assert json.loads(done.content) == {"verdict": "accept", "in_force": True}
    assert Adjudication.objects.in_force().count() == 1
    # Sent again, because the answer was lost on the way: nothing changes, the reply is the same.
    again = client.post(url, {**values, "note": "seen"}, content_type="application/json")
    assert again.content == done.content
    assert Adjudication.objects.count() == 1


def test_the_annotators_command_gives_the_same_rows(client, judged):
    out = StringIO()
    call_command("annotators", "--json", stdout=out)
    command = json.loads(out.getvalue())
    assert command["annotators"] == get(client, "annotators/")["statistics"]["rows"]


def test_the_annotators_command_shows_a_table_and_names_on_demand(judged):
    out = StringIO()
    call_command("annotators", stdout=out)
    lines = out.getvalue().strip().splitlines()
    assert lines[-1].startswith("main: 3 people, ")
    name = judged.raters[0].username
    assert name not in out.getvalue()
    named = StringIO()
    call_command("annotators", "--names", stdout=named)
    assert name in named.getvalue()
