"""Reviewers settle disputes: blind, by reason, alone or in twos, one by one or many at once."""

from __future__ import annotations

import csv
import io

import pytest
from django.db import connection, transaction
from django.urls import reverse
from django.utils import timezone

from croc_annotate.accounts.models import AuditEvent
from croc_annotate.agreement import reviewing
from croc_annotate.agreement.consensus_rows import store_consensus
from croc_annotate.agreement.models import Adjudication, ItemConsensus
from croc_annotate.agreement.review_queue import review_queue, sight_of
from croc_annotate.agreement.reviewing import ReviewRefusedError
from croc_annotate.agreement.selectors import campaign_consensus
from croc_annotate.agreement.statistics import compute_statistics, read_everything
from croc_annotate.annotation.models import Judgement
from tests.agreement.rows import judged_campaign
from tests.factories import make_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def reviewer(client):
    user = make_user("reviewer")
    client.force_login(user)
    return user


def disputed(n=3, **more):
    judged = judged_campaign(["aru"] * n, **more)
    compute_statistics(campaign=judged.campaign)
    return judged


def queue(judged, reviewer, **wanted):
    return list(review_queue(judged.campaign, reviewer, wanted).values_list("item_id", flat=True))


def post(client, name, item, **values):
    return client.post(reverse(f"agreement:{name}", args=[item.key]), values)


def actions():
    return list(AuditEvent.objects.order_by("id").values_list("action", flat=True))


def test_a_decision_overrides_the_votes_leaves_the_queue_and_closes_the_item(client, reviewer):
    judged = disputed(2)
    reply = post(
        client, "decide", judged.items[0], verdict="accept", reason="detail", note="3 legs"
    )
    assert reply.status_code == 302
    found = Adjudication.objects.get()
    assert (found.verdict, found.reason, found.reviewer, found.blind) == (
        "accept", "detail", reviewer, True,
    )  # fmt: skip
    table = campaign_consensus(campaign=judged.campaign)
    assert table.state.tolist() == ["accepted", "disputed"]
    assert queue(judged, reviewer) == [judged.items[1].pk]
    judged.items[0].refresh_from_db()
    assert judged.items[0].closed_by_review
    assert "review.decided" in actions()


@pytest.mark.field_case(28)
def test_the_page_is_blind_until_revealed_and_the_reveal_is_recorded(client, reviewer):
    judged = disputed(1)
    Judgement.objects.filter(item=judged.items[0]).update(remark="the left hand is hidden")
    url = reverse("agreement:review")
    body = client.get(url).content.decode()
    names = [user.username for user in judged.raters]
    assert not any(name in body for name in names)
    assert judged.items[0].candidate.generator.label not in body.split('class="review"')[1]
    assert "the left hand is hidden" in body
    assert "review.revealed" not in actions()
    post(client, "reveal", judged.items[0])
    body = client.get(url).content.decode()
    assert all(name in body for name in names)
    event = AuditEvent.objects.get(action="review.revealed")
    assert (event.actor, event.subject_id) == (reviewer, str(judged.items[0].pk))
    post(client, "decide", judged.items[0], verdict="reject", reason="clear")
    assert Adjudication.objects.get().blind is False


def test_a_reveal_lifts_the_blind_for_one_person_and_one_item_only(reviewer):
    judged = disputed(2)
    reviewing.reveal(item=judged.items[0], actor=reviewer)
    assert sight_of(judged.items[0], reviewer).judgements
    assert not sight_of(judged.items[1], reviewer).judgements
    assert not sight_of(judged.items[0], make_user("reviewer")).judgements


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"verdict": "unsure", "reason": "clear"}, "accept or reject"),
        ({"verdict": "accept", "reason": "because"}, "reason"),
        ({"verdict": "accept", "reason": "other"}, "note"),
    ],
)
def test_a_decision_needs_a_verdict_and_a_reason(reviewer, values, words):
    judged = disputed(1)
    with pytest.raises(ReviewRefusedError, match=words):
        reviewing.adjudicate(item=judged.items[0], reviewer=reviewer, **values)
    assert not Adjudication.objects.exists()


def test_an_annotator_cannot_decide_past_the_pages(reviewer):
    judged = disputed(1)
    with pytest.raises(ReviewRefusedError, match="only reviewers"):
        reviewing.adjudicate(
            item=judged.items[0], reviewer=judged.raters[0], verdict="accept", reason="clear"
        )


