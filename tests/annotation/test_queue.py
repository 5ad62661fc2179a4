"""Handing out items: one person, several people, the end of a campaign."""

from __future__ import annotations

import uuid

import pytest

from croc_annotate.annotation.models import Assignment, Item, Judgement
from croc_annotate.annotation.services import (
    close_items,
    expire_leases,
    record_judgement,
    release_items,
    request_more_judgements,
    requeue_skips,
    set_campaign_state,
    skip_item,
)
from tests.annotation.world import (
    NOW,
    answer,
    answer_many,
    assert_sound,
    fresh,
    later,
    make_annotators,
    make_images,
    make_open_campaign,
    make_pairs,
    take,
)

pytestmark = pytest.mark.django_db


def judge_all(campaign, person, verdict="accept", batch=3, at=0.0):
    seen = []
    while True:
        claim = take(campaign, person, batch, at=at)
        if claim.state != "items":
            return seen, claim
        seen += [handed.item for handed in claim.items]
        answer_many(campaign, person, [(h, verdict) for h in claim.items], at=at)


def test_open_items_makes_each_item_once():
    campaign = make_open_campaign(pairs=5)
    assert campaign.items.count() == 10
    set_campaign_state(campaign=campaign, state="open", actor=None)
    assert campaign.items.count() == 10
    make_images(make_pairs(2))
    set_campaign_state(campaign=campaign, state="open", actor=None)
    assert campaign.items.count() == 14
    assert len(set(campaign.items.values_list("position", flat=True))) == 14


def test_a_person_judges_every_item_once_and_is_told_that_nothing_is_left():
    campaign = make_open_campaign(pairs=12, min_judgements=3)
    [person] = make_annotators(1)
    seen, claim = judge_all(campaign, person)
    assert len(seen) == len({item.pk for item in seen}) == 24
    assert claim.state == "nothing"
    assert_sound(campaign)


@pytest.mark.field_case(3)
def test_three_end_states_are_told_apart():
    campaign = make_open_campaign(pairs=1, min_judgements=1)
    anna, bert = make_annotators(2)
    held = take(campaign, anna, 5)
    assert len(held.items) == 2
    waiting = take(campaign, bert, 5)
    assert waiting.state == "held"
    assert waiting.retry_at == later(campaign.lease_seconds)
    answer_many(campaign, anna, [(h, "accept") for h in held.items])
    assert take(campaign, bert, 5, at=1).state == "finished"
    assert take(campaign, anna, 5, at=1).state == "finished"


@pytest.mark.field_case(3)
def test_nothing_for_you_while_others_are_still_wanted():
    campaign = make_open_campaign(pairs=3, min_judgements=2)
    anna, _ = make_annotators(2)
    _, claim = judge_all(campaign, anna)
    assert claim.state == "nothing"


@pytest.mark.field_case(4)
def test_the_end_is_never_filled_with_items_done_already():
    campaign = make_open_campaign(pairs=4, min_judgements=2)
    anna, bert = make_annotators(2)
    seen, _ = judge_all(campaign, anna)
    for _ in range(3):
        assert take(campaign, anna, 5, at=400).items == []
    assert len(judge_all(campaign, bert)[0]) == len(seen) == 8


def test_a_claim_returns_what_is_held_first():
    campaign = make_open_campaign(pairs=10)
    [person] = make_annotators(1)
    first = take(campaign, person, 3)
    again = take(campaign, person, 4, at=2)
    assert [h.assignment for h in again.items[:3]] == [h.assignment for h in first.items]
    assert len(again.items) == 4
    assert Assignment.objects.count() == 4


def test_held_items_are_renewed_while_the_person_is_here():
    campaign = make_open_campaign(pairs=3, lease_seconds=100)
    [person] = make_annotators(1)
    take(campaign, person, 1)
    assert take(campaign, person, 1, at=40).items[0].expires_at == later(100)
    assert take(campaign, person, 1, at=60).items[0].expires_at == later(160)
    assert expire_leases(now=later(120)) == 0


@pytest.mark.field_case(1)
def test_never_more_than_wanted_are_handed_out():
    campaign = make_open_campaign(pairs=2, min_judgements=2)
    people = make_annotators(5)
    for person in people:
        take(campaign, person, 4)
    assert Assignment.objects.live(NOW).count() == 8
    assert all(item.leased == 2 for item in campaign.items.all())
    assert_sound(campaign)


def test_expired_leases_free_their_places():
    campaign = make_open_campaign(pairs=2, min_judgements=1, lease_seconds=60)
    anna, bert = make_annotators(2)
    take(campaign, anna, 4)
    assert take(campaign, bert, 4).state == "held"
    assert expire_leases(now=later(61)) == 4
    assert expire_leases(now=later(61)) == 0
    assert len(take(campaign, bert, 4, at=62).items) == 4
    assert_sound(campaign)


def test_several_expired_leases_of_one_item_are_all_counted():
    campaign = make_open_campaign(pairs=1, min_judgements=3, lease_seconds=60)
    for person in make_annotators(3):
        take(campaign, person, 2)
    assert expire_leases(now=later(61)) == 6
    assert {item.leased for item in campaign.items.all()} == {0}
    assert_sound(campaign)


