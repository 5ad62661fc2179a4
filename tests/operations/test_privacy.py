from __future__ import annotations

import json
import uuid
import zipfile
from datetime import timedelta
from pathlib import Path

import pytest
from axes.models import AccessAttempt, AccessLog
from django.apps import apps
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.contenttypes.models import ContentType
from django.contrib.sessions.models import Session
from django.core import serializers
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from croc_annotate.accounts.models import AuditEvent, OidcIdentity, PlatformIdentity, User
from croc_annotate.accounts.tokens import create_token
from croc_annotate.agreement.models import Adjudication
from croc_annotate.agreement.reviewing import adjudicate
from croc_annotate.annotation.models import (
    CampaignState,
    Judgement,
    Participation,
    Study,
    Submission,
)
from croc_annotate.operations import privacy
from croc_annotate.operations.tasks import apply_retention_task
from tests.agreement.rows import judged_campaign
from tests.factories import make_user

pytestmark = pytest.mark.django_db
# What tells who Maria is, in any table.
TRACES = ("maria", "Māria", "Sørensen", "5f3cplatform", "sess-77", "203.0.113.9", "sub-oidc-1")


@pytest.fixture
def maria():
    """A participant with a row in every table that names people."""
    judged = judged_campaign(["aaa", "rra"], slug="main", min_distance=0)
    user = judged.raters[0]
    User.objects.filter(pk=user.pk).update(
        username="maria", first_name="Māria", last_name="Sørensen", display_name="Māria S.",
        email="maria@example.org", language="de", timezone="Europe/Berlin", shortcuts={"accept": "m"},
        last_login=timezone.now(),
    )  # fmt: skip
    user.refresh_from_db()
    study = Study.objects.create(campaign=judged.campaign, study_id="study1")
    Submission.objects.create(
        study=study, annotator=user, session_id="sess-77", earlier_sessions=["sess-77-old"],
        started_at=timezone.now(),
    )  # fmt: skip
    PlatformIdentity.objects.create(user=user, external_id="5f3cplatform")
    OidcIdentity.objects.create(user=user, issuer="https://id.example.org", subject="sub-oidc-1")
    create_token(user=user, name="maria's script", scopes=["read"])
    AccessAttempt.objects.create(username="maria", ip_address="203.0.113.9", failures_since_start=1)
    AccessLog.objects.create(username="maria", ip_address="203.0.113.9")
    LogEntry.objects.create(
        user=make_user("admin"), content_type=ContentType.objects.get_for_model(User),
        object_id=str(user.pk), object_repr="maria", action_flag=CHANGE,
    )  # fmt: skip
    Judgement.objects.filter(annotator=user).update(remark="Call maria")
    browser = Client()
    browser.force_login(user)
    return user


def everything() -> str:
    """All rows of all tables as text, sessions decoded."""
    text = [
        serializers.serialize("json", model._base_manager.all(), ensure_ascii=False)
        for model in apps.get_models(include_auto_created=True)
    ]
    return "\n".join([*text, *(str(s.get_decoded()) for s in Session.objects.all())])


def test_an_export_holds_every_trace_and_no_secret(maria, tmp_path: Path, capsys):
    call_command("export_person", "maria", tmp_path / "m.zip")
    assert "annotation.judgement: 2" in capsys.readouterr().out
    with zipfile.ZipFile(tmp_path / "m.zip") as archive:
        files = {name: archive.read(name).decode() for name in archive.namelist()}
    text = "\n".join(files.values())
    for trace in TRACES:
        assert trace in text, trace
    judgement = json.loads(files["annotation.judgement.json"])[0]
    assert {"verdict", "prompt", "campaign_slug", "answered_at"} <= set(judgement)
    assert "All data" in files["README.txt"]
    assert json.loads(files["sessions.json"])
    assert maria.password not in text
    assert "known_verdict" not in text
    assert (tmp_path / "m.zip").stat().st_mode & 0o077 == 0
    assert AuditEvent.objects.filter(action="person.export", subject_id=maria.pk).exists()
    with pytest.raises(CommandError, match="exists"):
        call_command("export_person", "maria", tmp_path / "m.zip")


def test_an_export_has_a_file_for_each_table_that_names_the_person(maria):
    tables = privacy.collect_person(user=maria)
    for model, field in privacy.references():
        if model._base_manager.filter(**{field: maria}).exists():
            assert model._meta.label_lower in tables
    assert {"sessions", "sign_ins", "accounts.user", "accounts.platformidentity"} <= set(tables)


def test_an_export_holds_nothing_of_others(maria):
    other = Judgement.objects.exclude(annotator=maria).first()
    tables = privacy.collect_person(user=maria)
    assert other.pk not in {row["id"] for row in tables["annotation.judgement"]}
    assert {row["id"] for row in tables["accounts.user"]} == {maria.pk}


def test_a_pseudonymised_person_leaves_no_trace_but_their_judgements(maria, capsys):
    before = list(Judgement.objects.values_list("pk", "annotator", "verdict").order_by("pk"))
    call_command("pseudonymise_person", "maria", "--yes", "--with-remarks")
    assert "is now person-" in capsys.readouterr().out
    assert (
        list(Judgement.objects.values_list("pk", "annotator", "verdict").order_by("pk")) == before
    )
    left = everything()
    for trace in TRACES:
        assert trace not in left, trace
    maria.refresh_from_db()
    assert maria.pseudonymised_at
    assert (maria.is_active, maria.last_login, maria.email) == (False, None, "")
    assert not maria.has_usable_password()
    event = AuditEvent.objects.get(action="person.pseudonymise")
    assert (event.subject_id, event.details) == (str(maria.pk), {"remarks": True})