def test_two_reviewers_must_agree_where_that_is_wanted(reviewer):
    judged = disputed(1)
    admin, second, item = make_user("admin"), make_user("reviewer"), judged.items[0]
    reviewing.set_review_policy(
        campaign=judged.campaign, second_reviewer=True, low_posterior=0.8, actor=admin
    )
    decide = {"item": item, "reason": "clear"}
    reviewing.adjudicate(reviewer=reviewer, verdict="accept", **decide)
    assert campaign_consensus(campaign=judged.campaign).state.tolist() == ["disputed"]
    assert queue(judged, reviewer) == []
    assert queue(judged, second) == [item.pk]
    assert sight_of(item, second).first_decision is not None
    reviewing.adjudicate(reviewer=second, verdict="reject", **decide)  # they disagree
    assert campaign_consensus(campaign=judged.campaign).state.tolist() == ["disputed"]
    assert queue(judged, reviewer) == [item.pk]
    reviewing.adjudicate(reviewer=admin, verdict="reject", **decide)
    assert campaign_consensus(campaign=judged.campaign).state.tolist() == ["rejected"]
    current = Adjudication.objects.current().get()
    assert (current.reviewer, current.confirmed_by) == (second, admin)
    assert actions().count("review.decided") == 2
    assert "review.confirmed" in actions()


def test_nobody_is_their_own_second_reviewer(reviewer):
    judged = disputed(1)
    for _ in range(2):
        reviewing.adjudicate(
            item=judged.items[0],
            reviewer=reviewer,
            verdict="accept",
            reason="clear",
            second_wanted=True,
        )
    assert not Adjudication.objects.in_force().exists()
    assert Adjudication.objects.current().count() == 1


def test_a_decision_can_be_taken_back_with_a_reason(client, reviewer):
    judged = disputed(1)
    found = reviewing.adjudicate(
        item=judged.items[0], reviewer=reviewer, verdict="accept", reason="clear"
    )
    url = reverse("agreement:withdraw", args=[found.pk])
    client.post(url, {"note": " "})
    assert Adjudication.objects.in_force().exists()
    client.post(url, {"note": "looked at the wrong image"})
    assert not Adjudication.objects.in_force().exists()
    assert Adjudication.objects.count() == 1  # kept
    assert queue(judged, reviewer) == [judged.items[0].pk]
    judged.items[0].refresh_from_db()
    assert not judged.items[0].closed_by_review
    with pytest.raises(ReviewRefusedError, match="already"):
        reviewing.withdraw_adjudication(adjudication=found, actor=reviewer, note="again")


def test_an_item_can_be_sent_back_for_more_judgements(client, reviewer):
    judged = disputed(1)
    post(client, "send_back", judged.items[0], extra=2, note="one more look")
    judged.items[0].refresh_from_db()
    assert (judged.items[0].extra, judged.items[0].closed_at) == (2, None)
    assert judged.items[0].needed == 2
    table = campaign_consensus(campaign=judged.campaign)
    assert table.state.tolist() == ["pending"]
    assert queue(judged, reviewer) == []
    assert "review.sent_back" in actions()


def test_a_defective_pair_leaves_with_all_its_candidates(client, reviewer):
    judged = disputed(3)
    pair = judged.items[0].pair
    post(client, "defective", judged.items[0], code="both_true", note="")
    pair.refresh_from_db()
    assert not pair.active
    assert "Both texts" in pair.retired_reason
    assert judged.items[0].pk not in queue(judged, reviewer)
    assert "review.pair_defective" in actions()


def test_weak_accepts_are_reviewed_too(reviewer):
    judged = disputed(1)
    ItemConsensus.objects.update(state="accepted", posterior=0.6)
    assert queue(judged, reviewer, kind="weak") == [judged.items[0].pk]
    ItemConsensus.objects.update(posterior=0.9)
    assert queue(judged, reviewer, kind="weak") == []


def test_the_queue_starts_with_the_most_open_item_and_can_be_put_off(client, reviewer):
    judged = disputed(3)
    for item, posterior in zip(judged.items, [0.9, 0.52, 0.2], strict=True):
        ItemConsensus.objects.filter(item=item).update(posterior=posterior)
    assert queue(judged, reviewer) == [judged.items[k].pk for k in (1, 2, 0)]
    url = reverse("agreement:review")
    assert client.get(url).context["sight"].item == judged.items[1]
    later = client.get(url, {"after": judged.items[1].key})
    assert later.context["sight"].item == judged.items[2]


def test_the_queue_can_be_narrowed(reviewer):
    judged = disputed(2, categories=["counting", "action"])
    assert queue(judged, reviewer, category="action") == [judged.items[1].pk]
    assert queue(judged, reviewer, generator="nobody") == []


