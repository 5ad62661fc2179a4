"""The judging API, over HTTP, as the desk uses it."""

from __future__ import annotations

import json
import uuid

import pytest
from django.db import OperationalError
from django.test import Client

from croc_annotate.annotation.api_base import BusyError, JudgingView, patiently
from croc_annotate.annotation.models import Assignment, Flag, Judgement
from croc_annotate.annotation.present import campaign_totals
from tests.annotation.world import assert_sound, make_annotators, make_open_campaign
from tests.factories import make_user

pytestmark = pytest.mark.django_db


class Page:
    """A signed-in browser on one campaign."""

    def __init__(self, campaign, user=None) -> None:
        self.user = user or make_user()
        self.client = Client()
        self.client.force_login(self.user)
        self.base = f"/api/v1/campaigns/{campaign.slug}/"

    def get(self, name: str, **query):
        return self.client.get(self.base + name, query)

    def post(self, name: str, data):
        return self.client.post(self.base + name, data, content_type="application/json")

    def claim(self, n: int = 1):
        reply = self.post("claim", {"n": n})
        assert reply.status_code == 200, reply.content
        return reply.json()

    def answer(self, item, verdict="accept", **fields):
        reply = self.post("answers", {"answers": [self.row(item, verdict, **fields)]})
        assert reply.status_code == 200, reply.content
        return reply.json()["results"][0]

    @staticmethod
    def row(item, verdict="accept", **fields):
        return {
            "client_key": str(uuid.uuid4()),
            "assignment": item.get("assignment"),
            "item": item["item"],
            "verdict": verdict,
            "active_ms": 2000,
            "mode": "focus",
            **fields,
        }


@pytest.fixture
def campaign():
    return make_open_campaign(pairs=10)


@pytest.fixture
def desk(campaign):
    return Page(campaign)


def test_session_says_where_the_person_stands(campaign, desk):
    data = desk.get("session").json()
    assert data["stage"] == "work"
    assert data["campaign"]["mode"] == "focus"
    assert data["progress"] == {
        "mine": 0,
        "quota": None,
        "items_complete": 0,
        "items_total": 20,
    }
    assert data["pace_ms"] is None
    assert len(data["csrf"]) > 20
    assert data["shortcuts"]["accept"] == "j"


@pytest.mark.field_case(30)
def test_three_counts_are_told_apart(campaign, desk):
    campaign.session_cap = 4
    campaign.min_judgements = 1
    campaign.save()
    for item in desk.claim(3)["items"]:
        desk.answer(item)
    progress = desk.get("session").json()["progress"]
    assert (progress["mine"], progress["quota"]) == (3, 4)
    assert progress["items_total"] == 20


@pytest.mark.field_case(30)
def test_a_campaign_without_items_counts_zero_of_zero():
    desk = Page(make_open_campaign(pairs=0))
    assert desk.claim(3)["state"] == "finished"
    assert desk.get("session").json()["progress"]["items_total"] == 0


def test_claim_and_answer_go_round(campaign, desk):
    claim = desk.claim(2)
    assert claim["state"] == "items"
    item = claim["items"][0]
    assert set(item) == {
        "assignment",
        "item",
        "group",
        "text",
        "spans",
        "dir",
        "category",
        "image",
        "preview",
        "width",
        "height",
        "expires_at",
    }
    start, end = item["spans"][0]
    assert item["text"][start:end] in {"red", "green"}
    assert desk.answer(item)["status"] == "stored"
    row = Judgement.objects.get()
    assert (row.verdict, row.active_ms, row.annotator) == ("accept", 2000, desk.user)
    assert_sound(campaign)


@pytest.mark.field_case(27)
def test_nothing_tells_generator_side_purpose_or_a_verdict(campaign, desk):
    for name in ("session", "history"):
        text = desk.get(name).content.decode()
        assert not any(word in text for word in ("generator", "tests", "seed"))
    text = json.dumps(desk.claim(5))
    for word in ("generator", "side", "seed", "purpose", "gold", "known", "verdict", "original"):
        assert word not in text
    other = Page(campaign)
    other.answer(other.claim(1)["items"][0], "reject")
    assert desk.get("history").json() == {"judgements": []}


@pytest.mark.field_case(10)
def test_the_same_request_ten_times_makes_one_row(campaign, desk):
    item = desk.claim(1)["items"][0]
    row = desk.row(item)
    replies = [desk.post("answers", {"answers": [row]}).json()["results"][0] for _ in range(10)]
    assert [reply["status"] for reply in replies] == ["stored"] + ["duplicate"] * 9
    assert Judgement.objects.count() == 1
    assert desk.get("session").json()["progress"]["mine"] == 1


def test_the_same_key_twice_in_one_batch_is_one_row(desk):
    row = desk.row(desk.claim(1)["items"][0])
    results = desk.post("answers", {"answers": [row, row]}).json()["results"]
    assert Judgement.objects.count() == 1
    assert {r["status"] for r in results} <= {"stored", "duplicate"}


