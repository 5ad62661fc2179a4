"""Round trips to the database per request: at most six, whatever the number of candidates."""

from __future__ import annotations

import json
import uuid

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from croc_annotate.annotation.choosing import display, not_touched
from croc_annotate.annotation.models import Item
from croc_annotate.annotation.people import join_campaign
from croc_annotate.annotation.services import make_known_item
from tests.annotation.world import NOW, make_images, make_open_campaign, make_pairs
from tests.factories import make_user

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.skipif(
        "connection.vendor != 'postgresql'", reason="on SQLite a write is no round trip"
    ),
]
MOST = 6


class Counted:
    """A client that counts what the database is asked."""

    def __init__(self, campaign) -> None:
        self.client = Client()
        self.client.force_login(make_user())
        self.base = f"/api/v1/campaigns/{campaign.slug}/"
        self.client.get(self.base + "session")  # joins, and fills the cache of totals

    def post(self, name: str, data):
        with CaptureQueriesContext(
            connection,
        ) as caught:
            reply = self.client.post(self.base + name, data, content_type="application/json")
        assert reply.status_code == 200, reply.content
        # The test's own transaction turns the request's into savepoints, which are none outside.
        asked = [q["sql"] for q in caught if "SAVEPOINT" not in q["sql"]]
        return reply.json(), asked


def rows(items, verdict="accept"):
    return [
        {
            "client_key": str(uuid.uuid4()),
            "assignment": item["assignment"],
            "item": item["item"],
            "verdict": verdict,
            "active_ms": 900,
        }
        for item in items
    ]


def go_round(campaign, n: int = 5):
    page = Counted(campaign)
    counts = {}
    claim, asked = page.post("claim", {"n": n})
    assert len(claim["items"]) == n
    counts["first claim"] = asked
    answers = rows(claim["items"])
    _, counts["answers"] = page.post("answers", {"answers": answers})
    _, counts["answers again"] = page.post("answers", {"answers": answers})
    _, counts["corrections"] = page.post("answers", {"answers": rows(claim["items"], "reject")})
    claim, counts["claim"] = page.post("claim", {"n": n})
    _, counts["claim more"] = page.post("claim", {"n": n + 2})
    both, counts["answers and claim"] = page.post(
        "answers", {"answers": rows(claim["items"]), "want": n}
    )
    assert len(both["items"]) == n
    claim, counts["held"] = page.post("claim", {"n": n})
    assert claim["items"] == both["items"]
    _, counts["release"] = page.post(
        "release", {"assignments": [i["assignment"] for i in claim["items"]]}
    )
    return counts


@pytest.mark.parametrize("mode", ["focus", "grid"])
def test_at_most_six_round_trips_a_request(mode):
    campaign = make_open_campaign(pairs=30, seeds=8, mode=mode, min_distance=5)
    for name, asked in go_round(campaign).items():
        assert len(asked) <= MOST, (name, [sql[:150] for sql in asked])


def test_gold_costs_no_further_round_trip():
    campaign = make_open_campaign(pairs=30, gold_rate=0.5, gold_spacing=1)
    for candidate in make_images(make_pairs(8)):
        make_known_item(
            campaign=campaign, candidate=candidate, verdict="accept", purpose="gold", now=NOW
        )
    counts = go_round(campaign)
    assert Item.objects.filter(purpose="gold", assignments__isnull=False).exists()
    for name, asked in counts.items():
        assert len(asked) <= MOST, (name, [sql[:150] for sql in asked])


def test_the_number_does_not_depend_on_the_number_of_candidates():
    small = {n: len(q) for n, q in go_round(make_open_campaign(pairs=20)).items()}
    large = {n: len(q) for n, q in go_round(make_open_campaign(pairs=60, seeds=25)).items()}
    assert small == large


def _nodes(plan: dict):
    yield plan
    for part in plan.get("Plans", ()):
        yield from _nodes(part)


def test_a_claim_reads_a_few_rows_of_the_queue_also_in_a_small_campaign():
    """Where the planner expects few free items, it reads and sorts the whole queue for one."""
    campaign = make_open_campaign(pairs=40, seeds=25)
    person = join_campaign(campaign=campaign, annotator=make_user())
    with connection.cursor() as cursor:
        cursor.execute("analyze annotation_item, annotation_assignment, candidates_candidate")
    waiting = Item.objects.waiting().filter(campaign_id=campaign.pk, position__gte=0)
    assert waiting.count() == 2_000
    rows = display(not_touched(waiting, person)).order_by("position")[:5]
    plan = json.loads(rows.explain(format="json", analyze=True))[0]["Plan"]
    nodes = list(_nodes(plan))
    assert not [node for node in nodes if "Sort" in node["Node Type"]]
    [queue] = [node for node in nodes if node.get("Relation Name") == "annotation_item"]
    assert queue["Actual Rows"] <= 10


def test_the_planner_knows_a_queue_that_has_just_been_opened():
    """What is prepared keeps its plan, which for an empty queue is to read all of it."""
    campaign = make_open_campaign(pairs=40, seeds=25)
    with connection.cursor() as cursor:
        cursor.execute("select reltuples from pg_class where relname = 'annotation_item'")
        [known] = cursor.fetchone()
    assert known >= campaign.items.count() == 2_000
