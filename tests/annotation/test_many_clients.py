"""Fifty clients at once on real connections: exact redundancy, nothing lost, nothing twice."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import threading
import uuid
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from django.db import connection, connections
from django.utils import timezone

from croc_annotate.annotation.answer_shapes import Answer
from croc_annotate.annotation.api_base import patiently
from croc_annotate.annotation.models import Assignment, Item, Judgement
from croc_annotate.annotation.services import (
    claim_items,
    expire_leases,
    release_items,
    skip_item,
    store_answers,
)
from tests.annotation.world import assert_sound, make_annotators, make_open_campaign

pytestmark = pytest.mark.django_db(transaction=True)
CLIENTS = 50


class Client:
    """One person's page: claims, answers, sometimes sends twice, gives back or skips."""

    def __init__(self, campaign, user, *, seed: int, disorder: float) -> None:
        self.slug, self.user = campaign.slug, user
        self.chance = random.Random(seed)
        self.disorder = disorder
        self.sent: list[uuid.UUID] = []

    def run(self) -> None:
        try:
            self._work()
        finally:
            connections.close_all()

    def _work(self) -> None:
        idle = 0
        while idle < 1200:  # a minute in which the others may not come to answer
            found, _ = patiently(
                lambda: claim_items(
                    slug=self.slug,
                    annotator=self.user,
                    count=self.chance.randint(1, 4),
                    now=timezone.now(),
                )
            )
            if found.state in {"finished", "nothing"}:
                return
            if found.state == "held":
                idle += 1
                threading.Event().wait(0.05)
                continue
            idle = 0
            self._answer(self._tidy(found.items))

    def _tidy(self, items):
        """Now and then some are given back or skipped."""
        if self.chance.random() < self.disorder:
            given = [h.assignment for h in items[1:]]
            patiently(
                lambda: release_items(
                    slug=self.slug, annotator=self.user, assignments=given, now=timezone.now()
                )
            )
            return items[:1]
        if self.chance.random() < self.disorder / 4:
            patiently(
                lambda: skip_item(
                    slug=self.slug,
                    annotator=self.user,
                    assignment=items[0].assignment,
                    reason="other",
                    now=timezone.now(),
                )
            )
            return items[1:]
        return items

    def _answer(self, items) -> None:
        answers = [
            Answer(
                client_key=uuid.uuid4(),
                item_key=handed.item.key,
                assignment=handed.assignment,
                verdict=self.chance.choice(["accept", "reject", "unsure"]),
                answered_at=timezone.now(),
            )
            for handed in items
        ]
        for _ in range(1 + (self.chance.random() < self.disorder)):
            results, _person = patiently(
                lambda: store_answers(
                    slug=self.slug, annotator=self.user, answers=answers, now=timezone.now()
                )
            )
            assert {r.status for r in results} <= {"stored", "duplicate"}
        self.sent += [answer.client_key for answer in answers]


def run_clients(campaign, count, *, disorder, watch=lambda: None):
    clients = [
        Client(campaign, user, seed=i, disorder=disorder)
        for i, user in enumerate(make_annotators(count))
    ]
    with ThreadPoolExecutor(count) as pool:
        running = [pool.submit(client.run) for client in clients]
        while not all(future.done() for future in running):
            watch()
            threading.Event().wait(0.2)
    for future in running:
        future.result()  # raises what a client met
    return clients


@pytest.mark.field_case(1)
@pytest.mark.skipif("connection.vendor != 'postgresql'", reason="needs PostgreSQL's row locks")
def test_fifty_clients_two_hundred_items_three_judgements_each():
    campaign = make_open_campaign(pairs=100, min_judgements=3)
    assert campaign.items.count() == 200
    most_seen: list[int] = []

    def watch() -> None:
        """At every moment: live leases and judgements of an item together, at most three."""
        counts = Counter(
            Assignment.objects.filter(state__in=["leased", "answered"]).values_list(
                "item_id", flat=True
            )
        )
        most_seen.append(max(counts.values(), default=0))

    clients = run_clients(campaign, CLIENTS, disorder=0.0, watch=watch)
    assert Judgement.objects.count() == 600
    assert not Judgement.objects.filter(surplus=True).exists()
    assert set(Counter(Judgement.objects.values_list("item_id", flat=True)).values()) == {3}
    pairs = list(Judgement.objects.values_list("item_id", "annotator_id"))
    assert len(pairs) == len(set(pairs))
    assert {key for c in clients for key in c.sent} == set(
        Judgement.objects.values_list("client_key", flat=True)
    )
    assert max(most_seen) <= 3
    assert campaign.items.complete().count() == 200
    assert Item.objects.waiting().count() == 0
    assert_sound(campaign)


@pytest.mark.field_case(1)
@pytest.mark.skipif("connection.vendor != 'postgresql'", reason="needs PostgreSQL's row locks")
def test_disorder_loses_nothing_and_gives_nothing_twice():
    campaign = make_open_campaign(
        pairs=25, redundancy="adaptive", min_judgements=3, max_judgements=5, min_distance=3
    )
    clients = run_clients(
        campaign, 16, disorder=0.3, watch=lambda: expire_leases(now=timezone.now())
    )
    assert {key for c in clients for key in c.sent} == set(
        Judgement.objects.values_list("client_key", flat=True)
    )
    pairs = list(Judgement.objects.current().values_list("item_id", "annotator_id"))
    assert len(pairs) == len(set(pairs))
    assert not Judgement.objects.filter(surplus=True).exists()
    assert campaign.items.complete().count() == 50
    assert_sound(campaign)


@pytest.mark.field_case(12)
def test_eight_clients_on_sqlite_wait_for_each_other_and_lose_nothing(tmp_path):
    """In a process of its own, whatever database the other tests use."""
    environment = {
        **os.environ,
        "DATABASE_URL": f"sqlite:///{tmp_path / 'clients.sqlite3'}",
        "DJANGO_SETTINGS_MODULE": "croc_annotate.settings",
    }
    done = subprocess.run(
        [sys.executable, "-m", "tests.annotation.sqlite_clients"],
        env=environment,
        cwd=Path(__file__).resolve().parents[2],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    report = json.loads(done.stdout.splitlines()[-1])
    assert report == {"judgements": 60, "lost": 0, "surplus": 0, "wrong": []}


@pytest.mark.field_case(10)
@pytest.mark.skipif("connection.vendor != 'postgresql'", reason="needs real concurrency")
def test_one_answer_sent_from_ten_connections_at_once_is_one_row():
    campaign = make_open_campaign(pairs=2)
    [user] = make_annotators(1)
    found, _ = claim_items(slug=campaign.slug, annotator=user, count=1, now=timezone.now())
    answer = Answer(
        client_key=uuid.uuid4(),
        item_key=found.items[0].item.key,
        verdict="accept",
        assignment=found.items[0].assignment,
        answered_at=timezone.now(),
    )
    statuses: list[str] = []
    start = threading.Barrier(10)

    def send() -> None:
        start.wait()
        results, _ = patiently(
            lambda: store_answers(
                slug=campaign.slug, annotator=user, answers=[answer], now=timezone.now()
            )
        )
        statuses.append(results[0].status)
        connections.close_all()

    threads = [threading.Thread(target=send) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert Counter(statuses) == {"stored": 1, "duplicate": 9}
    assert Judgement.objects.count() == 1
    assert connection.vendor == "postgresql"
