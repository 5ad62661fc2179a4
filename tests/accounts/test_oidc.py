"""Signing in through an organisation, against a provider that speaks real HTTP."""

from __future__ import annotations

import logging
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import parse_qs, urlsplit

import pytest
from django.core.checks import run_checks
from django.test import Client
from django.urls import reverse

from croc_annotate.accounts import oidc
from croc_annotate.accounts.identities import account_of
from croc_annotate.accounts.models import AuditEvent, OidcIdentity, User
from croc_annotate.accounts.oidc_views import link_token
from croc_annotate.operations.health import check_sign_in
from tests.accounts.oidc_provider import CLIENT_ID, CLIENT_SECRET, Provider
from tests.factories import make_user

pytestmark = pytest.mark.django_db
BEGIN, CALLBACK = reverse("accounts:oidc"), reverse("accounts:oidc-callback")


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_):
        return None


@pytest.fixture
def provider(settings):
    oidc._made_client.cache_clear()
    with Provider() as running:
        settings.OIDC_ISSUER = running.issuer
        settings.OIDC_CLIENT_ID = CLIENT_ID
        settings.OIDC_CLIENT_SECRET = CLIENT_SECRET
        yield running
    oidc._made_client.cache_clear()


def go_to_provider(client: Client, **query: str) -> str:
    """Begin, let the provider agree, and return the address that it sends the browser back to."""
    there = client.get(BEGIN, query)
    assert there.status_code == 302, there.content.decode()
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.build_opener(_NoRedirect).open(there["Location"], timeout=60)
    with caught.value as reply:
        assert reply.code == 302
        return reply.headers["Location"]


def come_back(client: Client, address: str):
    parts = urlsplit(address)
    assert parts.path == CALLBACK
    return client.get(f"{parts.path}?{parts.query}")


def sign_in(client: Client, **query: str):
    return come_back(client, go_to_provider(client, **query))


def signed_in(client: Client) -> int | None:
    return client.get(reverse("accounts:csrf")).json()["user"]


# --- the good way ----------------------------------------------------------------------------


def test_a_colleague_gets_an_account_and_the_same_one_again(client, provider):
    page = reverse("accounts:profile")
    reply = sign_in(client, next=page)
    assert (reply.status_code, reply["Location"]) == (302, page)
    user = User.objects.get()
    assert signed_in(client) == user.pk
    assert (user.role, user.display_name, user.email) == ("annotator", "Ada Lovelace", "")
    assert not user.has_usable_password()
    assert not user.is_staff
    provider.person = {"sub": "a7c1", "name": "Ada King"}
    assert sign_in(Client()).status_code == 302
    assert User.objects.get().display_name == "Ada Lovelace"


def test_the_name_of_the_account_tells_nothing_about_the_person(client, provider, caplog):
    provider.person |= {"email": "ada@lab.example", "preferred_username": "alovelace"}
    with caplog.at_level(logging.DEBUG, logger="croc_annotate"):
        sign_in(client)
    name = User.objects.get().username
    told = [*provider.person.values(), provider.issuer]
    assert not any(word.lower() in name.lower() for word in told)
    assert not any(word in caplog.text for word in provider.person.values())


def test_the_request_carries_state_nonce_and_a_pkce_challenge_and_asks_for_no_more_than_needed(
    client, provider
):
    query = parse_qs(urlsplit(client.get(BEGIN)["Location"]).query)
    assert query["code_challenge_method"] == ["S256"]
    assert len(query["code_challenge"][0]) == 43
    assert len(query["state"][0]) >= 20
    assert len(query["nonce"][0]) >= 20
    assert query["scope"] == ["openid profile"]
    assert query["redirect_uri"] == [f"http://testserver{CALLBACK}"]


def test_the_session_is_new_after_signing_in(client, provider):
    address = go_to_provider(client)
    before = client.session.session_key
    come_back(client, address)
    assert client.session.session_key != before
    assert not [key for key in dict(client.session) if key.startswith("_state")]


