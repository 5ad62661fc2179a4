"""The admin's page of a person's data: exported or pseudonymised by POST, once confirmed."""

from __future__ import annotations

import io
import json
import zipfile

import pytest
from django.urls import reverse

from croc_annotate.accounts.models import AuditEvent, User
from croc_annotate.annotation.models import Judgement
from tests.agreement.rows import judged_campaign
from tests.factories import make_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def admin(client) -> User:
    user = make_user("admin")
    client.force_login(user)
    return user


@pytest.fixture
def maria() -> User:
    user = judged_campaign(["aaa", "rra"], slug="main", min_distance=0).raters[0]
    User.objects.filter(pk=user.pk).update(username="maria", email="maria@example.org")
    Judgement.objects.filter(annotator=user).update(remark="my own words")
    user.refresh_from_db()
    return user


def url(name: str, user: User) -> str:
    return reverse(f"operations:{name}", args=[user.pk])


def test_the_persons_page_in_a_campaign_leads_there(client, admin, maria):
    page = client.get(reverse("agreement:annotator", args=[maria.pk]), {"campaign": "main"})
    assert url("person", maria) in page.content.decode()


def test_an_export_is_a_file_that_the_audit_log_knows(client, admin, maria):
    reply = client.post(url("person-export", maria))
    assert reply["Content-Disposition"] == f'attachment; filename="person-{maria.pk}.zip"'
    assert "no-store" in reply["Cache-Control"]
    with zipfile.ZipFile(io.BytesIO(reply.getvalue())) as archive:
        account = json.loads(archive.read("accounts.user.json"))
        assert account[0]["username"] == "maria"
        assert len(json.loads(archive.read("annotation.judgement.json"))) == 2
    event = AuditEvent.objects.get(action="person.export")
    assert (event.actor, event.subject_id) == (admin, str(maria.pk))


@pytest.mark.parametrize(("more", "remark"), [({}, "my own words"), ({"with_remarks": "on"}, "")])
def test_a_confirmed_person_is_pseudonymised_and_their_judgements_stay(
    client, admin, maria, more, remark
):
    before = Judgement.objects.filter(annotator=maria).count()
    reply = client.post(url("person-pseudonymise", maria), {"username": "maria", **more})
    assert reply.status_code == 302
    maria.refresh_from_db()
    assert maria.username.startswith("person-")
    assert (maria.email, maria.is_active) == ("", False)
    mine = Judgement.objects.filter(annotator=maria)
    assert mine.count() == before
    assert {row.remark for row in mine} == {remark}
    assert AuditEvent.objects.get(action="person.pseudonymise").actor == admin
    page = client.get(url("person", maria)).content.decode()
    assert maria.username in page
    assert url("person-pseudonymise", maria) not in page  # not twice


@pytest.mark.parametrize("written", ["", "Maria", "somebody"])
def test_without_the_right_name_nothing_happens(client, admin, maria, written):
    reply = client.post(url("person-pseudonymise", maria), {"username": written})
    assert reply.status_code == 200
    assert 'class="error"' in reply.content.decode()
    maria.refresh_from_db()
    assert maria.username == "maria"


def test_an_admin_is_not_pseudonymised_here(client, admin):
    page = client.get(url("person", admin)).content.decode()
    assert url("person-pseudonymise", admin) not in page
    name = admin.username
    client.post(url("person-pseudonymise", admin), {"username": name})
    admin.refresh_from_db()
    assert admin.username == name


def test_looking_does_nothing(client, admin, maria):
    assert client.get(url("person-export", maria)).status_code == 405
    assert client.get(url("person-pseudonymise", maria)).status_code == 405
    assert client.post(url("person", maria)).status_code == 405
    assert not AuditEvent.objects.filter(action__startswith="person.").exists()
