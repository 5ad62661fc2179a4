"""What admins decide while people answer: real connections, one waiting for the other."""

from __future__ import annotations

import threading
import uuid

import pytest
from django.db import connection, connections, transaction
from django.utils import timezone

from croc_annotate.annotation.answer_shapes import Answer
from croc_annotate.annotation.models import Judgement
from croc_annotate.annotation.services import (
    claim_items,
    set_aside_judgements,
    store_answers,
)
from tests.annotation.world import assert_sound, make_annotators, make_open_campaign
from tests.factories import make_user

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif("connection.vendor != 'postgresql'", reason="needs row locks"),
]


def wait_for_lock(pid: list[int]) -> None:
    """Until the connection that is named there waits for a lock."""
    for _ in range(600):
        if pid:
            with connection.cursor() as cursor:
                cursor.execute(
                    "select wait_event_type = 'Lock' from pg_stat_activity where pid = %s", pid
                )
                if cursor.fetchone() == (True,):
                    return
        threading.Event().wait(0.05)
    raise AssertionError("it never waited")


def test_a_correction_on_its_way_is_set_aside_with_what_it_corrects():
    campaign = make_open_campaign(pairs=2)
    [user], admin = make_annotators(1), make_user("admin")
    claim, _ = claim_items(slug=campaign.slug, annotator=user, count=1, now=timezone.now())
    [handed] = claim.items

    def say(verdict: str) -> None:
        answer = Answer(
            client_key=uuid.uuid4(),
            item_key=handed.item.key,
            assignment=handed.assignment,
            verdict=verdict,
            answered_at=timezone.now(),
        )
        [result], _ = store_answers(
            slug=campaign.slug, annotator=user, answers=[answer], now=timezone.now()
        )
        assert result.status == "stored"

    say("accept")
    pid: list[int] = []
    counts: list[int] = []

    def decide() -> None:
        try:
            connection.ensure_connection()
            pid.append(connection.connection.info.backend_pid)
            counts.append(
                set_aside_judgements(
                    campaign=campaign, annotator=user, reason="careless", actor=admin
                )
            )
        finally:
            connections.close_all()

    thread = threading.Thread(target=decide)
    with transaction.atomic():
        say("reject")
        thread.start()
        wait_for_lock(pid)
    thread.join(30)
    assert counts == [1]
    current = Judgement.objects.current().get()
    assert current.verdict == "reject"
    assert current.set_aside_at is not None
    assert_sound(campaign)