def test_a_rotated_key_is_fetched_anew(client, provider):
    sign_in(client)
    provider.rotate_key()
    assert sign_in(Client())["Location"] == reverse("home")
    assert User.objects.count() == 1


def test_a_provider_that_takes_the_secret_in_the_body_only(client, provider):
    provider.auth_methods = ["client_secret_post"]
    assert sign_in(client).status_code == 302


def test_claims_that_the_token_lacks_are_asked_for(client, provider, settings):
    settings.OIDC_ALLOWED_DOMAINS = ["lab.example"]
    provider.userinfo = {"email": "ada@lab.example", "email_verified": True}
    assert sign_in(client).status_code == 302
    assert "/userinfo" in [path for path, _ in provider.asked]


def test_two_first_visits_at_once_make_one_person(provider, transactional_db):
    claims = oidc.Claims(provider.issuer, "a7c1", "Ada", None)

    def visit(_: int) -> int:
        from django.db import connection

        try:
            return account_of(claims=claims, may_create=True).pk
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(visit, range(8)))) == 1
    assert User.objects.count() == OidcIdentity.objects.count() == 1


# --- what must not work ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "fault",
    [
        "wrong nonce",
        "no nonce",
        "bad signature",
        "unsigned",
        "shared secret",
        "expired",
        "other audience",
        "other issuer",
    ],
)
def test_a_token_that_proves_nothing_signs_nobody_in(client, provider, fault):
    provider.spoil = fault
    reply = sign_in(client)
    assert reply.status_code == 502
    assert "could not" in reply.content.decode()
    assert signed_in(client) is None
    assert User.objects.count() == 0


def test_a_state_is_good_once(client, provider):
    address = go_to_provider(client)
    assert come_back(client, address).status_code == 302
    client.post(reverse("accounts:logout"))
    reply = come_back(client, address)
    assert reply.status_code == 400
    assert "used already" in reply.content.decode()
    assert signed_in(client) is None


def test_a_state_is_good_in_the_browser_that_began_only(client, provider):
    address = go_to_provider(client)
    victim = Client()
    assert come_back(victim, address).status_code == 400
    assert signed_in(victim) is None


@pytest.mark.parametrize("query", ["", "?code=abc", "?state=abc", "?code=abc&state=abc"])
def test_a_callback_that_nobody_began_is_explained(client, provider, query):
    reply = client.get(CALLBACK + query)
    assert reply.status_code == 400
    assert "Start again" in reply.content.decode()


def test_a_refusal_of_the_provider_is_said_in_words(client, provider):
    provider.spoil = "denied"
    reply = sign_in(client)
    assert reply.status_code == 403
    assert "did not let you through" in reply.content.decode()


@pytest.mark.parametrize("fault", ["down", "issuer of discovery"])
def test_a_provider_that_is_down_or_not_itself_is_not_followed(client, provider, fault):
    provider.spoil = fault
    reply = client.get(BEGIN)
    assert reply.status_code == 502
    assert "could not be reached" in reply.content.decode()
    provider.spoil = ""
    assert client.get(BEGIN).status_code == 302


def test_a_foreign_address_is_not_followed(client, provider):
    assert sign_in(client, next="https://evil.example/")["Location"] == reverse("home")


def test_an_account_with_the_same_address_or_name_is_not_taken_over(client, provider, settings):
    settings.OIDC_ALLOWED_DOMAINS = ["lab.example"]
    admin = make_user("admin", username="Ada Lovelace", email="ada@lab.example")
    provider.person |= {"email": "ada@lab.example", "email_verified": True}
    sign_in(client)
    assert signed_in(client) not in {None, admin.pk}


def test_a_subject_of_another_issuer_is_another_person(client, provider):
    other = make_user()
    OidcIdentity.objects.create(user=other, issuer="https://another.example", subject="a7c1")
    sign_in(client)
    assert signed_in(client) not in {None, other.pk}


