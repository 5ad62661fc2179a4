from __future__ import annotations

from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from croc_annotate.accounts.models import ApiToken
from croc_annotate.accounts.tokens import create_token, revoke_token
from tests.factories import make_user

pytestmark = pytest.mark.django_db
ADDRESS = "/api/v1/schema/"


def get(client, token: str):
    return client.get(
        ADDRESS, headers={"Authorization": f"Bearer {token}", "Accept": "application/json"}
    )


@pytest.fixture
def user():
    return make_user("reviewer")


def test_a_token_opens_the_api_and_its_use_is_noted(client, user):
    token = create_token(user=user, name="script", scopes=["read"])
    assert get(client, token).status_code == 200
    assert ApiToken.objects.get().last_used_at is not None


def test_only_a_hash_is_kept(user):
    token = create_token(user=user, name="script", scopes=["read"])
    row = ApiToken.objects.values().get()
    assert all(token not in str(value) for value in row.values())


def test_without_a_token_the_answer_is_a_problem_document(client):
    response = client.get(ADDRESS, headers={"Accept": "application/json"})
    assert response.status_code == 401
    assert response["Content-Type"] == "application/problem+json"
    assert response.json()["code"] == "signed_out"


@pytest.mark.parametrize("token", ["croc_wrong", "", "a b"])
def test_a_wrong_token_is_refused(client, token: str):
    assert get(client, token).status_code == 401


def test_a_revoked_token_is_refused_and_revoking_twice_is_one_event(client, user):
    token = create_token(user=user, name="script", scopes=["read"])
    for _ in range(2):
        revoke_token(token=ApiToken.objects.get(), actor=user)
    assert get(client, token).status_code == 401
    assert user.audit_events.filter(action="token.revoke").count() == 1


def test_a_token_ends_with_its_time(client, user):
    past = timezone.now() - timedelta(seconds=1)
    token = create_token(user=user, name="script", scopes=["read"], expires_at=past)
    assert get(client, token).status_code == 401


def test_a_token_of_a_deactivated_person_is_refused(client, user):
    token = create_token(user=user, name="script", scopes=["read"])
    user.is_active = False
    user.save()
    assert get(client, token).status_code == 401


def test_a_reading_token_may_not_write(client, user):
    token = create_token(user=user, name="script", scopes=["read"])
    response = client.post(
        ADDRESS, headers={"Authorization": f"Bearer {token}", "Accept": "application/json"}
    )
    assert response.status_code == 403
    assert response.json()["detail"] == "This token may only read."


def test_the_command_prints_a_token_that_works(client, user, capsys):
    call_command("make_token", user.username, name="script")
    assert get(client, capsys.readouterr().out.strip()).status_code == 200


def test_the_command_names_a_person_that_is_not_there():
    with pytest.raises(CommandError, match="no active account named nobody"):
        call_command("make_token", "nobody", name="script")


def test_an_unknown_scope_is_refused(user):
    with pytest.raises(ValueError, match="Scopes are read, write"):
        create_token(user=user, name="script", scopes=["everything"])
