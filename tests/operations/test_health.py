from __future__ import annotations

import json
import logging
from datetime import timedelta

import pytest
from django.core.management import call_command
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder
from django.utils import timezone

from croc_annotate.candidates.models import Worker
from croc_annotate.operations.logs import JsonFormatter
from tests.factories import make_candidate


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
    MigrationRecorder(connection).record_unapplied("accounts", "0002_audit_log_is_append_only")
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
