"""The queue under arbitrary orders of acts: what must hold, holds after every one of them."""

from __future__ import annotations

import uuid
from collections import Counter
from dataclasses import replace

import pytest
from django.db import transaction
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from croc_annotate.agreement.models import Adjudication
from croc_annotate.agreement.reviewing import adjudicate, withdraw_adjudication
from croc_annotate.annotation import services
from croc_annotate.annotation.answer_shapes import Answer
from croc_annotate.annotation.checks import check_queue
from croc_annotate.annotation.models import Assignment, Item, Judgement, Participation, Purpose
from croc_annotate.annotation.services import (
    claim_items,
    expire_leases,
    pause_person,
    release_items,
    resume_person,
    set_campaign_state,
    skip_item,
    store_answers,
)
from tests.annotation.world import later, make_annotators, make_open_campaign
from tests.factories import make_user

VERDICTS = st.sampled_from(["accept", "reject", "unsure"])
PEOPLE = 4
people = st.integers(0, PEOPLE - 1)


class QueueMachine(RuleBasedStateMachine):
    """Four people, eight items, a clock."""

    done: Counter = Counter()
    """What took effect, over all runs: a machine whose acts come to nothing proves nothing."""

    @initialize(adaptive=st.booleans(), reference=st.booleans())
    def start(self, adaptive, reference) -> None:
        self.savepoint = transaction.atomic()
        self.savepoint.__enter__()
        self.campaign = make_open_campaign(
            pairs=4,
            redundancy="adaptive" if adaptive else "fixed",
            min_judgements=3 if adaptive else 2,
            max_judgements=5,
            reference_rate=1.0 if reference else 0.0,
            lease_seconds=100,
            min_distance=1,
        )
        self.admin = make_user("admin")
        self.people = make_annotators(PEOPLE)
        self.hands: list[dict] = [{} for _ in self.people]
        self.sent: set[uuid.UUID] = set()
        self.clock = 0.0
        self.served: list[Counter] = [Counter() for _ in self.people]
        self.skipped: list[set] = [set() for _ in self.people]
        self.reviewer = make_user("reviewer")
        self.decided: set[int] = set()

    def teardown(self) -> None:
        if hasattr(self, "savepoint"):
            transaction.set_rollback(True)
            self.savepoint.__exit__(None, None, None)

    def _who(self, index):
        return {"slug": self.campaign.slug, "annotator": self.people[index]}

    @rule(index=people, count=st.integers(1, 5))
    def claim(self, index, count) -> None:
        claim, _ = claim_items(**self._who(index), count=count, now=later(self.clock))
        for handed in claim.items:
            assert handed.item.pk not in self.skipped[index]
            held_before = handed.item.pk in self.hands[index]
            # The judgement kept out of the selection is asked for whatever the reviewer said.
            lease = Assignment.objects.get(pk=handed.assignment)
            if lease.purpose == Purpose.WORK:
                assert held_before or handed.item.pk not in self.decided
            self.hands[index][handed.item.pk] = handed
            self.done["handed out"] += 1
        if claim.state == "finished":
            assert not self.campaign.items.incomplete().exists()
        if claim.state == "nothing":
            open_to_me = Item.objects.waiting().exclude(
                assignments__annotator=self.people[index],
                assignments__state__in=["leased", "answered", "skipped"],
            )
            assert not open_to_me.filter(campaign=self.campaign).exists()

    @rule(index=people, verdict=VERDICTS, number=st.integers(0, 9))
    def answer(self, index, verdict, number) -> None:
        if handed := self._one_in_hand(index, number):
            self._send(index, handed.item.key, handed.assignment, verdict)

    def _one_in_hand(self, index, number):
        """Something that the person was handed, live or not; they ask first if they have nothing."""
        if not self.hands[index]:
            self.claim(index, 3)
        hand = list(self.hands[index].values())
        return hand[number % len(hand)] if hand else None

    @rule(index=people, verdict=VERDICTS, number=st.integers(0, 9))
    def correct(self, index, verdict, number) -> None:
        rows = list(
            Judgement.objects.current()
            .filter(annotator=self.people[index], campaign=self.campaign)
            .select_related("item")
        )
        if rows:
            self._send(index, rows[number % len(rows)].item.key, None, verdict)

    def _send(self, index, item, assignment, verdict) -> None:
        answer = Answer(
            client_key=uuid.uuid4(),
            item_key=item,
            assignment=assignment,
            verdict=verdict,
            answered_at=later(self.clock),
        )
        for expected in ({"stored", "conflict"}, {"duplicate"}):
            [result], _ = store_answers(**self._who(index), answers=[answer], now=later(self.clock))
            assert result.status in expected
            self.done[result.status] += 1
        self.sent.add(answer.client_key)

    @rule(index=people)
    def release(self, index) -> None:
        held = [handed.assignment for handed in self.hands[index].values()]
        back = release_items(**self._who(index), assignments=held, now=later(self.clock))
        self.done["returned"] += back

    @rule(index=people, number=st.integers(0, 9))
    def skip(self, index, number) -> None:
        handed = self._one_in_hand(index, number)
        if not handed:
            return
        before = Assignment.objects.get(pk=handed.assignment).state
        skip_item(
            **self._who(index),
            assignment=handed.assignment,
            reason="other",
            now=later(self.clock),
        )
        state = Assignment.objects.get(pk=handed.assignment).state
        if state == "skipped":
            self.skipped[index].add(handed.item.pk)
        self.done[f"{before}, then {state}"] += 1

    @rule(seconds=st.sampled_from([1, 30, 61, 200]))
    def wait(self, seconds) -> None:
        self.clock += seconds

    @rule()
    def reap(self) -> None:
        self.done["expired"] += expire_leases(now=later(self.clock))

    @rule(index=people, aside=st.booleans())
    def pause(self, index, aside) -> None:
        row = Participation.objects.filter(
            campaign=self.campaign, annotator=self.people[index], paused_at=None
        ).first()
        if row:
            pause_person(
                participation=row,
                reason="test",
                actor=self.admin,
                set_aside=aside,
                now=later(self.clock),
            )
            self.done["paused"] += 1

    @rule(index=people, back=st.booleans())
    def resume(self, index, back) -> None:
        row = Participation.objects.filter(
            campaign=self.campaign, annotator=self.people[index], paused_at__isnull=False
        ).first()
        if row:
            resume_person(
                participation=row, actor=self.admin, reinstate=back, now=later(self.clock)
            )
            self.done["resumed"] += 1

    @rule(verdict=st.sampled_from(["accept", "reject"]), number=st.integers(0, 30))
    def decide(self, verdict, number) -> None:
        """A reviewer decides an item, whether it is finished, in somebody's hands, or untouched."""
        items = list(self.campaign.items.filter(purpose=Purpose.WORK).order_by("pk"))
        item = items[number % len(items)]
        for _ in range(2):  # sent twice, as scripts do
            adjudicate(
                item=item,
                reviewer=self.reviewer,
                verdict=verdict,
                reason="clear",
                now=later(self.clock),
            )
        assert Adjudication.objects.current().filter(candidate=item.candidate).count() == 1
        self.decided.add(item.pk)
        self.done["decided"] += 1

    @rule(number=st.integers(0, 9))
    def take_back(self, number) -> None:
        """The votes decide again, and the item is asked about as before."""
        rows = list(Adjudication.objects.current().filter(campaign=self.campaign).order_by("pk"))
        if not rows:
            return
        row = rows[number % len(rows)]
        withdraw_adjudication(
            adjudication=row, actor=self.reviewer, note="test", now=later(self.clock)
        )
        self.done["taken back"] += 1
        self.decided -= set(
            self.campaign.items.filter(candidate=row.candidate).values_list("pk", flat=True)
        )

    @rule(state=st.sampled_from(["paused", "open"]))
    def switch(self, state) -> None:
        set_campaign_state(campaign=self.campaign, state=state, actor=None)

    @invariant()
    def counters_equal_the_rows(self) -> None:
        if hasattr(self, "campaign"):
            assert check_queue(self.campaign) == []

    @invariant()
    def what_is_decided_is_closed(self) -> None:
        if hasattr(self, "campaign"):
            assert not Item.objects.filter(pk__in=self.decided, closed_at=None).exists()

    @invariant()
    def never_more_than_wanted(self) -> None:
        """Counted judgements never exceed the most; with leases, corrections apart, neither."""
        if not hasattr(self, "campaign"):
            return
        counted = Counter(
            Judgement.objects.counted(self.campaign).values_list("item_id", flat=True)
        )
        policy = self.campaign.policy
        most = policy.most if policy.adaptive else policy.least
        assert max(counted.values(), default=0) <= most
        if policy.adaptive:
            return  # a correction may decide an item while others hold it
        for item in self.campaign.items.all():
            assert counted[item.pk] + item.leased <= policy.least

    @invariant()
    def nobody_twice_and_nothing_lost(self) -> None:
        if not hasattr(self, "campaign"):
            return
        rows = Judgement.objects.filter(campaign=self.campaign)
        current = rows.filter(superseded_at=None).values_list("item_id", "annotator_id")
        assert len(current) == len(set(current))
        assert set(rows.values_list("client_key", flat=True)) == self.sent
        extra = rows.current().filter(purpose=Purpose.REFERENCE, surplus=False, set_aside_at=None)
        assert max(Counter(extra.values_list("item_id", flat=True)).values(), default=0) <= 1