def test_remarks_stay_unless_asked_for(maria):
    call_command("pseudonymise_person", "maria", "--yes")
    assert Judgement.objects.filter(annotator=maria, remark="Call maria").exists()


def test_the_notes_of_a_reviewer_are_remarks_too(maria):
    item = Judgement.objects.filter(annotator=maria).first().item
    maria.role = "reviewer"
    maria.save()
    adjudicate(
        item=item, reviewer=maria, verdict="accept", reason="clear", note="Ask maria",
        now=timezone.now(),
    )  # fmt: skip
    call_command("pseudonymise_person", "maria", "--yes", "--with-remarks")
    assert [row.note for row in Adjudication.objects.all()] == [""]


def test_a_pseudonymised_person_is_signed_out_and_cannot_return(maria):
    browser = Client()
    browser.force_login(maria)
    assert browser.get("/accounts/profile/").status_code == 200
    call_command("pseudonymise_person", "maria", "--yes")
    assert browser.get("/accounts/profile/").status_code == 302


def test_it_is_asked_for_twice_and_done_once(maria):
    with pytest.raises(CommandError, match="--yes"):
        call_command("pseudonymise_person", "maria")
    maria.refresh_from_db()
    assert maria.username == "maria"
    call_command("pseudonymise_person", "maria", "--yes")
    maria.refresh_from_db()
    with pytest.raises(CommandError, match="already"):
        call_command("pseudonymise_person", maria.username, "--yes")


def test_an_admin_needs_force():
    make_user("admin", username="boss")
    with pytest.raises(CommandError, match="--force"):
        call_command("pseudonymise_person", "boss", "--yes")
    call_command("pseudonymise_person", "boss", "--yes", "--force")
    assert not User.objects.filter(username="boss").exists()


def test_an_unknown_name_is_said(tmp_path: Path):
    for arguments in (["export_person", "x", str(tmp_path / "z")], ["pseudonymise_person", "x"]):
        with pytest.raises(CommandError, match="no account named x"):
            call_command(*arguments)


# --- retention -----------------------------------------------------------------------------------
def close_campaign(maria, *, days: int) -> None:
    campaign = Participation.objects.filter(annotator=maria).first()
    row = campaign.campaign if campaign else Judgement.objects.first().campaign
    row.state = CampaignState.CLOSED
    row.save()
    at = timezone.now() - timedelta(days=days)
    Judgement.objects.update(created_at=at)
    PlatformIdentity.objects.update(created_at=at)


def test_platform_ids_go_when_the_study_has_been_over_for_so_many_days(maria, settings):
    settings.RETENTION_PLATFORM_ID_DAYS = 30
    close_campaign(maria, days=29)
    call_command("apply_retention")
    assert PlatformIdentity.objects.exists()
    close_campaign(maria, days=31)
    apply_retention_task()
    assert not PlatformIdentity.objects.exists()
    submission = Submission.objects.get()
    assert (submission.session_id, submission.earlier_sessions) == ("", [])
    assert AuditEvent.objects.get(action="retention.platform_ids").details == {"removed": 1}
    maria.refresh_from_db()
    assert maria.username == "maria"  # the account itself is the admin's to close


def test_platform_ids_stay_while_a_campaign_of_the_person_is_open(maria, settings):
    settings.RETENTION_PLATFORM_ID_DAYS = 30
    close_campaign(maria, days=365)
    other = judged_campaign(["a"], slug="other", min_distance=0).campaign
    Participation.objects.create(campaign=other, annotator=maria)
    call_command("apply_retention")
    assert PlatformIdentity.objects.exists()


def test_nothing_is_forgotten_where_zero_days_are_set(maria, settings):
    settings.RETENTION_PLATFORM_ID_DAYS = settings.RETENTION_SIGN_IN_DAYS = 0
    settings.RETENTION_ADMIN_LOG_DAYS = 0
    close_campaign(maria, days=9999)
    old = timezone.now() - timedelta(days=9999)
    AccessLog.objects.update(attempt_time=old)
    LogEntry.objects.update(action_time=old)
    call_command("apply_retention")
    assert PlatformIdentity.objects.exists()
    assert AccessLog.objects.exists()
    assert LogEntry.objects.exists()


def test_old_sign_ins_expired_sessions_and_admin_log_lines_go(maria, settings, capsys):
    now = timezone.now()
    AccessLog.objects.create(username="new", ip_address="203.0.113.1")
    AccessLog.objects.filter(username="maria").update(attempt_time=now - timedelta(days=91))
    LogEntry.objects.update(action_time=now - timedelta(days=366))
    Session.objects.create(
        session_key=uuid.uuid4().hex, session_data="", expire_date=now - timedelta(minutes=1)
    )
    call_command("apply_retention", "--dry-run")
    said = "0 platform ids, 1 sign-in records, 1 expired sessions, 1 lines"
    assert f"Would remove {said}" in capsys.readouterr().out
    assert AccessLog.objects.count() == 2
    call_command("apply_retention")
    assert f"Removed {said}" in capsys.readouterr().out
    assert [row.username for row in AccessLog.objects.all()] == ["new"]
    assert AccessAttempt.objects.count() == 1
    assert Session.objects.count() == 1  # Maria's, which is in force


def test_the_scheduler_knows_the_task(settings):
    from croc_annotate.celery import app

    entry = settings.CELERY_BEAT_SCHEDULE["apply-retention"]
    assert entry["task"] in app.tasks
