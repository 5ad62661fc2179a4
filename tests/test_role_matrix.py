"""Every address of the site, called by a visitor, an annotator, a reviewer and an admin."""

from __future__ import annotations

import json

import pytest
from django.test import Client
from django.urls import NoReverseMatch, get_resolver, reverse
from django.urls.resolvers import URLResolver

from croc_annotate.accounts.tokens import create_token
from croc_annotate.releases.services import freeze_release
from tests.agreement.rows import judged_campaign
from tests.factories import make_user
from tests.role_table import ROLES, lines

pytestmark = [pytest.mark.django_db, pytest.mark.field_case(29)]

LINES = lines()


def addresses(resolver=None, space=""):
    """(name, pattern) of every address but those of Django's own admin site."""
    for part in (resolver or get_resolver()).url_patterns:
        if isinstance(part, URLResolver):
            if part.namespace == "admin":
                continue
            yield from addresses(part, f"{part.namespace}:" if part.namespace else space)
        else:
            yield space + (part.name or str(part.pattern)), part


NAMES = dict(addresses())


@pytest.fixture
def world():
    """A campaign with judgements; one value for each word in an address."""
    judged = judged_campaign(
        ["aaa", "aru", "rrr"], slug="main", title="Main", mode="focus", min_distance=0
    )
    decision = judged.adjudicate(item=1, verdict="accept")
    freeze_release(name="main", campaign=judged.campaign, min_judgements=1)
    item = judged.items[1]
    return {
        "judged": judged,
        "values": {
            "slug": "main",
            "key": item.key,
            "pk": judged.raters[0].pk,
            "pair": item.pair_id,
            "side": "prompt",
            "version": 1,
            "kind": "annotators",
            "form": "csv",
            "name": "random",
            "token": "abc",
            "release_id": 1,  # of no release
            "candidate_id": item.candidate_id,
        },
        "own": {
            "candidates": {"key": item.candidate.key},
            "prompts": {"slug": item.pair.slug},
            "agreement:withdraw": {"pk": decision.pk},
            "releases": {"name": "main", "version": "1.0.0", "key": item.candidate.key},
        },
    }


def address(world, name):
    """Fill in the words of an address; a room may have values of its own."""
    wanted = NAMES[name].pattern.converters
    values = world["values"] | world["own"].get(name.split(":")[0], {})
    values |= world["own"].get(name, {})
    try:
        return reverse(name, kwargs={word: values[word] for word in wanted})
    except (KeyError, NoReverseMatch):
        # The words of an included prefix are not in the pattern's own converters.
        for words in ({"slug"}, {"slug", "pk"}, {"slug", "key"}, {"slug", "version"}):
            try:
                return reverse(name, kwargs={word: values[word] for word in words})
            except NoReverseMatch:
                continue
        raise


def sign_of(reply) -> str:
    """What a reply means in the table's signs."""
    if reply.status_code in {301, 302} and reply["Location"].startswith("/accounts/login"):
        return "L"
    return {401: "A", 403: "F", 404: "N"}.get(reply.status_code, ".")


def client_of(role) -> Client:
    client = Client(raise_request_exception=False)
    if role != "visitor":
        client.force_login(make_user(role))
    return client


def call(client, method, url, **more):
    if method == "GET":
        return client.get(url, **more)
    body = "{}" if "/api/" in url else {}
    kind = {"content_type": "application/json"} if "/api/" in url else {}
    return client.post(url, body, **kind, **more)


def test_every_address_has_a_line_and_every_line_an_address():
    assert set(NAMES) - set(LINES) == set()
    assert set(LINES) - set(NAMES) == set()


@pytest.mark.parametrize("role", ROLES)
def test_each_address_lets_in_whom_the_table_says(world, role):
    client, wrong = client_of(role), []
    for name in sorted(set(LINES) & set(NAMES), key=lambda name: name == "accounts:logout"):
        method, signs = LINES[name]
        expected = signs[ROLES.index(role)]
        reply = call(client, method, address(world, name))
        found = sign_of(reply)
        # What is allowed may still not be there (no release yet): 404 is no refusal.
        if found != expected and not (expected == "." and found == "N"):
            wrong.append(f"{name}: {expected} expected, {found} ({reply.status_code}) found")
        if reply.status_code >= 500:
            wrong.append(f"{name}: {reply.status_code}")
    assert "\n".join(wrong) == ""


@pytest.mark.parametrize("role", ROLES[1:])
def test_a_token_opens_what_its_persons_role_opens(world, role):
    text = create_token(user=make_user(role), name="script", scopes=["read", "write"])
    client, wrong = Client(raise_request_exception=False), []
    for name in sorted(set(LINES) & set(NAMES)):
        url = address(world, name)
        if not url.startswith("/api/"):
            continue
        method, signs = LINES[name]
        # Judging is a scope of its own; this token has the two others.
        judging = name.startswith("annotation-api:")
        expected = "F" if judging else signs[ROLES.index(role)]
        found = sign_of(call(client, method, url, headers={"Authorization": f"Bearer {text}"}))
        if found != expected and not (expected == "." and found == "N"):
            wrong.append(f"{name}: {expected} expected, {found} found")
    assert "\n".join(wrong) == ""


@pytest.mark.field_case(27)
def test_an_annotators_session_sees_nothing_of_others(world):
    """No name, pseudonym, verdict count, consensus or generator of the campaign, anywhere."""
    judged = world["judged"]
    secrets = {user.username for user in judged.raters}
    secrets |= {judged.items[0].candidate.generator.slug, judged.items[0].candidate.sha256}
    secrets |= {"known_verdict", "n_accept", "posterior", "krippendorff"}
    client, told = client_of("annotator"), []
    for name in sorted(set(LINES) & set(NAMES)):
        method, signs = LINES[name]
        # Releases, the leaderboard and the API's description are public by design.
        if signs[1] != "." or name.startswith(("benchmark:", "releases:", "api-", "accounts:log")):
            continue
        reply = call(client, method, address(world, name))
        body = b"".join(reply) if reply.streaming else reply.content
        text = body.decode("utf-8", "replace")
        told += [f"{name}: {word}" for word in secrets if word in text]
    assert told == []


def test_django_admin_site_is_for_staff_only():
    for role in ("visitor", "annotator", "reviewer"):
        reply = client_of(role).get("/django-admin/accounts/user/")
        assert reply.status_code in {302, 403}


def test_the_api_answers_refusals_as_json(world):
    reply = client_of("annotator").get(address(world, "api-annotators"))
    assert reply.status_code == 403
    assert "code" in json.loads(reply.content)