def run_machine(*, examples: int = 40, steps: int = 25, derandomize: bool = False) -> None:
    run_state_machine_as_test(
        QueueMachine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            database=None,
            derandomize=derandomize,
            phases=[Phase.generate],  # a fault is shown as it was found
        ),
    )


@pytest.mark.timeout(300)
@pytest.mark.django_db
@pytest.mark.field_case(1)
def test_the_queue_holds_its_promises_in_any_order_of_acts(monkeypatch):
    monkeypatch.setattr(QueueMachine, "done", Counter())
    run_machine(derandomize=True)
    done = QueueMachine.done
    assert done["handed out"] >= 100, done
    assert min(done["decided"], done["leased, then skipped"], done["returned"]) >= 5, done


@pytest.mark.soak
@pytest.mark.timeout(600)
@pytest.mark.django_db
def test_the_queue_holds_its_promises_in_many_long_orders_of_acts():
    run_machine(examples=150, steps=60)


def stores_every_answer_twice(*, answers, **values) -> object:
    renamed = [replace(answer, client_key=uuid.uuid4()) for answer in answers]
    return services.store_answers(answers=renamed, **values)


def hands_out_what_is_decided(**values) -> object:
    Item.objects.filter(closed_by_review=True).update(closed_at=None, closed_by_review=False)
    return services.claim_items(**values)


