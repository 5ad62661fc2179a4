from __future__ import annotations

import json
import logging
import re
from datetime import timedelta

import pytest
import time_machine
from django.core.management import call_command
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.utils import timezone

from croc_annotate.annotation.models import Assignment, Item, Judgement
from croc_annotate.candidates.models import Worker
from croc_annotate.operations.logs import JsonFormatter
from tests.agreement.rows import judged_campaign
from tests.factories import make_candidate, make_user


def test_healthz_answers_without_a_database(client, django_db_blocker):
    with django_db_blocker.block():
        assert client.get("/healthz").content == b"ok\n"


@pytest.mark.django_db
def test_readyz_is_ready_with_everything_there(client):
    response = client.get("/readyz")
    assert response.status_code == 200, response.json()
    assert set(response.json()["checks"]) == {"database", "migrations", "broker", "storage"}


@pytest.mark.django_db
def test_readyz_says_which_service_is_away_but_not_where_it_is(client, settings):
    settings.REDIS_URL = "redis://user:secret@127.0.0.1:1/0"
    response = client.get("/readyz")
    assert response.status_code == 503
    assert response.json()["checks"]["broker"] == "error"
    assert b"secret" not in response.content


@pytest.mark.django_db
def test_readyz_waits_for_migrations(client):
    [newest] = MigrationLoader(connection).graph.leaf_nodes("accounts")
    MigrationRecorder(connection).record_unapplied(*newest)
    assert client.get("/readyz").json()["checks"]["migrations"] == "error"


@pytest.mark.django_db
def test_metrics_need_the_token(client, settings):
    assert client.get("/metrics").status_code == 401
    settings.METRICS_TOKEN = "right"
    assert client.get("/metrics", headers={"Authorization": "Bearer wrong"}).status_code == 401
    assert client.get("/metrics", headers={"Authorization": "Bearer right"}).status_code == 200


@pytest.mark.django_db
def test_metrics_count_candidates_and_workers(client, settings):
    settings.METRICS_TOKEN = "right"
    make_candidate()
    make_candidate(rendered=False)
    now = timezone.now()
    Worker.objects.create(name="here", started_at=now, heartbeat_at=now)
    Worker.objects.create(name="gone", started_at=now, heartbeat_at=now - timedelta(hours=1))
    text = client.get("/metrics", headers={"Authorization": "Bearer right"}).content.decode()
    assert 'croc_candidates{state="rendered"} 1.0' in text
    assert 'croc_candidates{state="requested"} 1.0' in text
    assert "croc_workers 1.0" in text


@pytest.mark.django_db
def test_doctor_names_a_remedy_and_fails(capsys, settings):
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    with pytest.raises(SystemExit) as ended:
        call_command("doctor", "--json")
    assert ended.value.code == 1
    findings = {f["name"]: f for f in json.loads(capsys.readouterr().out)}
    assert findings["broker"]["level"] == "error"
    assert "REDIS_URL" in findings["broker"]["remedy"]
    assert findings["database"]["level"] == "ok"


@pytest.mark.django_db
def test_doctor_is_content_with_a_sound_installation(capsys):
    call_command("doctor")
    assert "✕" not in capsys.readouterr().out


@pytest.mark.django_db
def test_a_request_is_logged_by_its_route_with_an_id_and_no_query(client, caplog):
    with caplog.at_level(logging.INFO, logger="croc_annotate.requests"):
        response = client.get(
            "/accounts/login/?PROLIFIC_PID=5f3c", headers={"X-Request-ID": "abcd1234"}
        )
    assert response["X-Request-ID"] == "abcd1234"
    line = json.loads(JsonFormatter().format(caplog.records[-1]))
    assert line["status"] == 200
    assert "5f3c" not in json.dumps(line)


# --- metrics -------------------------------------------------------------------------------------
def scrape(client, settings) -> dict[str, float]:
    settings.METRICS_TOKEN = "right"
    text = client.get("/metrics", headers={"Authorization": "Bearer right"}).content.decode()
    lines = [line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, value in lines}


@pytest.mark.django_db
def test_every_number_that_an_operator_watches_is_there(client, settings):
    judged_campaign(["aa", "r"], slug="main", min_distance=0)
    client.get("/accounts/login/")
    names = {name.split("{")[0] for name in scrape(client, settings)}
    assert names >= {
        "croc_queue_places", "croc_leases", "croc_lease_oldest_seconds", "croc_judgements_total",
        "croc_judgements_per_second", "croc_candidates", "croc_images_per_second", "croc_workers",
        "croc_task_failures_total", "croc_tasks_waiting", "croc_http_responses_total",
        "croc_http_seconds_bucket",
    }  # fmt: skip


@time_machine.travel("2026-03-02T12:00:00Z", tick=False)
@pytest.mark.django_db
def test_rates_and_ages_are_those_of_the_rows(client, settings):
    judged_campaign(["aaa", "rra"], slug="main", min_distance=0)
    now = timezone.now()
    Judgement.objects.update(created_at=now)
    item = Item.objects.first()
    Assignment.objects.create(
        item=item, annotator=make_user(), campaign=item.campaign,
        created_at=now - timedelta(minutes=4), expires_at=now + timedelta(minutes=6),
    )  # fmt: skip
    candidate = make_candidate()
    type(candidate).objects.filter(pk=candidate.pk).update(rendered_at=now)
    numbers = scrape(client, settings)
    assert numbers["croc_judgements_per_second"] == pytest.approx(6 / 300)
    assert numbers["croc_lease_oldest_seconds"] == 240
    assert numbers["croc_images_per_second"] >= 1 / 300