@pytest.mark.field_case(2)
def test_a_late_answer_without_a_free_place_is_kept_as_surplus():
    campaign = make_open_campaign(pairs=1, min_judgements=1, lease_seconds=60)
    anna, bert = make_annotators(2)
    [late, _] = take(campaign, anna, 2).items
    expire_leases(now=later(61))
    held = {h.item.pk: h for h in take(campaign, bert, 2, at=62).items}
    answer(campaign, bert, held[late.item.pk], "reject", at=63)
    assert answer(campaign, anna, late, "accept", at=64).status == "stored"
    rows = Judgement.objects.filter(item=late.item).order_by("id")
    assert [(row.verdict, row.surplus) for row in rows] == [("reject", False), ("accept", True)]
    assert list(Judgement.objects.counted(campaign).filter(item=late.item)) == [rows[0]]
    assert_sound(campaign)


@pytest.mark.field_case(2)
def test_a_late_answer_whose_place_is_held_by_another_is_surplus_too():
    campaign = make_open_campaign(pairs=1, min_judgements=1, lease_seconds=60)
    anna, bert = make_annotators(2)
    late = take(campaign, anna, 2).items[0]
    expire_leases(now=later(61))
    held = {h.item.pk: h for h in take(campaign, bert, 2, at=62).items}
    answer(campaign, anna, late, "accept", at=63)
    answer(campaign, bert, held[late.item.pk], "reject", at=64)
    assert list(
        Judgement.objects.counted(campaign).filter(item=late.item).values_list("verdict", flat=True)
    ) == ["reject"]
    assert_sound(campaign)


def test_a_late_answer_with_a_free_place_counts():
    campaign = make_open_campaign(pairs=1, min_judgements=1, lease_seconds=60)
    [anna] = make_annotators(1)
    late = take(campaign, anna, 2).items[0]
    expire_leases(now=later(61))
    answer(campaign, anna, late, "accept", at=63)
    assert Judgement.objects.counted(campaign).count() == 1
    assert fresh(late.item).closed_at is not None
    assert_sound(campaign)


def test_what_is_given_back_comes_again():
    campaign = make_open_campaign(pairs=10)
    [person] = make_annotators(1)
    claim = take(campaign, person, 3)
    given = [h.assignment for h in claim.items[1:]]
    assert release_items(slug=campaign.slug, annotator=person, assignments=given, now=later(1)) == 2
    assert release_items(slug=campaign.slug, annotator=person, assignments=given, now=later(1)) == 0
    again = take(campaign, person, 3, at=2)
    assert {h.item.pk for h in again.items} == {h.item.pk for h in claim.items}
    assert_sound(campaign)


@pytest.mark.field_case(5)
def test_a_skip_frees_the_place_and_never_comes_back_until_requeued():
    campaign = make_open_campaign(pairs=1, min_judgements=1)
    anna, bert = make_annotators(2)
    first, second = take(campaign, anna, 2).items
    answer(campaign, anna, second)
    for _ in range(2):  # twice is once
        skip_item(
            slug=campaign.slug,
            annotator=anna,
            assignment=first.assignment,
            reason="text_unclear",
            now=later(1),
        )
    assert Judgement.objects.filter(item=first.item).count() == 0
    assert fresh(first.item).closed_at is None
    assert take(campaign, anna, 2, at=100).state == "nothing"
    requeue_skips(item_ids=[first.item.pk], actor=None, now=later(101))
    assert take(campaign, anna, 2, at=200).items[0].item == first.item
    release_items(
        slug=campaign.slug,
        annotator=anna,
        assignments=list(Assignment.objects.live(later(200)).values_list("pk", flat=True)),
        now=later(201),
    )
    assert take(campaign, bert, 2, at=202).items[0].item == first.item
    assert_sound(campaign)


@pytest.mark.field_case(13)
def test_an_empty_list_is_an_error_not_everything():
    with pytest.raises(ValueError, match="No items"):
        requeue_skips(item_ids=[], actor=None, now=NOW)
    with pytest.raises(ValueError, match="No items"):
        request_more_judgements(item_ids=[], extra=1, actor=None)


def test_adaptive_asks_no_third_when_two_agree_and_five_when_they_differ():
    campaign = make_open_campaign(
        pairs=1, redundancy="adaptive", min_judgements=3, max_judgements=5
    )
    people = make_annotators(6)
    claims = [take(campaign, person, 2) for person in people]
    assert [len(claim.items) for claim in claims] == [2, 2, 0, 0, 0, 0]
    easy, hard = campaign.items.order_by("pk")
    for claim, person in zip(claims[:2], people, strict=False):
        verdicts = {easy.pk: "accept", hard.pk: "accept" if person == people[0] else "reject"}
        answer_many(campaign, person, [(h, verdicts[h.item.pk]) for h in claim.items], at=1)
    assert fresh(easy).closed_at is not None
    assert fresh(hard).needed == 2
    third, fourth = take(campaign, people[2], 2, at=2), take(campaign, people[3], 2, at=2)
    assert [h.item.pk for h in third.items + fourth.items] == [hard.pk, hard.pk]
    assert take(campaign, people[4], 2, at=2).state == "held"
    answer(campaign, people[2], third.items[0], "accept", at=3)
    answer(campaign, people[3], fourth.items[0], "reject", at=3)
    [fifth] = take(campaign, people[4], 2, at=4).items
    answer(campaign, people[4], fifth, "reject", at=5)
    assert take(campaign, people[5], 2, at=6).state == "finished"
    assert_sound(campaign)


