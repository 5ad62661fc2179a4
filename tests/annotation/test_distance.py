"""Contrast-aware handing out: what one person sees after what, while others fill places."""

from __future__ import annotations

from itertools import pairwise

import pytest

from croc_annotate.annotation.models import Participation
from croc_annotate.annotation.ordering import smallest_gap
from croc_annotate.annotation.services import edit_campaign, open_items
from croc_annotate.candidates.models import Candidate
from tests.annotation.world import (
    NOW,
    answer_many,
    assert_sound,
    make_annotators,
    make_images,
    make_open_campaign,
    make_pairs,
    take,
)

pytestmark = pytest.mark.django_db


def judge(campaign, people, *, batch, rounds=10_000):
    """Everybody in turn; the screens of each person, as (pair, text) with their times."""
    screens = {person.pk: [] for person in people}
    clock = 0.0
    active = list(people)
    for _ in range(rounds):
        for person in list(active):
            clock += 1
            claim = take(campaign, person, batch, at=clock)
            if claim.state in {"finished", "nothing"}:
                active.remove(person)
            elif claim.state == "held":
                clock += 20
            answer_many(campaign, person, [(h, "accept") for h in claim.items], at=clock)
            screens[person.pk] += [(h.item.pair_id, h.item.group, clock) for h in claim.items]
        if not active:
            return screens
    return screens


def test_alone_a_person_keeps_the_whole_distance():
    campaign = make_open_campaign(pairs=30, seeds=2, min_distance=12, min_judgements=2)
    assert campaign.distance == 12
    people = make_annotators(2)
    for person in people:
        [screens] = judge(campaign, [person], batch=3).values()
        assert len(screens) == 120
        assert smallest_gap([pair for pair, _, _ in screens]) >= 12


def test_in_company_both_sides_of_a_pair_never_come_close():
    campaign = make_open_campaign(pairs=20, seeds=2, min_distance=8, min_judgements=2)
    people = make_annotators(5)
    for screens in judge(campaign, people, batch=2).values():
        for index, (pair, group, at) in enumerate(screens):
            for other_pair, other_group, before in screens[max(0, index - 5) : index]:
                near = other_pair == pair and other_group != group
                # When little is left a minute is enough.
                assert not near or at - before >= 60
    assert campaign.items.complete().count() == 80
    assert_sound(campaign)


def test_a_campaign_of_few_pairs_asks_for_the_distance_that_it_can_hold():
    assert make_open_campaign(pairs=1).distance == 0
    assert make_open_campaign(pairs=5, min_distance=20).distance == 3  # six pairs in all
    bank = make_pairs(4, "action") + make_pairs(9, "counting")
    make_images(bank)
    runs = make_open_campaign(pairs=1, order="runs", min_distance=20)
    assert runs.distance == 2


def test_the_last_pair_comes_after_a_while_and_never_locks_up():
    campaign = make_open_campaign(pairs=4, min_distance=2, min_judgements=1)
    anna, bert = make_annotators(2)
    rest = campaign.items.exclude(pair=campaign.items.order_by("position").first().pair)
    # Everything but one pair is in somebody's hands.
    held = take(campaign, bert, 8).items
    give = [
        h.assignment for h in held if h.item.pair_id not in set(rest.values_list("pair", flat=True))
    ]
    from croc_annotate.annotation.services import release_items

    release_items(slug=campaign.slug, annotator=bert, assignments=give, now=NOW)
    [first] = take(campaign, anna, 2, at=1).items
    answer_many(campaign, anna, [(first, "accept")], at=2)
    waiting = take(campaign, anna, 2, at=3)
    assert waiting.state == "held"
    assert (waiting.retry_at - NOW).total_seconds() == 61
    [second] = take(campaign, anna, 2, at=61).items
    assert second.item.pair_id == first.item.pair_id
    assert second.item.group != first.item.group


def test_near_duplicates_of_other_pairs_keep_apart_too():
    campaign = make_open_campaign(pairs=12, min_distance=6)
    items = list(campaign.items.order_by("position"))
    first, twin = items[0], items[2]
    Candidate.objects.filter(pk=twin.candidate_id).update(near_duplicate_of=first.candidate_id)
    [person] = make_annotators(1)
    order = []
    for _ in range(24):
        [handed] = take(campaign, person, 1).items
        order.append(handed.item.pk)
        answer_many(campaign, person, [(handed, "accept")])
    assert order.index(twin.pk) - order.index(first.pk) > 6


def test_grid_mode_brings_one_text_at_a_time_and_keeps_pairs_apart():
    campaign = make_open_campaign(
        pairs=12, seeds=6, mode="grid", grid_size=6, min_distance=4, min_judgements=1
    )
    [person] = make_annotators(1)
    grids, clock = [], 0.0
    while True:
        clock += 1
        claim = take(campaign, person, 6, at=clock)
        if claim.state != "items":
            break
        assert len({h.item.group for h in claim.items}) == 1
        assert len(claim.items) == 6
        grids.append(claim.items[0].item.pair_id)
        answer_many(campaign, person, [(h, "accept") for h in claim.items], at=clock)
    assert claim.state == "finished"
    assert len(grids) == 24
    assert smallest_gap(grids) >= 4


def test_categories_come_in_runs_when_asked():
    make_images(make_pairs(6, "action"))
    campaign = make_open_campaign(pairs=6, order="runs", min_judgements=1, min_distance=2)
    [person] = make_annotators(1)
    order = []
    while True:
        claim = take(campaign, person, 1, at=len(order))
        if not claim.items:
            break
        order.append(claim.items[0].item.pair.category_id)
        answer_many(campaign, person, [(claim.items[0], "accept")], at=len(order))
    assert len(order) == 24
    assert sum(a != b for a, b in pairwise(order)) == 1


def test_new_images_reach_people_who_had_come_to_the_end():
    campaign = make_open_campaign(pairs=3, min_judgements=3)
    [person] = make_annotators(1)
    judge(campaign, [person], batch=3)
    assert Participation.objects.get(annotator=person).exhausted_at is not None
    make_images(make_pairs(1))
    assert open_items(campaign=campaign) == 2
    assert take(campaign, person, 3, at=2000).state == "items"


def test_more_judgements_wanted_reopens_items_for_others_only():
    campaign = make_open_campaign(pairs=2, min_judgements=1)
    anna, bert = make_annotators(2)
    judge(campaign, [anna], batch=2)
    assert take(campaign, bert, 2, at=500).state == "finished"
    edit_campaign(campaign=campaign, actor=None, min_judgements=2)
    assert take(campaign, anna, 2, at=501).state in {"nothing", "finished"}
    assert take(campaign, bert, 2, at=502).state == "items"
    assert_sound(campaign)
