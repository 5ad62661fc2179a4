"""The queue under arbitrary orders of acts: what must hold, holds after every one of them."""

from __future__ import annotations

import uuid
from collections import Counter
from dataclasses import replace

import pytest
from django.db import IntegrityError, transaction
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
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
PEOPLE, LEASE = 4, 100
people = st.integers(0, PEOPLE - 1)
numbers = st.integers(0, 9)


class QueueMachine(RuleBasedStateMachine):
    """Four people, eight items, a clock.

    The common act, taking several and answering them, is one rule, and a rule that needs something
    in the hand takes it first: else most runs would only pass by. Preconditions look at drawn acts
    alone, never at what the queue handed out, or a run could not be drawn again.
    """

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
            lease_seconds=LEASE,
            min_distance=1,
        )
        self.admin = make_user("admin")
        self.people = make_annotators(PEOPLE)
        self.hands: list[dict] = [{} for _ in self.people]
        """What each was ever handed, by item."""
        self.open: list[list] = [[] for _ in self.people]
        """Those of them that the person has not answered, skipped or given back."""
        self.sent: set[uuid.UUID] = set()
        self.clock = 0.0
        self.skipped: list[set] = [set() for _ in self.people]
        self.paused: set[int] = set()
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
        over = self._expired()
        claim, _ = claim_items(**self._who(index), count=count, now=later(self.clock))
        self.done[f"claim: {claim.state}"] += 1
        self.done["expired by a claim"] += self._expired() - over
        for handed in claim.items:
            assert handed.item.pk not in self.skipped[index]
            held_before = handed.item.pk in self.hands[index]
            # The judgement kept out of the selection is asked for whatever the reviewer said.
            lease = Assignment.objects.get(pk=handed.assignment)
            if lease.purpose == Purpose.WORK:
                assert held_before or handed.item.pk not in self.decided
            self.hands[index][handed.item.pk] = handed
            if handed.item.pk not in self.open[index]:
                self.open[index].append(handed.item.pk)
            self.done["handed out"] += 1
        if claim.items:
            assert index not in self.paused
        if claim.state == "finished":
            assert not self.campaign.items.incomplete().exists()
        if claim.state == "nothing":
            open_to_me = Item.objects.waiting().exclude(
                assignments__annotator=self.people[index],
                assignments__state__in=["leased", "answered", "skipped"],
            )
            assert not open_to_me.filter(campaign=self.campaign).exists()

    def _expired(self) -> int:
        return Assignment.objects.filter(campaign=self.campaign, state="expired").count()

    @rule(index=people, verdicts=st.lists(VERDICTS, min_size=1, max_size=4))
    def work(self, index, verdicts) -> None:
        """Answer several in one request, as the judging page does; take more where they are short."""
        if len(self.open[index]) < len(verdicts):
            self.claim(index, len(verdicts))
        mine = self.open[index][: len(verdicts)]
        self._answer(index, list(zip(mine, verdicts, strict=False)))

    @rule(index=people, other=people, verdict=VERDICTS, swept=st.booleans())
    def answer_late(self, index, other, verdict, swept) -> None:
        """The lease runs out in a person's hands, its place may be given away, then they answer."""
        if not self.open[index]:
            self.claim(index, 2)
        self.wait(LEASE + 1, swept)
        # Without the sweeper only who asks for more than there is frees what is over.
        self.claim(other, 3 if swept else 20)
        if self.open[index]:
            self._answer(index, [(self.open[index][0], verdict)])

    @rule(seconds=st.sampled_from([1, 30, LEASE + 1, 2 * LEASE]), swept=st.booleans())
    def wait(self, seconds, swept) -> None:
        """Time passes; the sweeper may come, or the next claim finds what is over."""
        self.clock += seconds
        if swept:
            self.done["expired by the sweeper"] += expire_leases(now=later(self.clock))

    @rule(index=people, verdict=VERDICTS, number=numbers)
    def correct(self, index, verdict, number) -> None:
        """Undo: another answer about something that they answered, without a lease."""
        rows = Judgement.objects.current().filter(
            annotator=self.people[index], campaign=self.campaign
        )
        mine = list(rows.select_related("item"))
        if mine:
            self._send(index, [(mine[number % len(mine)].item.key, None, verdict)])
            self.done["corrected"] += 1

    @rule(index=people, verdict=VERDICTS, number=numbers)
    def answer_anyhow(self, index, verdict, number) -> None:
        """A page that comes back from long ago: what they hold may be skipped, returned, answered."""
        if hand := list(self.hands[index]):
            self._answer(index, [(hand[number % len(hand)], verdict)])

    def _answer(self, index, given) -> None:
        answers = []
        for item, verdict in given:
            handed = self.hands[index][item]
            lease = Assignment.objects.get(pk=handed.assignment)
            overdue = lease.state == "leased" and lease.expires_at < later(self.clock)
            self.done[f"answered when {'overdue' if overdue else lease.state}"] += 1
            answers.append((handed.item.key, handed.assignment, verdict))
            if item in self.open[index]:
                self.open[index].remove(item)
        if answers:
            self._send(index, answers)

    def _send(self, index, given) -> None:
        answers = [
            Answer(
                client_key=uuid.uuid4(),
                item_key=item,
                assignment=assignment,
                verdict=verdict,
                answered_at=later(self.clock),
            )
            for item, assignment, verdict in given
        ]
        for expected in ({"stored", "conflict"}, {"duplicate"}):
            results, _ = store_answers(**self._who(index), answers=answers, now=later(self.clock))
            assert {result.status for result in results} <= expected
            self.done.update(result.status for result in results)
        self.sent |= {answer.client_key for answer in answers}

    @rule(index=people)
    def release(self, index) -> None:
        if not self.open[index]:
            self.claim(index, 2)
        held = [self.hands[index][item].assignment for item in self.open[index]]
        back = release_items(**self._who(index), assignments=held, now=later(self.clock))
        self.open[index].clear()
        self.done["returned"] += back

    @rule(index=people, number=numbers)
    def skip(self, index, number) -> None:
        if not self.open[index]:
            self.claim(index, 2)
        if not self.open[index]:
            return
        item = self.open[index].pop(number % len(self.open[index]))
        lease = self.hands[index][item].assignment
        before = Assignment.objects.get(pk=lease).state
        for _ in range(2):  # saying it again changes nothing
            skip_item(**self._who(index), assignment=lease, reason="other", now=later(self.clock))
            state = Assignment.objects.get(pk=lease).state
            assert state == ("answered" if before == "answered" else "skipped")
        if state == "skipped":
            self.skipped[index].add(item)
        self.done[f"{before}, then {state}"] += 1

    @precondition(lambda self: len(self.paused) < PEOPLE // 2)
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
            self.paused.add(index)
            self.done["paused"] += 1

    @precondition(lambda self: self.paused)
    @rule(number=numbers, back=st.booleans())
    def resume(self, number, back) -> None:
        index = sorted(self.paused)[number % len(self.paused)]
        row = Participation.objects.get(campaign=self.campaign, annotator=self.people[index])
        resume_person(participation=row, actor=self.admin, reinstate=back, now=later(self.clock))
        self.paused.remove(index)
        self.done["resumed"] += 1

    @precondition(lambda self: len(self.decided) < 3)  # else soon nothing is left to ask about
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

    @precondition(lambda self: self.decided)
    @rule(number=numbers)
    def take_back(self, number) -> None:
        """The votes decide again, and the item is asked about as before."""
        rows = list(Adjudication.objects.current().filter(campaign=self.campaign).order_by("pk"))
        row = rows[number % len(rows)]
        withdraw_adjudication(
            adjudication=row, actor=self.reviewer, note="test", now=later(self.clock)
        )
        self.done["taken back"] += 1
        self.decided -= set(
            self.campaign.items.filter(candidate=row.candidate).values_list("pk", flat=True)
        )

    @rule(index=people, verdict=VERDICTS)
    def close_for_a_while(self, index, verdict) -> None:
        """Nothing is handed out meanwhile, and what was handed out before is stored."""
        set_campaign_state(campaign=self.campaign, state="paused", actor=None)
        claim, _ = claim_items(**self._who(index), count=3, now=later(self.clock))
        assert (claim.state, claim.items) == ("paused", [])
        if self.open[index]:
            self._answer(index, [(self.open[index][0], verdict)])
            self.done["answered while closed"] += 1
        set_campaign_state(campaign=self.campaign, state="open", actor=None)

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


# How often each must take effect at least, of all that the small form does.
OFTEN = {
    "stored": 40, "duplicate": 40, "corrected": 1, "answered when leased": 25,
    "answered when expired": 5, "answered when answered": 1, "answered while closed": 1,
    "returned": 80, "expired by the sweeper": 5, "expired by a claim": 10,
    "leased, then skipped": 2, "decided": 10, "taken back": 4, "paused": 5, "resumed": 4,
    "claim: items": 60, "claim: nothing": 5, "claim: paused": 1,
}  # fmt: skip


def what_was_rare(done: Counter, *, times: int = 1) -> dict[str, int]:
    return {act: done[act] for act, least in OFTEN.items() if done[act] < least * times}


def run_machine(*, examples: int = 14, steps: int = 30, derandomize: bool = False) -> None:
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


@pytest.mark.timeout(1200)
@pytest.mark.django_db
@pytest.mark.field_case(1)
def test_the_queue_holds_its_promises_in_any_order_of_acts(monkeypatch):
    monkeypatch.setattr(QueueMachine, "done", Counter())
    run_machine(derandomize=True)
    assert what_was_rare(QueueMachine.done) == {}, QueueMachine.done


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.django_db
def test_the_queue_holds_its_promises_in_many_long_orders_of_acts(monkeypatch):
    """New orders each time; hypothesis prints the acts that led to a fault."""
    monkeypatch.setattr(QueueMachine, "done", Counter())
    run_machine(examples=300, steps=60)
    print(QueueMachine.done)
    assert what_was_rare(QueueMachine.done, times=10) == {}, QueueMachine.done


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
        Item.objects.filter(pk=lease.item_id).update(leased=held - 1 + change)
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


@pytest.mark.timeout(1200)
@pytest.mark.django_db
@pytest.mark.parametrize(("name", "fault"), PLANTED)
def test_a_planted_fault_is_found(monkeypatch, name, fault):
    """A machine that finds nothing could also be one that looks at nothing."""
    monkeypatch.setattr(f"{__name__}.{name}", fault)
    # A count below none is refused by the database itself.
    with pytest.raises((AssertionError, IntegrityError)):
        run_machine(derandomize=True)