def test_an_unsure_uses_a_place():
    campaign = make_open_campaign(pairs=1, min_judgements=1)
    [person] = make_annotators(1)
    judge_all(campaign, person, "unsure")
    assert campaign.items.complete().count() == 2


def test_a_closed_item_is_asked_no_more_and_can_be_asked_again():
    campaign = make_open_campaign(pairs=1, min_judgements=3)
    anna, bert, cleo = make_annotators(3)
    held = take(campaign, anna, 2).items
    assert close_items(items=campaign.items.all(), actor=None) == 2
    assert take(campaign, bert, 2).state == "finished"
    answer(campaign, anna, held[0], at=1)
    assert Judgement.objects.get().surplus
    request_more_judgements(item_ids=[held[0].item.pk], extra=1, actor=None)
    assert fresh(held[0].item).needed == 4
    assert [h.item.pk for h in take(campaign, cleo, 2, at=5).items] == [held[0].item.pk]
    assert_sound(campaign)


def test_a_judgement_that_came_by_another_way_takes_a_free_place():
    campaign = make_open_campaign(pairs=1, min_judgements=1)
    anna, bert = make_annotators(2)
    item = campaign.items.first()
    key = uuid.uuid4()
    first = record_judgement(item=item, annotator=anna, verdict="accept", client_key=key)
    assert record_judgement(item=item, annotator=anna, verdict="accept", client_key=key) == first
    assert not first.surplus
    assert record_judgement(item=item, annotator=bert, verdict="reject").surplus
    assert_sound(campaign)


def test_a_paused_and_a_closed_campaign_hand_out_nothing_but_take_answers():
    campaign = make_open_campaign(pairs=3)
    [person] = make_annotators(1)
    first, second = take(campaign, person, 2).items
    set_campaign_state(campaign=campaign, state="paused", actor=None)
    assert take(campaign, person, 2).state == "paused"
    assert answer(campaign, person, first).status == "stored"
    set_campaign_state(campaign=campaign, state="closed", actor=None)
    assert take(campaign, person, 2).state == "closed"
    assert answer(campaign, person, second).status == "stored"
    assert_sound(campaign)


def test_a_session_cap_counts_what_is_held():
    campaign = make_open_campaign(pairs=10, session_cap=3)
    [person] = make_annotators(1)
    claim = take(campaign, person, 5)
    assert len(claim.items) == 3
    answer_many(campaign, person, [(h, "accept") for h in claim.items])
    assert take(campaign, person, 5).state == "stage"


def test_an_extra_reference_judgement_stays_out_of_the_count():
    campaign = make_open_campaign(pairs=2, min_judgements=1, reference_rate=1.0)
    anna, bert, cleo = make_annotators(3)
    judge_all(campaign, anna, "accept")
    judge_all(campaign, bert, "reject")
    assert take(campaign, cleo, 4).state == "finished"
    kinds = list(Judgement.objects.order_by("id").values_list("annotator_id", "purpose"))
    assert kinds == [(anna.pk, "work")] * 4 + [(bert.pk, "reference")] * 4
    assert Judgement.objects.counted(campaign).count() == 4
    assert_sound(campaign)


def test_a_reference_place_that_expires_comes_again():
    campaign = make_open_campaign(pairs=1, min_judgements=1, reference_rate=1.0, lease_seconds=60)
    anna, bert, cleo = make_annotators(3)
    judge_all(campaign, anna)
    assert len(take(campaign, bert, 2).items) == 2
    assert take(campaign, cleo, 2).state == "held"
    expire_leases(now=later(61))
    assert_sound(campaign)
    assert len(take(campaign, cleo, 2, at=62).items) == 2


def test_cross_items_show_the_other_text():
    campaign = make_open_campaign(pairs=3, cross_rate=1.0)
    assert campaign.items.count() == 12
    other = campaign.items.filter(text_role="other", candidate__side="prompt").first()
    assert other.text == other.candidate.pair.contrast
    assert other.other_text == other.candidate.pair.prompt


def test_open_items_and_claims_ask_for_the_chosen_part_only():
    bank = make_pairs(2, "counting") + make_pairs(2, "action")
    make_images(bank)
    campaign = make_open_campaign(pairs=1, categories=["action"])
    assert set(campaign.items.values_list("pair__category_id", flat=True)) == {"action"}
    assert Item.objects.filter(campaign=campaign).count() == 4