@pytest.mark.django_db
def test_labels_name_campaigns_and_kinds_but_nobody(client, settings):
    """A label with a person, an image or an address would be kept by Prometheus for months."""
    judged = judged_campaign(["aa", "r"], slug="main", min_distance=0)
    client.get("/join/a-secret-link/?PROLIFIC_PID=participant-7", REMOTE_ADDR="203.0.113.77")
    found = scrape(client, settings)
    labels = {label for name in found for label in re.findall(r'(\w+)="', name)}
    assert labels <= {"campaign", "state", "queue", "status", "le", "task"}
    text = " ".join(found)
    private = [person.username for person in judged.raters] + [judged.items[0].key]
    for word in [*private, "a-secret-link", "participant-7", "203.0.113.77"]:
        assert word not in text


@pytest.mark.django_db
def test_a_failed_task_is_counted(client, settings):
    from celery import shared_task

    @shared_task(name="tests.breaks")
    def breaks() -> None:
        raise ValueError("on purpose")

    before = scrape(client, settings).get('croc_task_failures_total{task="tests.breaks"}', 0.0)
    assert breaks.apply(throw=False).failed()
    after = scrape(client, settings)['croc_task_failures_total{task="tests.breaks"}']
    assert after == before + 1


@pytest.mark.django_db
def test_failures_and_errors_are_told_apart(client, settings):
    before = scrape(client, settings)
    client.get("/accounts/login/")
    client.get("/no-such-page/")
    after = scrape(client, settings)
    for status in ("2xx", "4xx"):
        name = f'croc_http_responses_total{{status="{status}"}}'
        assert after[name] == before.get(name, 0) + 1


def test_waiting_tasks_are_counted_in_the_broker(settings):
    import redis

    from croc_annotate.operations.failures import tasks_waiting

    key = settings.CELERY_BROKER_TRANSPORT_OPTIONS["global_keyprefix"] + "gpu"
    with redis.Redis.from_url(settings.REDIS_URL) as broker:
        before = tasks_waiting()
        broker.rpush(key, "x")
        try:
            assert tasks_waiting()["gpu"] == before["gpu"] + 1
        finally:
            broker.rpop(key)


# --- logs ----------------------------------------------------------------------------------------
@pytest.mark.django_db
@pytest.mark.parametrize(
    "path",
    [
        "/join/a-secret-link/?PROLIFIC_PID=participant-7",
        "/no-such/participant-7/",
        "/accounts/login/?next=/participant-7/",
        "/crowd/?PROLIFIC_PID=participant-7&STUDY_ID=s&SESSION_ID=a-secret-link",
    ],
)
def test_no_log_line_holds_an_address_an_id_or_a_secret(client, path, caplog):
    """Whatever logger writes it: all lines go through the one handler."""
    from django.conf import settings as django_settings

    from croc_annotate.operations.logs import RouteOnly

    assert django_settings.LOGGING["handlers"]["console"]["filters"] == ["route"]
    with caplog.at_level(logging.DEBUG):
        client.get(path, REMOTE_ADDR="203.0.113.77")
        client.post(
            path, {"username": "participant-7", "password": "x"}, REMOTE_ADDR="203.0.113.77"
        )
    own = [r for r in caplog.records if not r.name.startswith(("django.db", "django.template"))]
    assert own
    for record in own:
        RouteOnly().filter(record)
        line = JsonFormatter().format(record)
        for word in ("participant-7", "a-secret-link", "203.0.113.77"):
            assert word not in line


@pytest.mark.django_db
def test_a_locked_out_person_is_not_named_in_the_log(client, settings, caplog):
    settings.AXES_ENABLED = True
    with caplog.at_level(logging.DEBUG, logger="axes"):
        for _ in range(settings.AXES_FAILURE_LIMIT + 1):
            client.post(
                "/accounts/login/",
                {"username": "Māria", "password": "wrong"},
                REMOTE_ADDR="203.0.113.77",
            )
    text = "\n".join(JsonFormatter().format(record) for record in caplog.records)
    assert "Māria" not in text
    assert "203.0.113.77" not in text


# --- start ---------------------------------------------------------------------------------------
@pytest.mark.django_db
def test_several_people_on_sqlite_are_warned_of_at_the_start(settings, caplog):
    from croc_annotate.operations.startup import warn_of_sqlite

    for _ in range(6):
        make_user()
    settings.ON_SQLITE = False
    warn_of_sqlite()
    assert not caplog.records
    settings.ON_SQLITE = True
    warn_of_sqlite()
    assert "Move to PostgreSQL" in caplog.text


@pytest.mark.django_db
def test_the_demo_on_sqlite_starts_quietly(settings, caplog):
    from croc_annotate.operations.startup import warn_of_sqlite

    settings.ON_SQLITE = True
    warn_of_sqlite()
    assert not caplog.records


@pytest.mark.django_db
def test_doctor_finds_a_clock_that_runs_ahead(monkeypatch):
    from croc_annotate.operations import health

    if connection.vendor != "postgresql":
        pytest.skip("one machine, one clock")
    assert health.check_clock().level == "ok"
    real = health.time.time
    monkeypatch.setattr(health.time, "time", lambda: real() + 3600)
    finding = health.check_clock()
    assert (finding.level, finding.remedy) == ("error", "Start a time service.")


@pytest.mark.django_db
def test_doctor_looks_at_everything(capsys):
    call_command("doctor", "--json")
    assert {f["name"] for f in json.loads(capsys.readouterr().out)} >= {
        "database", "migrations", "broker", "storage", "disk", "workers", "secrets", "clock",
        "queue",
    }  # fmt: skip