def test_many_are_decided_at_once_after_a_preview(client, reviewer):
    judged = disputed(5)
    url = reverse("agreement:bulk") + f"?campaign={judged.campaign.slug}"
    page = client.get(url)
    assert page.context["total"] == 5
    token = page.context["act_form"].initial["token"]
    values = {"act": "decide", "verdict": "reject", "reason": "guideline", "token": token}
    assert client.post(url, values).status_code == 302
    assert Adjudication.objects.in_force().count() == 5
    assert actions().count("review.decided") == 5
    assert actions().count("review.bulk") == 1


def test_a_bulk_act_is_refused_when_the_queue_has_changed_since_the_preview(client, reviewer):
    judged = disputed(3)
    url = reverse("agreement:bulk") + f"?campaign={judged.campaign.slug}"
    token = client.get(url).context["act_form"].initial["token"]
    reviewing.adjudicate(item=judged.items[0], reviewer=reviewer, verdict="accept", reason="clear")
    values = {"act": "decide", "verdict": "reject", "reason": "clear", "token": token}
    reply = client.post(url, values)
    assert reply.status_code == 200
    assert "changed since" in reply.content.decode()
    assert Adjudication.objects.count() == 1


def test_many_are_sent_back_at_once(client, reviewer):
    judged = disputed(3)
    url = reverse("agreement:bulk") + f"?campaign={judged.campaign.slug}"
    token = client.get(url).context["act_form"].initial["token"]
    values = {
        "act": "send_back", "verdict": "accept", "reason": "clear", "extra": "1", "token": token,
    }  # fmt: skip
    client.post(url, values)
    assert {item.extra for item in judged.campaign.items.all()} == {1}


def test_the_audit_log_cannot_be_edited():
    judged = disputed(1)
    reviewing.reveal(item=judged.items[0], actor=make_user("reviewer"))
    for act in (
        "UPDATE accounts_auditevent SET action = 'nothing'",
        "DELETE FROM accounts_auditevent",
    ):
        with (
            pytest.raises(Exception, match=r"(?i)append|audit|only"),
            transaction.atomic(),
            connection.cursor() as cursor,
        ):
            cursor.execute(act)
    assert actions()[-1] == "review.revealed"


def test_the_log_names_decisions_and_acts(client, reviewer):
    judged = disputed(1)
    post(client, "decide", judged.items[0], verdict="accept", reason="clear")
    body = client.get(reverse("agreement:log")).content.decode()
    assert "review.decided" in body
    assert judged.items[0].pair.slug in body


def test_the_log_shows_every_kind_of_act(client):
    """Sending back stores a count under the key "items", which a template may take for a method."""
    client.force_login(make_user("admin"))
    judged = disputed(4)
    post(client, "send_back", judged.items[0], extra=2, note="look at the hands")
    post(client, "reveal", judged.items[1])
    post(client, "decide", judged.items[1], verdict="accept", reason="clear")
    post(client, "defective", judged.items[2], code="ambiguous")
    page = client.get(reverse("agreement:log"))
    assert page.status_code == 200
    for action in ("items.more_judgements", "review.revealed", "review.decided"):
        assert action in actions()
    words = page.content.decode()
    assert f"items {judged.items[0].pk}" in words
    assert "review.revealed" in words
    assert "review.decided" in words


def history(client, judged, item=0):
    return client.get(reverse("agreement:history", args=[judged.items[item].candidate.key]))


def test_the_history_of_an_image_hides_verdicts_until_its_review_is_done_or_revealed(
    client, reviewer
):
    judged = judged_campaign(["aru", "rrr"])
    compute_statistics(campaign=judged.campaign)
    Judgement.objects.filter(item=judged.items[1]).update(remark="a clear picture")
    waiting, settled = history(client, judged), history(client, judged, 1).content.decode()
    assert b"Waits for review" in waiting.content
    assert b"badge-accept" not in waiting.content
    assert settled.count("a clear picture") == 3
    assert "P(match)" in settled
    post(client, "reveal", judged.items[0])
    assert b"badge-accept" in history(client, judged).content


def test_the_history_names_people_to_admins_only_and_shows_decisions(client, reviewer):
    judged = disputed(1)
    post(client, "decide", judged.items[0], verdict="reject", reason="detail", note="no 3rd leg")
    compute_statistics(campaign=judged.campaign)
    seen = history(client, judged).content.decode()
    assert "no 3rd leg" in seen
    assert str(judged.raters[0]) not in seen
    client.force_login(make_user("admin"))
    assert str(judged.raters[0]) in history(client, judged).content.decode()