@pytest.mark.parametrize(
    "told",
    [
        {"email": "ada@lab.example", "email_verified": False},
        {"email": "ada@lab.example"},
        {"email": "ada@lab.example.evil.example", "email_verified": True},
        {"email": "ada@sub.lab.example", "email_verified": True},
        {"email_verified": True},
    ],
)
def test_only_verified_addresses_of_the_allowed_domains_come_in(client, provider, settings, told):
    settings.OIDC_ALLOWED_DOMAINS = ["lab.example"]
    provider.person |= told
    reply = sign_in(client)
    assert reply.status_code == 403
    assert "verified addresses" in reply.content.decode()
    assert User.objects.count() == 0


def test_userinfo_about_somebody_else_is_not_used(client, provider, settings):
    settings.OIDC_ALLOWED_DOMAINS = ["lab.example"]
    provider.userinfo = {"sub": "b8", "email": "boss@lab.example", "email_verified": True}
    assert sign_in(client).status_code == 502
    assert User.objects.count() == 0


def test_people_without_an_account_are_refused_where_none_are_made(client, provider, settings):
    settings.OIDC_NEW_ACCOUNTS = False
    reply = sign_in(client)
    assert reply.status_code == 403
    assert "no account for you" in reply.content.decode()


def test_a_closed_account_stays_closed(client, provider):
    sign_in(client)
    User.objects.update(is_active=False)
    reply = sign_in(Client())
    assert reply.status_code == 403
    assert "closed" in reply.content.decode()


# --- roles by groups -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("groups", "role"),
    [
        (["staff", "croc-admins"], "admin"),
        (["croc-reviewers", "croc-people"], "reviewer"),
        ("croc-people", "annotator"),
        (["staff"], "annotator"),
        (None, "annotator"),
    ],
)
def test_groups_give_the_role(client, provider, settings, groups, role):
    settings.OIDC_ADMINS = ["croc-admins"]
    settings.OIDC_REVIEWERS = ["croc-reviewers"]
    settings.OIDC_ANNOTATORS = ["croc-people"]
    provider.person["groups"] = groups
    sign_in(client)
    assert User.objects.get().role == role


def test_who_is_in_no_group_can_be_refused(client, provider, settings):
    settings.OIDC_ANNOTATORS, settings.OIDC_OTHERS = ["croc-people"], "refuse"
    provider.person["groups"] = ["staff"]
    reply = sign_in(client)
    assert reply.status_code == 403
    assert "none of the groups" in reply.content.decode()
    assert User.objects.count() == 0


def test_who_left_the_admins_is_no_admin_any_more_and_the_log_tells(client, provider, settings):
    settings.OIDC_ADMINS = ["croc-admins"]
    provider.person["groups"] = ["croc-admins"]
    sign_in(client)
    assert User.objects.get().may_administer
    provider.person["groups"] = []
    sign_in(Client())
    assert User.objects.get().role == "annotator"
    line = AuditEvent.objects.get(action="account.role_by_groups")
    assert line.details == {"before": "admin", "after": "annotator"}


def test_without_groups_in_the_settings_an_admin_decides_the_role(client, provider):
    sign_in(client)
    User.objects.update(role="reviewer")
    sign_in(Client())
    assert User.objects.get().role == "reviewer"


# --- linking, leaving, being set up ----------------------------------------------------------


def test_somebody_signed_in_links_their_account_from_the_profile(client, provider):
    ada = make_user(username="ada")
    client.force_login(ada)
    link = client.get(reverse("accounts:profile")).context["oidc_link"]
    token = parse_qs(urlsplit(link).query)["link"][0]
    assert sign_in(client, link=token)["Location"] == reverse("accounts:profile")
    other = Client()
    sign_in(other)
    assert signed_in(other) == ada.pk
    assert User.objects.count() == 1


