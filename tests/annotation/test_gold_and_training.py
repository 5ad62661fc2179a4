"""Known answers: gold among the work, practice, quiz, and what follows from them."""

from __future__ import annotations

import itertools
import uuid

import pytest

from croc_annotate.annotation.golds import below_threshold, next_gold
from croc_annotate.annotation.items import KnownItemError
from croc_annotate.annotation.models import (
    Judgement,
    Participation,
    Purpose,
    Qualification,
)
from croc_annotate.annotation.ordering import smallest_gap
from croc_annotate.annotation.people import give_consent, read_guideline
from croc_annotate.annotation.services import (
    edit_campaign,
    expire_leases,
    make_known_item,
    open_items,
    pause_person,
    publish_consent_text,
    publish_guideline,
    resume_person,
)
from tests.annotation.test_api import Page
from tests.annotation.world import (
    NOW,
    answer,
    answer_many,
    assert_sound,
    later,
    make_annotators,
    make_images,
    make_open_campaign,
    make_pairs,
    take,
)
from tests.factories import make_user

pytestmark = pytest.mark.django_db


def add_known(campaign, count, *, purpose, verdict="accept", category="counting", **fields):
    images = make_images(make_pairs(count, category), sides=("prompt",))
    return [
        make_known_item(
            campaign=campaign,
            candidate=image,
            verdict=verdict,
            purpose=purpose,
            now=NOW,
            **fields,
        )
        for image in images
    ]


def work_through(campaign, person, count, *, gold="accept", at=0.0):
    """Judge ``count`` items; gold with the verdict given, other work with accept."""
    order = []
    while len(order) < count:
        claim = take(campaign, person, 1, at=at)
        if claim.state != "items":
            return order, claim
        handed = claim.items[0]
        is_gold = handed.item.purpose == Purpose.GOLD
        order.append(is_gold)
        answer(campaign, person, handed, gold if is_gold else "accept", at=at)
    return order, None


def test_gold_comes_at_the_rate_and_never_nearer_than_the_spacing():
    campaign = make_open_campaign(pairs=100, gold_rate=0.1, gold_spacing=5)
    add_known(campaign, 30, purpose="gold")
    [person] = make_annotators(1)
    order, _ = work_through(campaign, person, 150)
    places = [i for i, gold in enumerate(order) if gold]
    assert 10 <= len(places) <= 20
    assert min(b - a for a, b in itertools.pairwise(places)) >= 5
    assert_sound(campaign)


def test_two_people_meet_gold_at_different_places():
    campaign = make_open_campaign(pairs=60, gold_rate=0.1, gold_spacing=3)
    add_known(campaign, 20, purpose="gold")
    orders = [work_through(campaign, person, 60)[0] for person in make_annotators(2)]
    assert orders[0] != orders[1]


def test_each_gold_item_is_asked_once_per_person_and_held_ones_stay_after_a_reload():
    campaign = make_open_campaign(pairs=30, gold_rate=0.5, gold_spacing=1)
    golds = add_known(campaign, 3, purpose="gold")
    [person] = make_annotators(1)
    seen = []
    for _ in range(20):
        first = take(campaign, person, 2)
        assert {h.item.pk for h in take(campaign, person, 2).items} == {
            h.item.pk for h in first.items
        }
        answer_many(campaign, person, [(h, "accept") for h in first.items])
        seen += [h.item.pk for h in first.items if h.item.purpose == Purpose.GOLD]
    assert sorted(seen) == sorted(item.pk for item in golds)


def test_in_grid_mode_gold_comes_with_images_of_its_own_text():
    campaign = make_open_campaign(
        pairs=10, seeds=6, mode="grid", gold_rate=0.2, gold_spacing=1, min_distance=2
    )
    first = campaign.items.first().pair
    [image] = make_images([first], sides=("prompt",), first_seed=50)
    gold = make_known_item(
        campaign=campaign, candidate=image, verdict="reject", purpose="gold", now=NOW
    )
    [person] = make_annotators(1)
    for _ in range(12):
        claim = take(campaign, person, 4)
        if not claim.items:
            break
        assert len({h.item.group for h in claim.items}) == 1
        if gold.pk in {h.item.pk for h in claim.items}:
            assert len(claim.items) > 1
            return
        answer_many(campaign, person, [(h, "accept") for h in claim.items])
    pytest.fail("the gold item never came")