@pytest.mark.field_case(11)
def test_a_correction_supersedes_and_keeps_the_old_answer(campaign, desk):
    item = desk.claim(1)["items"][0]
    desk.answer(item, "accept")
    desk.answer({"item": item["item"]}, "reject")  # no lease any more: from the history
    old, new = Judgement.objects.order_by("id")
    assert old.superseded_at is not None
    assert new.superseded_at is None
    assert new.supersedes == old
    assert list(Judgement.objects.counted(campaign)) == [new]
    assert desk.get("session").json()["progress"]["mine"] == 1
    assert desk.get("history").json()["judgements"][0]["verdict"] == "reject"
    assert_sound(campaign)


def test_an_answer_and_its_correction_in_one_batch(campaign, desk):
    item = desk.claim(1)["items"][0]
    rows = [desk.row(item, "accept"), desk.row(item, "unsure")]
    results = desk.post("answers", {"answers": rows}).json()["results"]
    assert [r["status"] for r in results] == ["stored", "stored"]
    assert Judgement.objects.current().get().verdict == "unsure"
    assert_sound(campaign)


@pytest.mark.field_case(6)
def test_an_older_answer_that_arrives_late_enters_the_history_only(campaign, desk):
    item = desk.claim(1)["items"][0]
    desk.answer(item, "accept", answered_at="2026-11-29T10:00:10+00:00")
    late = desk.answer(item, "reject", answered_at="2026-11-29T10:00:05+00:00")
    assert late["status"] == "conflict"
    assert "newer" in late["message"]
    assert Judgement.objects.current().get().verdict == "accept"
    assert Judgement.objects.count() == 2
    assert_sound(campaign)


@pytest.mark.field_case(6)
def test_two_tabs_both_work(campaign, desk):
    tab = Page(campaign, desk.user)
    first, second = desk.claim(2)["items"]
    assert [i["item"] for i in tab.claim(2)["items"]] == [first["item"], second["item"]]
    assert desk.answer(first)["status"] == "stored"
    assert tab.answer(first)["status"] == "stored"
    assert tab.answer(second)["status"] == "stored"
    assert Judgement.objects.current().count() == 2
    assert_sound(campaign)


@pytest.mark.field_case(6)
def test_a_conflict_is_a_readable_409(campaign, desk):
    other = Page(campaign)
    item = other.claim(1)["items"][0]
    reply = desk.post("skip", {"assignment": item["assignment"], "reason": "other"})
    assert reply.status_code == 409
    assert reply["Content-Type"] == "application/problem+json"
    assert reply.json() == {
        "type": "about:blank",
        "title": "Conflict",
        "status": 409,
        "code": "conflict",
        "detail": "This item was not handed to you.",
    }


def test_one_bad_answer_does_not_cost_the_others(desk):
    first, second = desk.claim(2)["items"]
    good, bad = desk.row(first), desk.row(second, "maybe")
    results = desk.post("answers", {"answers": [bad, good, 7, {**good, "client_key": "x"}]}).json()[
        "results"
    ]
    assert [r["status"] for r in results] == ["refused", "stored", "refused", "refused"]
    assert results[0]["client_key"] == bad["client_key"]
    assert "verdict" in results[0]["message"]


def test_items_of_others_cannot_be_answered(campaign, desk):
    other = Page(campaign)
    item = other.claim(1)["items"][0]
    assert desk.answer(item)["status"] == "refused"
    key = str(uuid.uuid4())
    assert other.answer(item, client_key=key)["status"] == "stored"
    mine = desk.claim(1)["items"][0]
    assert desk.answer(mine, client_key=key)["status"] == "refused"
    assert_sound(campaign)


def test_release_and_reload(desk):
    items = desk.claim(3)["items"]
    reply = desk.post("release", {"assignments": [i["assignment"] for i in items[1:]]})
    assert reply.json()["released"] == 2
    assert Assignment.objects.filter(state="leased").count() == 1
    assert next(i["item"] for i in desk.claim(3)["items"]) == items[0]["item"]


@pytest.mark.field_case(5)
def test_skip_needs_a_reason_and_can_be_sent_twice(campaign, desk):
    item = desk.claim(1)["items"][0]
    bad = desk.post("skip", {"assignment": item["assignment"], "reason": "bored"})
    assert bad.status_code == 409
    for _ in range(2):
        good = desk.post("skip", {"assignment": item["assignment"], "reason": "image_broken"})
        assert good.json()["status"] == "skipped"
    assert item["item"] not in {i["item"] for i in desk.claim(20)["items"]}
    assert_sound(campaign)


def test_a_flag_is_kept_once_and_changes_nothing(desk):
    item = desk.claim(1)["items"][0]
    flag = {"client_key": str(uuid.uuid4()), "item": item["item"], "kind": "offensive"}
    assert desk.post("flag", flag).status_code == 200
    assert desk.post("flag", flag).status_code == 200
    assert Flag.objects.get().kind == "offensive"
    bad = desk.post("flag", {**flag, "kind": "ugly"})
    assert bad.status_code == 400
    assert bad.json()["code"] == "invalid"


