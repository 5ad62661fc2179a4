"""Pages of annotators and of campaigns: who sees what, and what the forms do."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from croc_annotate.accounts.models import AuditEvent
from croc_annotate.annotation.invitations import create_invitation, revoke_invitation
from croc_annotate.annotation.models import (
    Campaign,
    Consent,
    ConsentText,
    Guideline,
    Invitation,
    Judgement,
    Participation,
    Study,
)
from croc_annotate.annotation.services import publish_consent_text, publish_guideline
from croc_annotate.lib.markdown import render_markdown
from tests.annotation.test_api import Page
from tests.annotation.test_gold_and_training import add_known
from tests.annotation.world import NOW, later, make_images, make_open_campaign, make_pairs
from tests.factories import make_user

pytestmark = pytest.mark.django_db


def signed_in(user=None, role="annotator") -> Client:
    client = Client()
    client.force_login(user or make_user(role))
    return client


def test_visitors_are_sent_to_the_log_in():
    campaign = make_open_campaign(pairs=1)
    for path in ("", f"{campaign.slug}/", f"{campaign.slug}/me/", f"{campaign.slug}/end/"):
        reply = Client().get(f"/annotate/{path}")
        assert reply.status_code == 302
        assert "/accounts/login/" in reply.url


def test_my_campaigns_shows_open_ones_and_where_i_stand():
    campaign = make_open_campaign(pairs=2)
    make_open_campaign(pairs=1, title="By invitation", invitation_only=True)
    Campaign.objects.create(slug="draft", title="A draft")
    page = Page(campaign)
    page.answer(page.claim(1)["items"][0])
    text = page.client.get("/annotate/").content.decode()
    assert campaign.title in text
    assert "Go on" in text
    assert "By invitation" not in text
    assert "A draft" not in text
    empty = signed_in(make_user())
    Campaign.objects.update(state="draft")
    assert "Nothing to judge yet" in empty.get("/annotate/").content.decode()


def test_the_judging_page_gets_its_guideline_and_examples_never_gold_or_quiz():
    campaign = make_open_campaign(
        pairs=2, guideline=publish_guideline(version="g1", body="# Look\n<script>x</script>")
    )
    known = {"purpose": "training", "explanation": "Two, not three.", "verdict": "reject"}
    add_known(campaign, 1, **known)
    add_known(campaign, 1, purpose="gold", explanation="a secret")
    add_known(campaign, 1, purpose="training", is_quiz=True, explanation="another secret")
    client = signed_in()
    page = client.get(f"/annotate/{campaign.slug}/", follow=True)
    assert "<h1>Look</h1>" in page.content.decode()
    assert "<script>x" not in page.content.decode()
    assert "Two, not three." in page.content.decode()
    client.post(f"/annotate/{campaign.slug}/guideline/", {"version": "g1"})
    reply = client.get(f"/annotate/{campaign.slug}/")
    assert reply.status_code == 200
    text = reply.content.decode()
    assert "secret" not in text
    assert reply.context["stage"] == "work"
    assert [e["verdict"] for e in reply.context["examples"]] == ["reject"]
    assert "no-store" in reply["Cache-Control"] or "no-cache" in reply["Cache-Control"]


def test_consent_is_versioned_and_an_old_version_is_not_taken():
    campaign = make_open_campaign(
        pairs=1, consent_text=publish_consent_text(version="c1", body="First *text*.")
    )
    client = signed_in()
    page = client.get(f"/annotate/{campaign.slug}/", follow=True).content.decode()
    assert "First <em>text</em>." in page
    new = publish_consent_text(version="c2", body="Second.")
    Campaign.objects.update(consent_text=new)
    stale = client.post(f"/annotate/{campaign.slug}/consent/", {"version": "c1"})
    assert "The text has changed" in stale.content.decode()
    assert Consent.objects.count() == 0
    good = client.post(f"/annotate/{campaign.slug}/consent/", {"version": "c2"})
    assert good.status_code == 302
    assert Consent.objects.get().text == new


@pytest.mark.field_case(18)
def test_back_after_an_answer_shows_the_page_again_and_posts_nothing():
    """Every page of the way may be loaded again; what was stored stays as it was."""
    campaign = make_open_campaign(
        pairs=1, consent_text=publish_consent_text(version="c1", body="x")
    )
    client = signed_in()
    for _ in range(2):
        client.post(f"/annotate/{campaign.slug}/consent/", {"version": "c1"})
    assert Consent.objects.count() == 1
    assert client.get(f"/annotate/{campaign.slug}/consent/").status_code == 200
    assert Consent.objects.count() == 1


@pytest.mark.field_case(18)
def test_my_own_page_corrects_an_answer_and_a_second_click_changes_nothing():
    campaign = make_open_campaign(pairs=2)
    page = Page(campaign)
    page.answer(page.claim(1)["items"][0], "accept")
    path = f"/annotate/{campaign.slug}/me/"
    text = page.client.get(path).content.decode()
    item = re.search(r'name="item" value="(\w+)"', text).group(1)
    key = re.search(r'name="client_key" value="([\w-]+)"', text).group(1)
    form = {"item": item, "client_key": key, "verdict": "reject"}
    for _ in range(2):
        reply = page.client.post(path, form, follow=True)
        assert "Your answer is stored." in reply.content.decode()
    assert Judgement.objects.count() == 2
    assert Judgement.objects.current().get().verdict == "reject"
    bad = page.client.post(path, {**form, "verdict": "perhaps"}, follow=True)
    assert "accept, reject or unsure" in bad.content.decode()


@pytest.mark.field_case(27)
def test_my_own_page_shows_nobody_elses_answers():
    campaign = make_open_campaign(pairs=2)
    other = Page(campaign)
    item = other.claim(1)["items"][0]
    other.answer(item)
    page = Page(campaign)
    page.get("session")
    text = page.client.get(f"/annotate/{campaign.slug}/me/").content.decode()
    assert item["item"] not in text
    assert "No answers yet" in text


def test_the_end_says_what_is_safe():
    campaign = make_open_campaign(pairs=2, session_cap=1)
    page = Page(campaign)
    assert "Not done yet" in page.client.get(f"/annotate/{campaign.slug}/end/").content.decode()
    page.answer(page.claim(1)["items"][0])
    text = page.client.get(f"/annotate/{campaign.slug}/end/").content.decode()
    assert "you are done" in text
    assert "All your answers are stored" in text


# --- invitations -----------------------------------------------------------------------------


def test_an_invitation_lets_a_colleague_in_once_per_use():
    campaign = make_open_campaign(pairs=1, invitation_only=True)
    admin = make_user("admin")
    row, token = create_invitation(campaign=campaign, actor=admin, max_uses=1)
    assert token not in row.sha256
    visitor = Client()
    assert "You are invited" in visitor.get(f"/join/{token}/").content.decode()
    form = {
        "username": "colleague",
        "display_name": "Co",
        "password1": "a long passphrase 7",
        "password2": "a long passphrase 7",
    }
    reply = visitor.post(f"/join/{token}/", form)
    assert reply.url == f"/annotate/{campaign.slug}/"
    assert Participation.objects.get().annotator.username == "colleague"
    assert visitor.post(f"/join/{token}/").url == f"/annotate/{campaign.slug}/"  # is in already
    late = signed_in()
    refused = late.post(f"/join/{token}/")
    assert refused.status_code == 403
    assert "as often as it may be" in refused.content.decode()
    form["username"] = "second"
    assert Client().post(f"/join/{token}/", form).status_code == 403
    assert not Participation.objects.filter(annotator__username="second").exists()
    from croc_annotate.accounts.models import User

    assert not User.objects.filter(username="second").exists()


def test_old_and_revoked_invitations_let_nobody_in():
    campaign = make_open_campaign(pairs=1)
    admin = make_user("admin")
    _, old = create_invitation(campaign=campaign, actor=admin, expires_at=later(-(10**8)))
    row, taken_back = create_invitation(campaign=campaign, actor=admin)
    revoke_invitation(invitation=row, actor=admin, now=NOW)
    for token in (old, taken_back, "nonsense"):
        assert Client().get(f"/join/{token}/").status_code == 403


# --- campaigns -------------------------------------------------------------------------------


def campaign_form(**changes):
    form = {
        "title": "Round two",
        "slug": "round-two",
        "mode": "grid",
        "grid_size": 9,
        "order": "runs",
        "min_distance": 8,
        "redundancy": "adaptive",
        "min_judgements": 3,
        "max_judgements": 5,
        "rule": "majority",
        "posterior_threshold": 0.95,
        "cross_rate": 0,
        "reference_rate": 0.1,
        "practice_items": 0,
        "quiz_items": 0,
        "quiz_pass_mark": 0.8,
        "gold_rate": 0.05,
        "gold_spacing": 5,
        "gold_threshold": 0.7,
        "gold_minimum": 5,
        "lease_seconds": 600,
        "seed": 1,
        "categories": ["counting"],
    }
    return {**form, **changes}


def test_an_admin_makes_opens_edits_and_closes_a_campaign():
    make_images(make_pairs(2))
    make_images(make_pairs(1, "action"))
    client = signed_in(role="admin")
    assert client.get("/campaigns/new/").status_code == 200
    reply = client.post("/campaigns/new/", campaign_form())
    assert reply.url == "/campaigns/round-two/"
    campaign = Campaign.objects.get(slug="round-two")
    assert (campaign.state, campaign.mode, campaign.categories) == ("draft", "grid", ["counting"])
    client.post("/campaigns/round-two/state/", {"state": "open"})
    assert campaign.items.count() == 4
    assert campaign.items.first().needed == 2
    changed = campaign_form(redundancy="fixed", min_judgements=4)
    assert client.post("/campaigns/round-two/edit/", changed).status_code == 302
    assert set(campaign.items.values_list("needed", flat=True)) == {4}
    client.post("/campaigns/round-two/state/", {"state": "closed"})
    campaign.refresh_from_db()
    assert campaign.state == "closed"
    text = client.get("/campaigns/").content.decode()
    assert "Round two" in text
    actions = set(AuditEvent.objects.values_list("action", flat=True))
    assert {"campaign.created", "campaign.open", "campaign.edited"} <= actions


def test_a_wrong_setting_is_said_beside_its_field():
    client = signed_in(role="admin")
    page = client.post("/campaigns/new/", campaign_form(max_judgements=1, gold_rate=2))
    assert page.status_code == 200
    assert page.context["form"].errors
    assert not Campaign.objects.filter(slug="round-two").exists()
    bad = client.post("/campaigns/new/", campaign_form(max_judgements=1))
    assert bad.status_code == 200


def test_the_campaigns_page_runs_people_invitations_and_studies():
    campaign = make_open_campaign(pairs=2)
    page = Page(campaign)
    page.answer(page.claim(1)["items"][0])
    client = signed_in(role="admin")
    base = f"/campaigns/{campaign.slug}/"
    text = client.get(base).content.decode()
    assert str(page.user) in text
    client.post(base + "invite/", {"label": "Lab", "max_uses": 3, "days": 5})
    text = client.get(base).content.decode()
    assert "/join/" in text
    assert Invitation.objects.get().max_uses == 3
    study = {
        "study_id": "s1",
        "code_completed": "A",
        "code_screened_out": "B",
        "code_no_consent": "C",
        "return_url": "https://app.prolific.com/submissions/complete",
        "active": "on",
    }
    client.post(base + "study/", study)
    client.post(base + "study/", {**study, "code_completed": "AA"})
    assert Study.objects.get().code_completed == "AA"
    row = Participation.objects.get()
    client.post(base + f"people/{row.pk}/", {"act": "pause", "set_aside": "on"})
    assert Judgement.objects.counted(campaign).count() == 0
    client.post(base + f"people/{row.pk}/", {"act": "resume", "reinstate": "on"})
    assert Judgement.objects.counted(campaign).count() == 1
    client.post(base + f"people/{row.pk}/", {"act": "reopen"})
    client.post(base + f"people/{row.pk}/", {"act": "nonsense"})
    assert client.get(base).status_code == 200


def test_the_invitation_link_is_shown_once():
    campaign = make_open_campaign(pairs=1)
    client = signed_in(role="admin")
    base = f"/campaigns/{campaign.slug}/"
    client.post(base + "invite/", {"max_uses": 1, "days": 5})
    assert 'id="new-link"' in client.get(base).content.decode()
    assert 'id="new-link"' not in client.get(base).content.decode()


def test_texts_are_versions():
    client = signed_in(role="admin")
    new = {"which": "guideline", "version": "g1", "title": "How to", "body": "Look."}
    assert client.post("/campaigns/texts/", new).status_code == 302
    assert client.post("/campaigns/texts/", new).status_code == 200  # the version is taken
    client.post("/campaigns/texts/", {"which": "consent", "version": "c1", "body": "ok"})
    assert Guideline.objects.count() == ConsentText.objects.count() == 1


@pytest.mark.field_case(29)
@pytest.mark.parametrize("role", ["annotator", "reviewer"])
def test_only_admins_run_campaigns(role):
    campaign = make_open_campaign(pairs=1)
    client = signed_in(role=role)
    for path in ("", "new/", "texts/", f"{campaign.slug}/", f"{campaign.slug}/edit/"):
        assert client.get(f"/campaigns/{path}").status_code == 403
    assert client.post(f"/campaigns/{campaign.slug}/state/", {"state": "closed"}).status_code == 403
    campaign.refresh_from_db()
    assert campaign.state == "open"


@pytest.mark.field_case(13)
def test_a_person_with_work_cannot_be_deleted():
    from django.db.models import ProtectedError

    campaign = make_open_campaign(pairs=1)
    page = Page(campaign)
    page.answer(page.claim(1)["items"][0])
    for row in (page.user, campaign, Judgement.objects.get().item):
        with pytest.raises(ProtectedError):
            row.delete()


def test_markdown_lets_no_script_through():
    html = render_markdown("[x](javascript:alert(1)) <img src=x onerror=y> ![i](http://a/b.png)")
    assert "<img" not in html
    assert 'href="javascript' not in html