def test_in_grid_mode_gold_of_another_text_comes_when_the_first_texts_are_through():
    """A gold item whose text has no open image left must not keep the others from coming."""
    campaign = make_open_campaign(
        pairs=8, seeds=4, mode="grid", gold_rate=0.3, gold_spacing=1, min_distance=1
    )
    lonely = add_known(campaign, 1, purpose="gold")  # first in order, of a text without work
    bank = list({item.pair_id: item.pair for item in campaign.items.work()}.values())
    golds = [
        make_known_item(
            campaign=campaign, candidate=image, verdict="accept", purpose="gold", now=NOW
        )
        for image in make_images(bank[:4], sides=("prompt",), first_seed=50)
    ]
    [person] = make_annotators(1)
    asked = set()
    while claim := take(campaign, person, 4).items:
        assert len({h.item.group for h in claim}) == 1
        golden = [h.item.pk for h in claim if h.item.purpose == Purpose.GOLD]
        assert len(claim) > len(golden)  # never alone: it would be told apart
        asked |= set(golden)
        answer_many(campaign, person, [(h, "accept") for h in claim])
    assert len(asked & {item.pk for item in golds}) >= 3
    assert not asked & {item.pk for item in lonely}
    assert_sound(campaign)


@pytest.mark.parametrize("batch", [1, 6])
@pytest.mark.parametrize("seed", range(4))
def test_gold_keeps_the_distance_of_its_pair_too(batch, seed):
    campaign = make_open_campaign(
        pairs=30,
        seeds=2,
        seed=seed,
        min_distance=8,
        min_judgements=1,
        gold_rate=0.25,
        gold_spacing=1,
    )
    bank = list({item.pair_id: item.pair for item in campaign.items.work()}.values())
    for image in make_images(bank, sides=("prompt",), first_seed=50):
        make_known_item(
            campaign=campaign, candidate=image, verdict="accept", purpose="gold", now=NOW
        )
    [person] = make_annotators(1)
    screens = []
    for _ in range(100 // batch):
        claim = take(campaign, person, batch).items
        screens += [(h.item.pair_id, h.item.purpose) for h in claim]
        answer_many(campaign, person, [(h, "accept") for h in claim])
    assert sum(purpose == Purpose.GOLD for _, purpose in screens) >= 15
    assert smallest_gap([pair for pair, _ in screens]) >= 8
    assert_sound(campaign)


@pytest.mark.field_case(25)
def test_a_failed_check_counts_once_however_often_it_is_sent():
    campaign = make_open_campaign(pairs=30, gold_rate=1.0, gold_spacing=1, gold_minimum=5)
    add_known(campaign, 3, purpose="gold")
    page = Page(campaign)
    row = None
    while row is None:
        for item in page.claim(1)["items"]:
            gold = campaign.items.filter(key=item["item"], purpose="gold").exists()
            row = page.row(item, "reject") if gold else None
            page.post("answers", {"answers": [row or page.row(item)]})
    for _ in range(5):
        page.post("answers", {"answers": [row]})
    person = Participation.objects.get(campaign=campaign)
    assert (person.gold_seen, person.gold_correct) == (1, 0)
    page.post(
        "answers", {"answers": [{**row, "client_key": str(uuid.uuid4()), "verdict": "accept"}]}
    )
    person.refresh_from_db()
    assert (person.gold_seen, person.gold_correct) == (1, 1)
    assert_sound(campaign)


def test_below_the_threshold_a_person_is_paused_and_their_work_asked_again_until_reinstated():
    campaign = make_open_campaign(
        pairs=40, min_judgements=1, gold_rate=0.3, gold_spacing=2, gold_minimum=3
    )
    add_known(campaign, 12, purpose="gold")
    [person] = make_annotators(1)
    admin = make_user("admin")
    order, claim = work_through(campaign, person, 60, gold="reject")
    assert claim.state == "paused"
    work = order.count(False)
    assert order.count(True) == 3
    row = Participation.objects.get(campaign=campaign, annotator=person)
    assert row.paused_at is not None
    assert Judgement.objects.counted(campaign).count() == 0
    assert campaign.items.incomplete().count() == 80
    assert_sound(campaign)
    back = resume_person(participation=row, actor=admin, reinstate=True, now=later(9))
    assert back == work
    assert Judgement.objects.counted(campaign).count() == work
    assert_sound(campaign)
    assert take(campaign, person, 1, at=10).state == "items"


def test_where_others_filled_the_place_a_reinstated_answer_is_surplus():
    campaign = make_open_campaign(pairs=1, min_judgements=1)
    anna, bert = make_annotators(2)
    admin = make_user("admin")
    answer_many(campaign, anna, [(h, "accept") for h in take(campaign, anna, 2).items])
    row = Participation.objects.get(annotator=anna)
    assert pause_person(participation=row, reason="", actor=admin, set_aside=True, now=NOW) == 2
    [first, _] = take(campaign, bert, 2, at=1).items
    answer(campaign, bert, first, "reject", at=2)
    resume_person(participation=row, actor=admin, reinstate=True, now=later(3))
    # One place is filled, the other is in Bert's hands: none of Anna's answers counts again.
    assert set(Judgement.objects.filter(annotator=anna).values_list("surplus", flat=True)) == {True}
    assert Judgement.objects.counted(campaign).count() == 1
    assert_sound(campaign)


@pytest.mark.field_case(2)
def test_a_surplus_answer_does_not_move_up_when_a_place_is_free_again():
    """docs/decisions/0005: the place goes to somebody who has not judged the item."""
    campaign = make_open_campaign(pairs=1, min_judgements=1, lease_seconds=60)
    anna, bert, cleo = make_annotators(3)
    late = take(campaign, anna, 2).items[0]
    expire_leases(now=later(61))
    held = {h.item.pk: h for h in take(campaign, bert, 2, at=62).items}
    answer(campaign, bert, held[late.item.pk], "reject", at=63)
    answer(campaign, anna, late, "accept", at=64)
    row = Participation.objects.get(annotator=bert)
    pause_person(
        participation=row, reason="", actor=make_user("admin"), set_aside=True, now=later(70)
    )
    counted = Judgement.objects.counted(campaign).filter(item=late.item)
    assert counted.count() == 0
    assert late.item.pk not in {h.item.pk for h in take(campaign, anna, 2, at=71).items}
    asked = {h.item.pk: h for h in take(campaign, cleo, 2, at=72).items}
    answer(campaign, cleo, asked[late.item.pk], "accept", at=73)
    assert [(row.annotator, row.verdict) for row in counted] == [(cleo, "accept")]
    assert Judgement.objects.get(annotator=anna, item=late.item).surplus
    assert_sound(campaign)


def test_gold_never_enters_the_count_and_leaves_the_job():
    campaign = make_open_campaign(pairs=3)
    item = campaign.items.first()
    make_known_item(
        campaign=campaign,
        candidate=item.candidate,
        verdict="accept",
        purpose="gold",
        now=NOW,
    )
    assert campaign.items.work().count() == 5
    held = take(campaign, make_annotators(1)[0], 5).items
    with pytest.raises(KnownItemError, match="were given"):
        make_known_item(
            campaign=campaign,
            candidate=held[0].item.candidate,
            verdict="accept",
            purpose="gold",
            now=NOW,
        )
    with pytest.raises(KnownItemError, match="accept or reject"):
        make_known_item(
            campaign=campaign,
            candidate=item.candidate,
            verdict="unsure",
            purpose="gold",
            now=NOW,
        )


def test_the_arithmetic_of_gold():
    assert next_gold(after=3, rate=0, spacing=5, seed=1, person=1) == 0
    gaps = [next_gold(after=n, rate=0.1, spacing=5, seed=1, person=2) - n for n in range(2000)]
    assert min(gaps) >= 5
    assert 9.5 < sum(gaps) / len(gaps) < 10.5
    assert {next_gold(after=0, rate=0.5, spacing=9, seed=1, person=p) for p in range(9)} == {9}
    assert below_threshold(seen=5, correct=3, minimum=5, threshold=0.7)
    assert not below_threshold(seen=4, correct=0, minimum=5, threshold=0.7)
    assert not below_threshold(seen=10, correct=7, minimum=5, threshold=0.7)


# --- training --------------------------------------------------------------------------------


@pytest.fixture
def school():
    """Consent, guideline, two practice items, a quiz of two per category."""
    campaign = make_open_campaign(
        pairs=10,
        consent_text=publish_consent_text(version="c1", body="We keep your answers."),
        guideline=publish_guideline(version="g1", body="Look at the words."),
        practice_items=2,
        quiz_items=2,
        quiz_pass_mark=0.6,
    )
    make_images(make_pairs(3, "action"))
    campaign = edit_campaign(campaign=campaign, actor=None)
    open_items(campaign=campaign)
    add_known(campaign, 3, purpose="training", verdict="reject", explanation="There are two.")
    for category in ("counting", "action"):
        add_known(campaign, 3, purpose="training", is_quiz=True, category=category)
    return campaign


def begin(campaign, page):
    person = Participation.objects.get(campaign=campaign, annotator=page.user)
    give_consent(participation=person, version="c1", now=NOW)
    read_guideline(participation=person, version="g1", now=NOW)


@pytest.mark.field_case(23)
def test_the_order_of_the_stages_is_the_servers(school):
    page = Page(school)
    assert page.get("session").json()["stage"] == "consent"
    assert page.claim(3) | {"progress": 0} == {
        "state": "stage",
        "retry_at": None,
        "stage": "consent",
        "items": [],
        "progress": 0,
    }
    assert page.client.get(f"/annotate/{school.slug}/").url.endswith("/consent/")
    assert page.client.get(f"/annotate/{school.slug}/guideline/").status_code == 302
    person = Participation.objects.get(campaign=school)
    read_guideline(participation=person, version="g1", now=NOW)
    assert page.get("session").json()["stage"] == "consent"
    begin(school, page)
    assert page.get("session").json()["stage"] == "practice"


def test_practice_tells_what_was_right_and_the_quiz_tells_nothing(school):
    page = Page(school)
    page.get("session")
    begin(school, page)
    first, second = page.claim(5)["items"]
    assert "explanation" not in first
    wrong = page.answer(first, "accept")
    assert wrong["feedback"] == {"correct": False, "explanation": "There are two."}
    assert page.answer(second, "reject")["feedback"]["correct"] is True
    assert page.get("session").json()["stage"] == "quiz"
    items = page.claim(10)["items"]
    assert len(items) == 4
    assert "feedback" not in page.answer(items[0], "accept")


def test_passing_one_category_opens_that_category_only(school):
    page = Page(school)
    page.get("session")
    begin(school, page)
    for item in page.claim(5)["items"]:
        page.answer(item)
    for item in page.claim(10)["items"]:
        page.answer(item, "accept" if item["category"] == "Counting" else "reject")
    assert page.get("session").json()["stage"] == "work"
    rows = dict(Qualification.objects.values_list("category", "passed"))
    assert rows == {"counting": True, "action": False}
    assert {item["category"] for item in page.claim(30)["items"]} == {"Counting"}


@pytest.mark.field_case(24)
def test_a_reload_gives_no_second_try_and_the_first_answer_stands(school):
    page = Page(school)
    page.get("session")
    begin(school, page)
    for item in page.claim(5)["items"]:
        page.answer(item)
    items = page.claim(10)["items"]
    page.answer(items[0], "reject")
    again = page.answer(items[0], "accept")
    assert again["status"] == "conflict"
    assert items[0]["item"] not in {i["item"] for i in page.claim(10)["items"]}
    for item in items[1:]:
        page.answer(item, "reject")
    assert page.get("session").json()["stage"] == "ended"
    assert page.claim(3)["state"] == "stage"
    assert Participation.objects.get(campaign=school).failed_at is not None
    assert not Qualification.objects.filter(passed=True).exists()


def test_a_new_guideline_is_shown_again_and_training_is_not_repeated(school):
    page = Page(school)
    page.get("session")
    begin(school, page)
    for n in (5, 10):
        for item in page.claim(n)["items"]:
            page.answer(item, "accept")
    assert page.get("session").json()["stage"] == "work"
    new = publish_guideline(version="g2", body="Look twice.")
    edit_campaign(campaign=school, actor=None, guideline=new)
    assert page.get("session").json()["stage"] == "guideline"
    person = Participation.objects.get(campaign=school)
    assert not read_guideline(participation=person, version="g1", now=NOW)
    person = Participation.objects.get(campaign=school)
    read_guideline(participation=person, version="g2", now=NOW)
    item = page.claim(1)["items"][0]
    page.answer(item)
    assert Judgement.objects.latest("id").guideline_version == "g2"


def test_a_campaign_that_asks_for_more_training_than_there_is_goes_on():
    campaign = make_open_campaign(pairs=3, practice_items=5, quiz_items=5)
    page = Page(campaign)
    assert page.get("session").json()["stage"] == "practice"
    assert page.claim(3)["state"] == "stage"
    assert page.claim(3)["state"] == "stage"
    assert page.claim(3)["state"] == "items"