@pytest.mark.field_case(8)
def test_reconcile_compares_counts(desk):
    items = desk.claim(2)["items"]
    rows = [desk.row(item) for item in items]
    desk.post("answers", {"answers": rows[:1]})
    keys = [row["client_key"] for row in rows]
    reply = desk.post("reconcile", {"client_keys": keys}).json()
    assert reply == {"stored": keys[:1], "missing": keys[1:], "mine": 1}


@pytest.mark.field_case(9)
def test_signed_out_and_stale_token_are_told_apart_and_a_new_token_works(campaign):
    user = make_user()
    client = Client(enforce_csrf_checks=True)
    base = f"/api/v1/campaigns/{campaign.slug}/"
    gone = client.post(base + "claim", {"n": 1}, content_type="application/json")
    assert (gone.status_code, gone.json()["code"]) == (401, "signed_out")
    client.force_login(user)
    stale = client.post(
        base + "claim",
        {"n": 1},
        content_type="application/json",
        headers={"X-CSRFToken": "a" * 64},
    )
    assert (stale.status_code, stale.json()["code"]) == (403, "csrf")
    token = client.get(base + "session").json()["csrf"]
    good = client.post(
        base + "claim", {"n": 1}, content_type="application/json", headers={"X-CSRFToken": token}
    )
    assert good.json()["state"] == "items"


def test_unknown_campaigns_drafts_and_invitations_are_refused(campaign, desk):
    missing = desk.client.get("/api/v1/campaigns/nowhere/session")
    assert (missing.status_code, missing.json()["code"]) == (404, "not_found")
    campaign.state = "draft"
    campaign.save()
    assert desk.get("session").status_code == 404
    campaign.state, campaign.invitation_only = "open", True
    campaign.save()
    closed = desk.get("session")
    assert (closed.status_code, closed.json()["code"]) == (403, "not_invited")


@pytest.mark.parametrize("count", [0, 61, "3", None, True])
def test_a_silly_count_is_refused(desk, count):
    assert desk.post("claim", {"n": count}).status_code == 400


def test_strange_bodies_are_400_not_500(desk):
    for name in ("claim", "answers", "release", "skip", "flag", "reconcile"):
        for body in ("[]", '"x"', "{", "null", '{"n": {}, "answers": {}}'):
            reply = desk.client.post(desk.base + name, body, content_type="application/json")
            assert reply.status_code in {400, 409}, (name, body, reply.content)


@pytest.mark.field_case(34)
def test_silly_times_are_cut_not_believed(desk):
    items = desk.claim(3)["items"]
    for item, ms in zip(items, [-5, 10**11, "x"], strict=True):
        desk.answer(item, active_ms=ms)
    assert sorted(Judgement.objects.values_list("active_ms", flat=True), key=str) == [
        1_800_000,
        None,
        None,
    ]


def test_the_description_of_the_api_is_complete():
    reply = Client().get("/api/v1/schema/", {"format": "json"})
    if reply.status_code == 200:
        assert "/api/v1/campaigns/{slug}/claim" in reply.content.decode()


@pytest.mark.parametrize("texts", [("ltr", "three cats"), ("rtl", "שלוש חתולות")])
def test_text_direction(texts):
    direction, text = texts
    campaign = make_open_campaign(pairs=1)
    pair = campaign.items.first().pair
    pair.prompt, pair.contrast = text, text + " 👍🏽 a"
    pair.save()
    items = Page(campaign, make_annotators(1)[0]).claim(2)["items"]
    assert {item["dir"] for item in items} == {direction}


class Stumbling:
    """Fails as a busy database does, some times, then works."""

    def __init__(self, times: int) -> None:
        self.times, self.calls = times, 0

    def __call__(self) -> str:
        self.calls += 1
        if self.calls <= self.times:
            raise OperationalError("database is locked")
        return "done"


@pytest.mark.field_case(12)
def test_busy_is_retried_and_said_when_it_lasts(caplog):
    act = Stumbling(2)
    assert patiently(act) == "done"
    assert act.calls == 3
    with pytest.raises(BusyError):
        patiently(Stumbling(99))
    assert "OperationalError" in caplog.text
    reply = JudgingView().handle_exception(BusyError())
    assert (reply.status_code, reply.data["code"], reply["Retry-After"]) == (503, "busy", "2")


def test_a_cache_that_is_down_does_not_stop_the_judging(campaign, desk, settings):
    settings.CACHES = {
        "default": {
            "BACKEND": "django.core.cache.backends.redis.RedisCache",
            "LOCATION": "redis://127.0.0.1:9/0",
        }
    }
    assert campaign_totals(campaign.pk) == (0, 20)
    assert campaign_totals(campaign.pk, fresh=True) == (0, 20)
    assert desk.claim(1)["progress"]["items_total"] == 20
