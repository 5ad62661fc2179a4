"""A person's work by category, day and time is what plain counting gives, and costs a page nothing."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
from django.urls import reverse

from croc_annotate.agreement.reading import campaign_data
from croc_annotate.agreement.statistics import compute_statistics
from croc_annotate.agreement.work_profiles import BIN_MS, BINS, work_profiles
from croc_annotate.annotation.models import Judgement
from tests.agreement.rows import judged_campaign
from tests.factories import make_user

pytestmark = pytest.mark.django_db

VERDICTS = ("accept", "reject", "unsure")


def plain(campaign) -> dict:
    """The same, a judgement at a time."""
    found: dict = {}
    for row in Judgement.objects.counted(campaign).select_related("item__pair"):
        mine = found.setdefault(str(row.annotator_id), (Counter(), Counter(), [0] * BINS, {}))
        category = row.item.pair.category_id
        mine[0][category, row.verdict] += 1
        mine[1][row.created_at.date().isoformat(), row.verdict] += 1
        if row.active_ms is not None:
            mine[3].setdefault(category, []).append(row.active_ms)
            if row.active_ms < BINS * BIN_MS:
                mine[2][row.active_ms // BIN_MS] += 1
    return found


def test_profiles_are_what_plain_counting_gives() -> None:
    judged = judged_campaign(
        ["aru", "rra", "uuu", "aar", "raa"],
        categories=["counting", "action", "counting", "negation", "action"],
    )
    times = [0, 999, 1000, 19_999, 20_000, None, 90_000]
    start = datetime(2026, 3, 2, 23, 30, tzinfo=UTC)
    for k, row in enumerate(Judgement.objects.order_by("pk")):
        Judgement.objects.filter(pk=row.pk).update(
            active_ms=times[k % len(times)], created_at=start + timedelta(minutes=17 * k)
        )
    last = Judgement.objects.order_by("pk").last()
    Judgement.objects.filter(pk=last.pk).update(set_aside_at=start)  # counts nowhere
    found, expected = work_profiles(campaign_data(judged.campaign)), plain(judged.campaign)
    assert set(found) == set(expected)
    for person, (by_category, by_day, pace, by_time) in expected.items():
        mine = found[person]
        counted = Counter({(r["category"], v): r[v] for r in mine["categories"] for v in VERDICTS})
        assert +counted == by_category
        assert +Counter({(r["day"], v): r[v] for r in mine["days"] for v in VERDICTS}) == by_day
        assert mine["pace"] == pace
        means = {
            r["category"]: r["mean_ms"] for r in mine["categories"] if r["mean_ms"] is not None
        }
        assert means == pytest.approx({c: sum(ms) / len(ms) for c, ms in by_time.items()})


def test_nobody_has_a_profile_where_nothing_was_judged() -> None:
    judged = judged_campaign(["aar"])
    Judgement.objects.update(set_aside_at=datetime(2026, 3, 2, tzinfo=UTC))
    assert work_profiles(campaign_data(judged.campaign)) == {}


def test_a_persons_page_shows_it_and_survives_all_being_set_aside(client) -> None:
    client.force_login(make_user("admin"))
    judged = judged_campaign(["aar", "rra"], categories=["counting", "action"])
    url = reverse("agreement:annotator", args=[judged.raters[0].pk])
    page = client.get(url, {"campaign": judged.campaign.slug})
    rows = {row["category"]: (row["n"], row["accepts"]) for row in page.context["by_category"]}
    assert rows == {"counting": (1, "100 %"), "action": (1, "0 %")}
    assert sum(b["n"] for b in page.context["pace_data"]["bins"]) <= 2
    Judgement.objects.filter(annotator=judged.raters[0]).update(
        set_aside_at=datetime(2026, 3, 2, tzinfo=UTC)
    )
    compute_statistics(campaign=judged.campaign)
    page = client.get(url, {"campaign": judged.campaign.slug})
    assert page.status_code == 200
    assert page.context["by_category"] == []
    assert page.context["aside"] == 2
