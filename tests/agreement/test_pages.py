"""The pages of the agreement room, with much, with little and with nothing to show."""

from __future__ import annotations

import csv
import io
import json
from datetime import UTC, datetime

import pytest
from django.urls import reverse

from croc_annotate.accounts.models import AuditEvent
from croc_annotate.agreement import charts
from croc_annotate.agreement.models import ReviewPolicy
from croc_annotate.annotation.models import Judgement
from tests.agreement.rows import judged_campaign
from tests.factories import make_user

pytestmark = pytest.mark.django_db

PAGES = ["overview", "report", "annotators", "rules", "images", "log", "review"]
WORDS = ["aaa", "aar", "rrr", "arr", "aaa", "rru", "aua", "rrr"] * 4


@pytest.fixture
def admin(client):
    user = make_user("admin")
    client.force_login(user)
    return user


def get(client, name, args=(), **query):
    return client.get(reverse(f"agreement:{name}", args=args), query)


@pytest.mark.parametrize("name", PAGES)
def test_without_a_campaign_each_page_says_what_to_do(client, admin, name):
    reply = get(client, name)
    assert reply.status_code == 200
    assert "No campaign yet" in reply.content.decode()


@pytest.mark.field_case(30)
@pytest.mark.field_case(31)
@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("words", [[], ["", ""], ["a"], ["aa", "aa"], WORDS])
def test_no_page_ever_shows_nan_or_none(client, admin, name, words):
    judged_campaign(words)
    reply = get(client, name)
    assert reply.status_code == 200
    body = reply.content.decode()
    assert "NaN" not in body
    assert ">None<" not in body
    assert "nan %" not in body


def test_the_agreement_page_shows_the_numbers_of_the_report(client, admin):
    judged = judged_campaign(WORDS)
    body = get(client, "report", campaign=judged.campaign.slug).content.decode()
    assert "Krippendorff" in body
    assert 'data-chart="intervals"' in body
    assert 'data-chart="matrix"' in body
    assert "As of" in body


def test_categories_stand_in_their_order(client, admin):
    order = ["action", "body_parts", "counting", "negation", "shapes", "spatial_relation"]
    judged_campaign(["aaa", "rrr"] * 6, categories=order[::-1] * 2)
    tables = get(client, "report").context["tables"]
    assert [row["label"] for row in tables[0]["rows"]] == order


def test_an_interval_from_few_pairs_says_so(client, admin):
    judged_campaign(["aa", "ar", "rr", "aa"], min_judgements=2)
    assert "only 4 pairs: too narrow" in get(client, "report").content.decode()
    judged_campaign(["aa", "ar", "rr", "aa"] * 4, min_judgements=2, slug="more")
    assert "too narrow" not in get(client, "report", campaign="more").content.decode()


@pytest.mark.field_case(32)
def test_alpha_never_stands_alone(client, admin):
    judged_campaign(["aa"] * 40 + ["ar"], min_judgements=2)
    for page in ("overview", "report"):
        body = get(client, page).content.decode()
        assert "AC1" in body
        assert "α" in body
    body = get(client, "report").content.decode()
    assert "98 %" in body  # raw agreement beside it


def test_the_live_part_of_the_overview_is_a_fragment(client, admin):
    judged_campaign(WORDS)
    body = get(client, "overview", live=1).content.decode()
    assert "<html" not in body
    assert "Verified so far" in body


def test_the_campaign_is_chosen_by_the_address(client, admin):
    judged_campaign(["aaa"], slug="one", title="First round")
    judged_campaign(["rrr"], slug="two", title="Second round")
    assert "Second round" in get(client, "overview", campaign="two").content.decode()
    assert get(client, "overview", campaign="three").status_code == 404


def test_a_persons_page_shows_their_numbers_and_acts(client, admin):
    judged = judged_campaign(WORDS)
    reply = get(client, "annotator", [judged.raters[0].pk])
    assert reply.status_code == 200
    assert str(judged.raters[0]) in reply.content.decode()
    stranger = make_user()
    assert get(client, "annotator", [stranger.pk]).status_code == 404


def test_setting_aside_shows_the_effect_first_and_can_be_taken_back(client, admin):
    judged = judged_campaign(["aar", "aar", "rra"])
    who = judged.raters[2]
    query = {"act": "set_aside", "reason": "clicked through"}
    page = get(client, "set_aside", [who.pk], **query)
    assert page.status_code == 200
    effect = page.context["effect"]
    assert (effect["judgements"], effect["items"]) == (3, 3)
    assert effect["after"]["judgements_left"] == 3
    assert {(c["from"], c["to"], c["items"]) for c in effect["changes"]} == {
        ("accepted", "pending", 2),
        ("rejected", "pending", 1),
    }
    assert not Judgement.objects.filter(set_aside_at__isnull=False).exists()
    url = reverse("agreement:set_aside", args=[who.pk])
    client.post(url, {**query, "confirm": "1"})
    assert Judgement.objects.filter(set_aside_at__isnull=False).count() == 3
    back = {"act": "reinstate", "reason": "it was a misunderstanding"}
    page = get(client, "set_aside", [who.pk], **back)
    assert page.context["effect"]["after"]["judgements_left"] == 0
    client.post(url, {**back, "confirm": "1"})
    assert not Judgement.objects.filter(set_aside_at__isnull=False).exists()
    actions = AuditEvent.objects.order_by("id").values_list("action", flat=True)
    assert list(actions) == ["judgements.set_aside", "judgements.reinstated"]