@pytest.mark.field_case(33)
def test_two_people_who_never_agree_send_every_item_to_review(reviewer):
    judged = judged_campaign(["ar", "ra"] * 6, min_judgements=2)
    compute_statistics(campaign=judged.campaign)
    assert sorted(queue(judged, reviewer)) == sorted(item.pk for item in judged.items)


def test_all_decisions_can_be_downloaded_without_names(client, reviewer):
    judged = disputed(2)
    post(client, "decide", judged.items[0], verdict="accept", reason="clear", note='says "three"')
    post(client, "decide", judged.items[0], verdict="reject", reason="detail")
    reply = client.get(reverse("agreement:csv", args=["decisions"]))
    text = b"".join(reply.streaming_content).decode()
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [row["verdict"] for row in rows] == ["accept", "reject"]
    assert rows[0]["note"] == 'says "three"'
    assert rows[0]["superseded_at"]
    assert not rows[1]["superseded_at"]
    assert rows[0]["reviewer"] == rows[1]["reviewer"]
    assert reviewer.username not in text


def test_a_line_of_the_log_stays_short_after_a_bulk_act(client):
    admin = make_user("admin")
    client.force_login(admin)
    judged = disputed(14)
    pks = [item.pk for item in judged.items]
    reviewing.send_back(campaign=judged.campaign, item_ids=pks, actor=admin, extra=1, note="")
    words = client.get(reverse("agreement:log")).content.decode()
    assert "… (14)" in words
    assert f", {pks[-1]}" not in words


def test_statistics_that_began_before_a_reviewers_act_do_not_undo_it(reviewer):
    judged = disputed(3)
    begun = timezone.now()
    read = read_everything(judged.campaign)  # takes seconds in a large campaign
    decided, sent_back, left = judged.items
    reviewing.adjudicate(item=decided, reviewer=reviewer, verdict="accept", reason="clear")
    reviewing.send_back(campaign=judged.campaign, item_ids=[sent_back.pk], actor=reviewer)
    store_consensus(judged.campaign, read.table, begun=begun)
    assert queue(judged, reviewer) == [left.pk]
    compute_statistics(campaign=judged.campaign)
    states = dict(ItemConsensus.objects.values_list("item_id", "state"))
    assert [states[item.pk] for item in judged.items] == ["accepted", "pending", "disputed"]


def test_pairs_out_of_use_leave_the_queue(reviewer):
    judged = disputed(2)
    pair = judged.items[0].pair
    type(pair).objects.filter(pk=pair.pk).update(active=False)
    assert pair.pk != judged.items[1].pair_id
    assert queue(judged, reviewer) == [judged.items[1].pk]


def test_the_preview_counts_all_and_shows_a_few(client, reviewer, monkeypatch):
    monkeypatch.setattr("croc_annotate.agreement.review_pages.BULK_MOST", 3)
    judged = disputed(5, categories=["counting", "counting", "action", "action", "action"])
    page = client.get(reverse("agreement:bulk"), {"campaign": judged.campaign.slug})
    assert page.context["by_category"] == [("action", 3), ("counting", 2)]
    shown = [candidate.pk for candidate in page.context["sample"]]
    assert shown == [item.candidate_id for item in judged.items]
    body = page.content.decode()
    assert "5 items" in body
    assert "At most 3 at once" in body
    assert "Do it" not in body


def test_the_wall_of_images_is_no_way_around_the_blind_either(client, reviewer):
    judged = judged_campaign(["aru", "aaa", "aau"])
    compute_statistics(campaign=judged.campaign)
    ItemConsensus.objects.filter(item=judged.items[2]).update(state="accepted", posterior=0.6)
    url = reverse("agreement:images")

    def hidden():
        page = client.get(url, {"campaign": judged.campaign.slug})
        assert page.content.decode().count("votes hidden") == len(page.context["hidden"])
        return page.context["hidden"]

    disputed_one, weak = judged.items[0].pk, judged.items[2].pk
    assert {disputed_one, weak} <= hidden()
    post(client, "reveal", judged.items[0])
    assert disputed_one not in hidden()
    assert weak in hidden()
    post(client, "decide", judged.items[2], verdict="accept", reason="clear")
    assert weak not in hidden()


def test_a_second_reviewer_can_be_asked_for_many_at_once(client, reviewer):
    judged = disputed(2)
    url = reverse("agreement:bulk") + f"?campaign={judged.campaign.slug}"
    token = client.get(url).context["act_form"].initial["token"]
    values = {"act": "decide", "verdict": "reject", "reason": "clear", "token": token}
    client.post(url, {**values, "second_wanted": "on"})
    assert Adjudication.objects.waiting_for_second().count() == 2
    assert not Adjudication.objects.in_force().exists()