@pytest.mark.parametrize("token", ["", "made up"])
def test_a_foreign_page_cannot_start_linking(client, provider, token):
    client.force_login(make_user())
    reply = client.get(BEGIN, {"link": token})
    assert reply["Location"] == reverse("home")
    assert provider.asked == []


def test_the_link_of_another_person_does_not_work(client, provider):
    client.force_login(make_user())
    assert client.get(BEGIN, {"link": link_token(make_user())})["Location"] == reverse("home")


def test_a_sign_in_that_belongs_to_another_account_is_not_moved(client, provider):
    owner = make_user()
    OidcIdentity.objects.create(user=owner, issuer=provider.issuer, subject="a7c1")
    ada = make_user()
    client.force_login(ada)
    reply = sign_in(client, link=link_token(ada))
    assert reply.status_code == 403
    assert "another account" in reply.content.decode()
    assert OidcIdentity.objects.get().user == owner


def test_linking_ends_with_the_person_that_began_it(client, provider):
    ada = make_user()
    client.force_login(ada)
    address = go_to_provider(client, link=link_token(ada))
    session = client.session
    client.post(reverse("accounts:logout"))
    assert come_back(client, address).status_code == 400
    assert session is not None
    assert OidcIdentity.objects.count() == 0


def test_logging_out_says_that_the_organisation_still_knows_them(client, provider):
    sign_in(client)
    reply = client.post(reverse("accounts:logout"), follow=True)
    assert signed_in(client) is None
    assert "Log out there too" in reply.content.decode()
    there = client.get(reverse("accounts:oidc-logout"))["Location"]
    assert there.startswith(f"{provider.issuer}/logout?")
    assert CLIENT_ID in there


def test_the_button_stands_on_the_log_in_page_with_its_own_words(client, provider, settings):
    settings.OIDC_LABEL = "University of Examples"
    page = client.get(reverse("accounts:login"), {"next": "/annotate/x/?a=1&b=2"}).content.decode()
    assert "University of Examples" in page
    assert f"{BEGIN}?next=%2Fannotate%2Fx%2F%3Fa%3D1%26b%3D2" in page


def test_without_settings_nothing_of_it_is_there(client):
    assert BEGIN not in client.get(reverse("accounts:login")).content.decode()
    for name in ("oidc", "oidc-callback", "oidc-logout"):
        assert client.get(reverse(f"accounts:{name}")).status_code == 404


def found_by_checks() -> set[str]:
    return {message.id for message in run_checks() if message.id.startswith("accounts.")}


@pytest.mark.parametrize("missing", ["OIDC_ISSUER", "OIDC_CLIENT_ID", "OIDC_CLIENT_SECRET"])
def test_half_a_configuration_is_found_and_is_not_active(client, provider, settings, missing):
    setattr(settings, missing, "")
    assert found_by_checks() == {"accounts.E001"}
    finding = check_sign_in()
    assert finding.level == "error"
    assert missing in finding.seen
    assert client.get(BEGIN).status_code == 404


@pytest.mark.parametrize("issuer", ["http://id.example", "ftp://id.example", "id.example"])
def test_a_provider_without_https_is_not_used(client, provider, settings, issuer):
    settings.OIDC_ISSUER = issuer
    assert found_by_checks() == {"accounts.E002"}
    assert check_sign_in().level == "error"
    assert client.get(BEGIN).status_code == 404


def test_a_provider_that_is_open_to_the_world_is_warned_of(provider, settings):
    settings.OIDC_ISSUER = "https://accounts.google.com"
    assert found_by_checks() == {"accounts.W001"}
    settings.OIDC_ALLOWED_DOMAINS = ["lab.example"]
    assert found_by_checks() == set()


def test_the_doctor_asks_the_provider(provider):
    assert check_sign_in().level == "ok"
    oidc._made_client.cache_clear()
    provider.spoil = "down"
    assert check_sign_in().level == "error"