def test_a_period_limits_what_is_set_aside(client, admin):
    judged = judged_campaign(["aar"] * 4)
    Judgement.objects.filter(item__in=judged.items[:2]).update(
        created_at=datetime(2026, 3, 1, 12, tzinfo=UTC)
    )
    query = {"act": "set_aside", "reason": "sick that day", "until": "2026-03-01"}
    page = get(client, "set_aside", [judged.raters[0].pk], **query)
    assert page.context["effect"]["judgements"] == 2
    wrong = get(client, "set_aside", [judged.raters[0].pk], **query, since="2026-03-05")
    assert wrong.status_code == 302


@pytest.mark.parametrize(
    ("wanted", "n"),
    [
        ({}, 8),
        ({"state": "accepted"}, 4),
        ({"state": "disputed"}, 2),
        ({"posterior_from": "0.9"}, None),
        ({"category": "action"}, 0),
        ({"generator": "FLUX_1_dev", "side": "prompt"}, 8),
        ({"pair": "counting_"}, 8),
    ],
)
def test_the_wall_filters_by_consensus(client, admin, wanted, n):
    judged_campaign(["aaa", "aaa", "aar", "aar", "rrr", "rrr", "uua", "uur"])
    reply = get(client, "images", **wanted)
    assert reply.status_code == 200
    if n is not None:
        assert len(reply.context["rows"]) == n


def test_the_wall_filters_by_annotator_for_admins_only(client, admin):
    judged = judged_campaign(["aa.", "aar", "rrr"], min_judgements=2)
    name = judged.raters[2].username
    assert len(get(client, "images", annotator=name).context["rows"]) == 2
    assert len(get(client, "images", annotator=name, verdict="accept").context["rows"]) == 0
    client.force_login(make_user("reviewer"))
    assert len(get(client, "images", annotator=name).context["rows"]) == 3


def test_the_wall_finds_an_image_by_the_beginning_of_its_hash(client, admin):
    judged = judged_campaign(["aaa", "rrr"])
    found = get(client, "images", hash=judged.items[1].candidate.sha256[:10].upper())
    assert [row.item_id for row in found.context["rows"]] == [judged.items[1].pk]


@pytest.mark.parametrize(
    "kind", ["agreement", "overview", "rules", "consensus", "pairs", "annotators", "decisions"]
)
def test_everything_can_be_had_as_csv(client, admin, kind):
    judged_campaign(WORDS, slug="main").adjudicate(item=0, verdict="accept")
    reply = get(client, "csv", [kind])
    assert reply["Content-Disposition"] == f'attachment; filename="main-{kind}.csv"'
    rows = list(csv.reader(io.StringIO(b"".join(reply.streaming_content).decode())))
    assert len(rows) > 1
    assert {len(row) for row in rows} == {len(rows[0])}
    assert "nan" not in {cell.lower() for row in rows for cell in row}


def test_an_unknown_table_is_not_found_and_peoples_rows_are_for_admins(client, admin):
    judged_campaign(WORDS)
    assert get(client, "csv", ["everything"]).status_code == 404
    client.force_login(make_user("reviewer"))
    assert get(client, "csv", ["annotators"]).status_code == 404
    assert get(client, "csv", ["agreement"]).status_code == 200


def test_admins_choose_how_disputes_are_settled(client, admin):
    judged = judged_campaign(["aaa"])
    url = reverse("agreement:policy") + f"?campaign={judged.campaign.slug}"
    client.post(url, {"second_reviewer": "on", "low_posterior": "0.7"})
    policy = ReviewPolicy.objects.get(campaign=judged.campaign)
    assert (policy.second_reviewer, policy.low_posterior) == (True, 0.7)


def test_charts_are_given_json_that_browsers_can_read(client, admin):
    judged_campaign(WORDS)
    for page in ("report", "overview", "annotators", "rules"):
        body = get(client, page).content.decode()
        for part in body.split('type="application/json">')[1:]:
            json.loads(part.split("</script>")[0], parse_constant=lambda value: pytest.fail(value))


@pytest.mark.parametrize(("people", "unnamed"), [(16, 0), (60, 58)])
def test_among_many_people_the_skill_chart_names_those_to_talk_to(people, unnamed):
    known = {"value": 0.9, "low": 0.8, "high": 0.95}
    rows = [
        {
            "person": f"p{k}", "sensitivity": known, "specificity": known, "judgements": 100,
            "concerns": [{"code": "pace"}] if k < 2 else [],
        }
        for k in range(people)
    ]  # fmt: skip
    points = charts.skill_chart(rows)["points"]
    assert sum(point["unnamed"] for point in points) == unnamed
    assert not any(point["unnamed"] for point in points[:2])
