"""Statistics are computed together, kept with their time, and renewed when rows changed."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.core.cache import cache
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from croc_annotate.agreement import consensus_rows
from croc_annotate.agreement.models import ItemConsensus, StatisticsSnapshot
from croc_annotate.agreement.snapshots import current_statistics
from croc_annotate.agreement.statistics import compute_statistics, renew
from croc_annotate.agreement.tasks import renew_stale_statistics
from croc_annotate.celery import app
from tests.agreement.rows import judged_campaign, rendered_candidate
from tests.factories import make_pair

pytestmark = pytest.mark.django_db


def test_the_overview_counts_candidates_judged_states_and_work_left():
    judged = judged_campaign(
        ["aaa", "rrr", "aru", "aa", ""], categories=["counting"] * 3 + ["action"] * 2
    )
    generator = judged.items[0].candidate.generator
    rendered_candidate(make_pair("action"), "prompt", generator)  # not opened in the campaign yet
    found = compute_statistics(campaign=judged.campaign)["overview"]
    action, counting = found["rows"]
    assert (action["category"], action["generator"], action["side"]) == (
        "action",
        "FLUX_1_dev",
        "prompt",
    )
    assert [action[k] for k in ("candidates", "judged", "pending", "judgements_left")] == [
        3, 1, 2, 1 + 3 + 3,
    ]  # fmt: skip
    assert [counting[k] for k in ("accepted", "rejected", "disputed", "judgements_left")] == [
        1, 1, 1, 0,
    ]  # fmt: skip
    assert found["totals"]["candidates"] == 6
    assert found["totals"]["judgements_left"] == 7
    assert found["pace"]["median_ms"] == 4000
    assert found["pace"]["hours_left"] == pytest.approx(7 * 4 / 3600)
    assert found["forecast"]["low"] <= found["forecast"]["value"] <= found["forecast"]["high"]


def test_without_a_judgement_everything_has_words_instead_of_numbers():
    judged = judged_campaign(["", ""])
    found = compute_statistics(campaign=judged.campaign)
    assert found["overview"]["forecast"]["reason"] == "nothing is decided yet"
    assert found["overview"]["pace"]["hours_left"] is None
    assert found["annotators"]["rows"] == []
    assert found["pairs"]["people"] == []
    assert all(row["verified"] in {0, None} for row in found["rules"]["rows"])


def test_states_of_items_are_kept_in_rows_and_only_changes_are_written(
    django_assert_max_num_queries,
):
    judged = judged_campaign(["aaa", "rrr", "ar"])
    compute_statistics(campaign=judged.campaign)
    states = dict(ItemConsensus.objects.values_list("item_id", "state"))
    assert [states[item.pk] for item in judged.items] == ["accepted", "rejected", "pending"]
    judged.correct(item=0, rater=0, verdict="reject")
    judged.correct(item=0, rater=1, verdict="reject")
    compute_statistics(campaign=judged.campaign)
    row = ItemConsensus.objects.get(item=judged.items[0])
    assert (row.state, row.n_accept, row.n_reject) == ("rejected", 1, 2)


def test_an_unchanged_campaign_is_not_computed_again():
    judged = judged_campaign(["aaa"])
    first = current_statistics(campaign=judged.campaign, kind="report")
    assert current_statistics(campaign=judged.campaign, kind="report").pk == first.pk


def test_quick_statistics_are_renewed_at_once_when_rows_changed():
    judged = judged_campaign(["aaa", "rrr"])
    before = current_statistics(campaign=judged.campaign, kind="overview")
    StatisticsSnapshot.objects.update(seconds=0.1)
    judged.correct(item=0, rater=0, verdict="reject")
    patient = current_statistics(campaign=judged.campaign, kind="overview", patience=3600)
    assert patient.pk == before.pk
    after = current_statistics(campaign=judged.campaign, kind="overview")
    assert after.pk != before.pk
    assert after.as_of > before.as_of


def test_slow_statistics_are_shown_as_of_their_time_and_renewed_now_and_then():
    judged = judged_campaign(["aaa", "rrr"])
    before = current_statistics(campaign=judged.campaign, kind="overview")
    StatisticsSnapshot.objects.update(seconds=3.0)
    judged.correct(item=0, rater=0, verdict="reject")
    now = timezone.now()
    assert current_statistics(campaign=judged.campaign, kind="overview", now=now).pk == before.pk
    later = now + timedelta(minutes=2)
    after = current_statistics(campaign=judged.campaign, kind="overview", now=later)
    assert after.pk != before.pk


def test_old_snapshots_are_forgotten():
    judged = judged_campaign(["aaa"])
    for _ in range(8):
        compute_statistics(campaign=judged.campaign)
    assert StatisticsSnapshot.objects.filter(kind="report").count() == 5


def test_a_refused_rule_is_replaced_by_majority_with_the_reason():
    judged = judged_campaign(["aa", "rr"], rule="posterior", min_judgements=2)
    found = compute_statistics(campaign=judged.campaign)["overview"]
    assert found["rule"]["rule"] == "majority"
    assert "three judgements" in found["rule_refused"]


def test_rules_are_compared_with_refusals_in_words():
    judged = judged_campaign(["aaa", "aar", "rrr", "arr"] * 10)
    rows = {r["title"]: r for r in compute_statistics(campaign=judged.campaign)["rules"]["rows"]}
    assert rows["majority"]["verified"] == 20
    assert rows["unanimous"]["verified"] == 10
    assert rows["unanimous"]["error_model"]["value"] < rows["majority"]["error_model"]["value"]
    assert rows["majority"]["error_gold"]["value"] is None
    assert rows["majority"]["error_gold"]["reason"]
    two = judged_campaign(["aa", "rr"], min_judgements=2)
    rows = {r["title"]: r for r in compute_statistics(campaign=two.campaign)["rules"]["rows"]}
    assert rows["posterior ≥ 0.95"]["verified"] is None
    assert rows["posterior ≥ 0.95"]["refused"]


def test_a_task_that_comes_twice_computes_once():
    judged = judged_campaign(["aaa"])
    compute_statistics(campaign=judged.campaign)
    judged.correct(item=0, rater=0, verdict="reject")
    assert renew(campaign=judged.campaign) is True
    assert renew(campaign=judged.campaign) is False
    assert StatisticsSnapshot.objects.filter(kind="report").count() == 2


def test_two_workers_do_not_compute_at_once():
    judged = judged_campaign(["aaa"])
    cache.add(f"agreement-renew-{judged.campaign.pk}", 1, 60)
    assert renew(campaign=judged.campaign) is False
    cache.delete(f"agreement-renew-{judged.campaign.pk}")


def test_the_clockwork_renews_what_has_changed_and_leaves_drafts_alone():
    judged = judged_campaign(["aaa"])
    draft = judged_campaign(["aaa"], state="draft")
    renew_stale_statistics()
    renew_stale_statistics()
    assert StatisticsSnapshot.objects.filter(campaign=judged.campaign, kind="report").count() == 1
    assert not StatisticsSnapshot.objects.filter(campaign=draft.campaign).exists()


def test_without_a_broker_the_page_shows_what_is_there(settings):
    judged = judged_campaign(["aaa"])
    before = current_statistics(campaign=judged.campaign, kind="overview")
    StatisticsSnapshot.objects.update(seconds=3.0)
    judged.correct(item=0, rater=0, verdict="reject")
    app.conf.task_always_eager = False
    app.conf.broker_url = "redis://127.0.0.1:1/0"
    later = timezone.now() + timedelta(minutes=5)
    try:
        found = current_statistics(campaign=judged.campaign, kind="overview", now=later)
    finally:
        app.conf.task_always_eager = True
    assert found.pk == before.pk


def test_a_snapshot_of_an_older_version_is_not_read():
    judged = judged_campaign(["aaa"])
    old = current_statistics(campaign=judged.campaign, kind="report")
    StatisticsSnapshot.objects.filter(pk=old.pk).update(
        data={}, parameters={**old.parameters, "format": 0}
    )
    assert current_statistics(campaign=judged.campaign, kind="report").data["all"]


def test_the_planner_is_told_when_many_states_were_written(monkeypatch):
    """Without fresh statistics PostgreSQL read all 80,000 states for each page of the wall."""
    judged = judged_campaign(["aaa", "rrr"])
    monkeypatch.setattr(consensus_rows, "MANY", 2)
    with CaptureQueriesContext(connection) as first:
        compute_statistics(campaign=judged.campaign)
    with CaptureQueriesContext(connection) as again:
        compute_statistics(campaign=judged.campaign)
    told = [query["sql"].startswith("ANALYZE") for query in first.captured_queries]
    assert any(told) == (connection.vendor == "postgresql")
    assert not any(query["sql"].startswith("ANALYZE") for query in again.captured_queries)


def test_states_are_written_in_blocks_and_come_out_the_same(monkeypatch):
    judged = judged_campaign(["aaa", "aar", "rrr", "aru", "u", "rra", "aaa"])
    compute_statistics(campaign=judged.campaign)
    whole = list(ItemConsensus.objects.order_by("pk").values())
    ItemConsensus.objects.all().delete()
    monkeypatch.setattr(consensus_rows, "_BLOCK", 3)
    compute_statistics(campaign=judged.campaign)
    assert list(ItemConsensus.objects.order_by("pk").values()) == whole
