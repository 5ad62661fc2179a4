"""The first statistics of a large campaign: never computed while a visitor waits."""

from __future__ import annotations

import threading

import pytest
from django.urls import reverse

from croc_annotate.agreement import snapshots
from croc_annotate.agreement.models import StatisticsSnapshot
from croc_annotate.agreement.snapshots import StatisticsPendingError, current_statistics
from croc_annotate.agreement.statistics import compute_statistics
from tests.agreement.rows import judged_campaign
from tests.factories import make_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def asked(monkeypatch):
    """Any campaign is large; the campaigns that a worker was asked to compute."""
    found = []
    monkeypatch.setattr(snapshots, "FEW_JUDGEMENTS", 2)
    monkeypatch.setattr(snapshots, "_renew_behind", found.append)
    return found


def pages(judged) -> list[str]:
    person = judged.raters[0].pk
    names = ("overview", "report", "annotators", "rules", "images", "review")
    return [*(reverse(f"agreement:{name}") for name in names), f"/agreement/annotators/{person}/"]


def test_every_page_says_that_the_numbers_are_coming_and_looks_again(asked, client):
    judged = judged_campaign(["aaa", "rrr"])
    client.force_login(make_user("admin"))
    for address in pages(judged):
        reply = client.get(address)
        assert reply.status_code == 202, address
        assert reply["Retry-After"] == "3"
        assert b'http-equiv="refresh"' in reply.content
        assert b"6 judgements" in reply.content
    assert asked == [judged.campaign] * 7
    assert not StatisticsSnapshot.objects.exists()
    compute_statistics(campaign=judged.campaign)
    assert [client.get(address).status_code for address in pages(judged)] == [200] * 7


def test_the_api_asks_clients_to_come_back_and_a_download_waits(asked, client):
    judged = judged_campaign(["aaa", "rrr"])
    client.force_login(make_user("admin"))
    for part in ("overview", "agreement", "annotators", "pairs", "rules", "consensus"):
        reply = client.get(f"/api/v1/campaigns/{judged.campaign.slug}/{part}/")
        assert (reply.status_code, reply["Retry-After"]) == (503, "3"), part
    sheet = client.get(reverse("agreement:csv", args=["overview"]))
    assert sheet.status_code == 200
    assert b"".join(sheet.streaming_content).count(b"\n") == 1 + len({"one stratum"})


def test_a_small_campaign_is_computed_at_once():
    judged = judged_campaign(["aaa", "rrr"])
    assert current_statistics(campaign=judged.campaign, kind="overview").data["judgements"] == 6


@pytest.mark.django_db(transaction=True)
def test_without_a_broker_a_thread_computes_them(monkeypatch, settings):
    settings.CELERY_TASK_ALWAYS_EAGER = True
    monkeypatch.setattr(snapshots, "FEW_JUDGEMENTS", 2)
    judged = judged_campaign(["aaa", "rrr"])
    with pytest.raises(StatisticsPendingError):
        current_statistics(campaign=judged.campaign, kind="overview")
    name = f"statistics-{judged.campaign.pk}"
    for thread in threading.enumerate():
        if thread.name == name:
            thread.join(timeout=60)
    assert current_statistics(campaign=judged.campaign, kind="overview").data["judgements"] == 6


def test_the_effect_of_setting_aside_comes_after_the_page_of_a_large_campaign(asked, client):
    judged = judged_campaign(["aaa", "rrr"])
    client.force_login(make_user("admin"))
    address = f"/agreement/annotators/{judged.raters[0].pk}/set-aside/?act=set_aside&reason=x"
    page = client.get(address).content.decode()
    assert f'data-fragment="{address.replace("&", "&amp;")}&amp;part=1"' in page
    assert 'name="confirm"' not in page
    part, whole = client.get(f"{address}&part=1"), client.get(f"{address}&now=1")
    assert b"<html" not in part.content
    for reply in (part, whole):
        assert b'name="confirm"' in reply.content
        assert "2 judgements · 2 items" in reply.content.decode()