def _skip_and_miscount(*, assignment, change, **values) -> object:
    lease = Assignment.objects.get(pk=assignment)
    held = Item.objects.get(pk=lease.item_id).leased
    result = services.skip_item(assignment=assignment, **values)
    if Item.objects.get(pk=lease.item_id).leased < held:
        Item.objects.filter(pk=lease.item_id).update(leased=max(held - 1 + change, 0))
    return result


def keeps_the_place_of_a_skip(**values) -> object:
    return _skip_and_miscount(change=1, **values)


def frees_the_place_of_a_skip_twice(**values) -> object:
    return _skip_and_miscount(change=-1, **values)


PLANTED = [
    ("store_answers", stores_every_answer_twice),
    ("claim_items", hands_out_what_is_decided),
    ("skip_item", keeps_the_place_of_a_skip),
    ("skip_item", frees_the_place_of_a_skip_twice),
]


@pytest.mark.timeout(300)
@pytest.mark.django_db
@pytest.mark.parametrize(("name", "fault"), PLANTED)
def test_a_planted_fault_is_found(monkeypatch, name, fault):
    """A machine that finds nothing could also be one that looks at nothing."""
    monkeypatch.setattr(f"{__name__}.{name}", fault)
    with pytest.raises(AssertionError):
        run_machine(derandomize=True)
