"""A person's own settings: name, language, zone, theme, keys, password."""

from __future__ import annotations

import re
import zoneinfo
from datetime import UTC, datetime

import pytest
from django.urls import reverse
from django.utils import timezone

from croc_annotate.accounts.middleware import own_timezone
from croc_annotate.accounts.shortcuts import DEFAULTS, merged_shortcuts, shortcut_problems
from croc_annotate.agreement import reviewing
from croc_annotate.candidates.models import Candidate
from tests.agreement.rows import judged_campaign
from tests.factories import make_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def ada(client):
    user = make_user(username="ada")
    client.force_login(user)
    return user


def test_the_profile_is_saved_and_the_language_follows(client, ada):
    reply = client.post(
        reverse("accounts:profile"),
        {
            "display_name": "Ada L.",
            "language": "de",
            "timezone": "Europe/Berlin",
            "theme": "dark",
        },
    )
    assert reply["Location"] == reverse("accounts:profile")
    assert reply.cookies["django_language"].value == "de"
    ada.refresh_from_db()
    assert (ada.display_name, ada.timezone, ada.theme) == ("Ada L.", "Europe/Berlin", "dark")
    assert 'data-theme="dark"' in client.get(reverse("accounts:profile")).content.decode()


def test_an_unknown_zone_is_refused(client, ada):
    reply = client.post(reverse("accounts:profile"), {"timezone": "Mars/Olympus"})
    assert reply.status_code == 200
    ada.refresh_from_db()
    assert ada.timezone == ""


def test_nobody_raises_their_own_role(client, ada):
    client.post(reverse("accounts:profile"), {"display_name": "Ada", "role": "admin"})
    ada.refresh_from_db()
    assert ada.role == "annotator"


@pytest.mark.parametrize(
    ("path", "name", "zone"),
    [
        ("/", "Europe/Berlin", "Europe/Berlin"),
        ("/", "", "UTC"),
        ("/", "No/Such", "UTC"),
        ("/api/v1/", "Europe/Berlin", "UTC"),
    ],
)
def test_pages_are_made_in_the_persons_zone_and_the_api_in_utc(rf, path, name, zone):
    seen = []
    middleware = own_timezone(lambda request: seen.append(timezone.get_current_timezone_name()))
    request = rf.get(path)
    request.user = make_user(timezone=name)
    middleware(request)
    assert seen == [zone]
    assert timezone.get_current_timezone() == zoneinfo.ZoneInfo("UTC")


def test_only_keys_that_differ_from_the_defaults_are_kept(client, ada):
    client.post(reverse("accounts:shortcuts"), {**DEFAULTS, "accept": "L"})
    ada.refresh_from_db()
    assert ada.shortcuts == {"accept": "l"}
    assert merged_shortcuts(ada.shortcuts)["accept"] == "l"


def test_the_space_bar_is_a_key(client, ada):
    client.post(reverse("accounts:shortcuts"), {**DEFAULTS, "unsure": "u", "accept": " "})
    ada.refresh_from_db()
    assert ada.shortcuts == {"unsure": "u", "accept": "space"}


@pytest.mark.field_case(16)
def test_clashing_keys_are_refused_in_words(client, ada):
    reply = client.post(reverse("accounts:shortcuts"), {**DEFAULTS, "accept": "f"})
    assert reply.status_code == 400
    assert "used twice" in reply.content.decode()
    ada.refresh_from_db()
    assert ada.shortcuts == {}


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ('{"accept": "f"}', "used twice"),
        ('{"accept": "Enter"}', "cannot be a shortcut"),
        ('{"dance": "d"}', "no action"),
        ("[]", "object"),
        ("{", "no JSON"),
    ],
)
def test_the_judging_page_is_told_what_is_wrong_with_keys(client, ada, body, words):
    reply = client.post(reverse("accounts:shortcuts"), data=body, content_type="application/json")
    assert reply.status_code == 400
    assert words in " ".join(reply.json()["errors"])


def test_the_judging_page_saves_keys_and_gets_the_whole_table(client, ada):
    reply = client.post(
        reverse("accounts:shortcuts"), data={"accept": "l"}, content_type="application/json"
    )
    assert reply.json()["shortcuts"] == {**DEFAULTS, "accept": "l"}


def test_the_defaults_are_a_valid_table_and_a_broken_one_falls_back_to_them():
    assert shortcut_problems({}) == []
    assert merged_shortcuts({"accept": "f"}) == DEFAULTS
    assert merged_shortcuts({"unknown": "x"}) == DEFAULTS


def test_a_changed_password_ends_other_sessions(client, ada):
    from django.test import Client

    other = Client()
    other.force_login(ada)
    new = "a much better passphrase"
    reply = client.post(
        reverse("accounts:password"),
        {"old_password": "a good passphrase", "new_password1": new, "new_password2": new},
    )
    assert reply["Location"] == reverse("accounts:profile")
    assert client.get(reverse("accounts:profile")).status_code == 200
    assert other.get(reverse("accounts:profile")).status_code == 302


def test_a_weak_password_is_refused_with_the_reason(client, ada):
    reply = client.post(
        reverse("accounts:password"),
        {"old_password": "a good passphrase", "new_password1": "12345", "new_password2": "12345"},
    )
    assert "too short" in reply.content.decode()


def test_the_navigation_shows_a_role_what_it_may_open(client):
    def links(role: str) -> str:
        client.force_login(make_user(role=role))
        text = client.get(reverse("accounts:profile")).content.decode()
        return text[text.index("<nav") : text.index("</nav>")]

    assert "Agreement" not in links("annotator")
    assert "Agreement" in links("reviewer")
    assert "Generation" not in links("reviewer")
    assert "Generation" in links("admin")


@pytest.mark.parametrize("zone", ["", "Asia/Tokyo"])
def test_no_page_calls_a_time_of_the_persons_zone_utc(client, zone):
    """Midnight in Tokyo is three in the afternoon in Greenwich."""
    admin = make_user("admin", timezone=zone)
    client.force_login(admin)
    judged = judged_campaign(["aru"], slug="main")
    at = datetime(2026, 3, 2, 15, 0, tzinfo=UTC)
    candidate = judged.items[0].candidate
    Candidate.objects.filter(pk=candidate.pk).update(rendered_at=at)
    reviewing.reveal(item=judged.items[0], actor=admin)
    pages = {
        "image": reverse("candidates:detail", args=[candidate.key]),
        "log": reverse("agreement:log"),
        "generation": reverse("generation:status"),
    }
    words = {name: client.get(url).content.decode() for name, url in pages.items()}
    assert ("2026-03-03 00:00" if zone else "2026-03-02 15:00") in words["image"]
    for name, text in words.items():
        assert not re.search(r"\d\d:\d\d(:\d\d)? UTC|\(UTC\)", text), name
        assert f"Times are shown in {zone or 'UTC'}" in " ".join(text.split()), name
