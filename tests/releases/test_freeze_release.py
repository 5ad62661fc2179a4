from __future__ import annotations

import json

import pytest
from django.core.management import CommandError, call_command
from django.db import DatabaseError, IntegrityError, connection, transaction

from croc_annotate.agreement.models import Adjudication
from croc_annotate.candidates.models import Candidate
from croc_annotate.prompts.models import ContrastPair
from croc_annotate.releases.models import Release, ReleaseAnnotation, ReleaseMember, ReleasePair
from croc_annotate.releases.reasons import REASONS, reason_for
from croc_annotate.releases.sealing import BrokenSealError, check_seal, content_sha256
from croc_annotate.releases.selectors import (
    ReleaseNotFoundError,
    find_release,
    release_pairs,
    scored_members,
)
from croc_annotate.releases.services import (
    ReleaseRefusedError,
    freeze_release,
    next_version,
    set_visibility,
    withdraw_release,
)
from tests.releases.world import ALL_ACCEPT, ALL_REJECT, NOW, full_world, make_world

pytestmark = pytest.mark.django_db


@pytest.fixture
def mixed():
    """One candidate of each reason."""
    world = make_world()
    pair = world.pair("counting_7")
    world.verified(pair)
    world.judge(world.candidate(pair), ALL_REJECT)
    world.judge(world.candidate(pair), ("accept", "reject", "unsure"))
    world.judge(world.candidate(pair), ("accept",))
    world.candidate(pair)
    world.candidate(pair, state="failed")
    world.candidate(pair, state="requested")
    retired = world.pair("counting_8", active=False)
    world.verified(retired)
    return world


def test_counts_by_reason_add_up_to_all_candidates(mixed):
    release = freeze_release(name="r", campaign=mixed.campaign)

    assert release.counts == {
        "verified": 1, "rejected": 1, "disputed": 1, "too_few": 2, "other_undecided": 0,
        "other_unjudged": 0, "failed": 1, "not_rendered": 1, "inactive": 1,
    }  # fmt: skip
    assert sum(release.counts.values()) == Candidate.objects.count()
    assert release.members.count() == Candidate.objects.count()


def test_a_tie_is_disputed_until_a_reviewer_decides(mixed):
    pair = ContrastPair.objects.get(slug="counting_7")
    tied = mixed.candidate(pair)
    mixed.judge(tied, ("accept", "reject"))

    before = freeze_release(name="r", campaign=mixed.campaign, min_judgements=2)
    assert before.members.get(candidate=tied).reason == "disputed"

    Adjudication.objects.create(
        campaign=mixed.campaign, candidate=tied, reviewer=mixed.people[0], verdict="accept",
        reason="clear", created_at=NOW,
    )  # fmt: skip
    after = freeze_release(name="r", version="1.1.0", campaign=mixed.campaign, min_judgements=2)
    member = after.members.get(candidate=tied)
    assert (member.reason, member.verified_by) == ("verified", "adjudicated")
    assert before.members.get(candidate=tied).reason == "disputed"


def test_unanimous_wants_all_votes(mixed):
    pair = ContrastPair.objects.get(slug="counting_7")
    row = mixed.candidate(pair)
    mixed.judge(row, ("accept", "accept", "reject"))

    majority = freeze_release(name="a", campaign=mixed.campaign)
    unanimous = freeze_release(name="b", campaign=mixed.campaign, rule="unanimous")

    assert majority.members.get(candidate=row).reason == "verified"
    assert unanimous.members.get(candidate=row).reason == "disputed"


def test_exclusive_wants_the_other_text_rejected():
    world = make_world(cross_rate=1.0)
    pair = world.pair("shapes_1")
    good, both, open_, unasked, pending = (world.verified(pair) for _ in range(5))
    world.judge(good, ALL_REJECT, role="other")
    world.judge(both, ALL_ACCEPT, role="other")
    world.judge(open_, ("accept",), role="other")
    world.judge(pending, (), role="other")

    release = freeze_release(name="r", campaign=world.campaign, exclusive=True)

    reasons = {m.candidate_id: m.reason for m in release.members.all()}
    assert reasons[good.pk] == "verified"
    assert reasons[both.pk] == "rejected"
    assert reasons[open_.pk] == "other_undecided"
    assert reasons[unasked.pk] == reasons[pending.pk] == "other_unjudged"


@pytest.mark.parametrize("reason", REASONS)
def test_each_reason_can_be_reached(reason):
    cases = {
        "verified": {"own": "accepted"}, "rejected": {"own": "rejected"},
        "disputed": {"own": "disputed"}, "too_few": {"own": "pending"},
        "other_undecided": {"own": "accepted", "other": "disputed", "exclusive": True},
        "other_unjudged": {"own": "accepted", "exclusive": True},
        "failed": {"candidate_state": "failed", "own": "accepted"},
        "not_rendered": {"candidate_state": "requested"},
        "inactive": {"pair_active": False, "own": "accepted"},
    }  # fmt: skip
    values = {
        "pair_active": True, "candidate_state": "rendered", "own": None, "other": None,
        "other_judgements": 3, "exclusive": False,
    }  # fmt: skip
    assert reason_for(**{**values, **cases[reason]}) == reason


def test_judgements_are_copied_under_pseudonyms(mixed):
    release = freeze_release(name="r", campaign=mixed.campaign)

    rows = list(ReleaseAnnotation.objects.filter(release=release))
    assert len(rows) == 3 + 3 + 3 + 1 + 3
    assert {row.annotator[0] for row in rows} == {"a"}
    assert not any("person" in row.annotator or "@" in row.annotator for row in rows)
    assert len({row.annotator for row in rows}) == 3


def test_surplus_and_set_aside_judgements_stay_out():
    world = make_world()
    row = world.candidate(world.pair("shapes_1"))
    world.judge(row, ALL_ACCEPT)
    row.items.update(closed_at=None)
    row.items.get().judgements.filter(annotator=world.people[0]).update(surplus=True)
    row.items.get().judgements.filter(annotator=world.people[1]).update(set_aside_at=NOW)

    release = freeze_release(name="r", campaign=world.campaign)

    assert release.annotations.count() == 1
    assert release.counts["too_few"] == 1


def test_scored_members_are_p_and_q_in_the_order_of_the_files():
    world = make_world()
    negation, action = world.pair("negation_10"), world.pair("action_2")
    earlier = world.pair("negation_9")
    q = world.verified(negation, "alt_contrast")
    never_scored = world.verified(negation, "contrast")
    p = world.verified(negation, "prompt")
    first = world.verified(action, "contrast")
    ninth = world.verified(earlier, "prompt")
    world.judge(world.candidate(action), ALL_REJECT)

    release = freeze_release(name="r", campaign=world.campaign)
    members = scored_members(release)

    assert [(m.candidate_id, m.role) for m in members] == [
        (first.pk, "contrast"), (ninth.pk, "prompt"), (p.pk, "prompt"), (q.pk, "contrast"),
    ]  # fmt: skip
    assert never_scored.pk not in {m.candidate_id for m in members}
    assert release.n_verified == 5
    assert members[0].storage_name == first.image
    assert members[0].sha256 == first.sha256


def test_pairs_without_images_stay_in(mixed):
    release = freeze_release(name="r", campaign=mixed.campaign)
    assert [pair.slug for pair in release_pairs(release)] == ["counting_7"]

    bare = mixed.pair("action_3")
    mixed.candidate(bare, state="requested")
    later = freeze_release(name="r", version="2.0.0", campaign=mixed.campaign)
    assert [pair.slug for pair in release_pairs(later)] == ["action_3", "counting_7"]


@pytest.mark.parametrize(
    "change",
    [
        lambda r: Release.objects.filter(pk=r.pk).update(name="other"),
        lambda r: Release.objects.filter(pk=r.pk).update(counts={}),
        lambda r: Release.objects.filter(pk=r.pk).update(sealed=False),
        lambda r: ReleaseMember.objects.filter(release=r).update(reason="rejected"),
        lambda r: ReleaseMember.objects.filter(release=r).delete(),
        lambda r: ReleasePair.objects.filter(release=r).update(position=99),
        lambda r: ReleaseAnnotation.objects.filter(release=r).update(verdict="reject"),
        lambda r: ReleaseAnnotation.objects.filter(release=r).delete(),
        lambda r: ReleasePair.objects.create(release=r, pair=ContrastPair.objects.last(), position=9),
        lambda r: Release.objects.filter(pk=r.pk)._raw_delete("default"),
    ],
    ids=["name", "counts", "unseal", "reason", "member", "order", "verdict", "annotation", "pair",
         "release"],
)  # fmt: skip
def test_the_database_refuses_to_change_a_frozen_release(mixed, change):
    release = freeze_release(name="r", campaign=mixed.campaign)
    with pytest.raises((IntegrityError, DatabaseError), match="frozen"), transaction.atomic():
        change(release)
    check_seal(Release.objects.get(pk=release.pk))


def test_a_release_can_be_shown_and_withdrawn_once(mixed):
    release = freeze_release(name="r", campaign=mixed.campaign)
    set_visibility(release=release, public=True)
    with pytest.raises(ReleaseRefusedError, match="say why"):
        withdraw_release(release=release, note="  ")
    withdraw_release(release=release, note="Two images are mislabelled.", now=NOW)
    with pytest.raises(ReleaseRefusedError, match="withdrawn already"):
        withdraw_release(release=release, note="again")
    with pytest.raises((IntegrityError, DatabaseError)), transaction.atomic():
        Release.objects.filter(pk=release.pk).update(state="frozen")
    release.refresh_from_db()
    assert (release.is_withdrawn, release.is_public) == (True, True)
    with pytest.raises(ReleaseNotFoundError):
        find_release("")
    assert find_release("r") == release


def test_a_changed_text_breaks_the_seal(mixed):
    release = freeze_release(name="r", campaign=mixed.campaign)
    check_seal(release)
    ContrastPair.objects.filter(slug="counting_7").update(prompt="changed behind everybody's back")
    with pytest.raises(BrokenSealError, match="not what was frozen"):
        check_seal(release)


def test_later_work_does_not_change_a_release(mixed):
    release = freeze_release(name="r", campaign=mixed.campaign)
    waiting = Candidate.objects.get(state="requested")
    Candidate.objects.filter(pk=waiting.pk).update(state="failed", error="too late")
    mixed.judge(mixed.candidate(ContrastPair.objects.get(slug="counting_7")), ALL_ACCEPT)
    assert content_sha256(release) == release.sha256


def test_names_and_versions_are_checked(mixed):
    for name, version in (
        ("a b", "1.0.0"),
        ("..", "1.0.0"),
        ("ok", "1"),
        ("ok", "01.0.0"),
        ("", "1.0.0"),
    ):
        with pytest.raises(ReleaseRefusedError):
            freeze_release(name=name, version=version, campaign=mixed.campaign)
    freeze_release(name="ok", campaign=mixed.campaign)
    with pytest.raises(ReleaseRefusedError, match="next --"):
        freeze_release(name="ok", campaign=mixed.campaign)
    assert next_version("ok") == "1.1.0"
    assert next_version("new") == "1.0.0"


def test_the_posterior_rule_is_refused_below_three_judgements():
    world = make_world(min_judgements=2, max_judgements=2)
    world.judge(world.candidate(world.pair("shapes_1")), ("accept", "accept"))
    with pytest.raises(ReleaseRefusedError, match="three judgements"):
        freeze_release(name="r", campaign=world.campaign, rule="posterior")
    assert not Release.objects.exists()


def test_the_fit_of_the_posterior_rule_is_frozen():
    world = full_world(pairs=1, seeds=1)
    pair = ContrastPair.objects.get(slug="counting_1")
    world.judge(world.candidate(pair), ALL_REJECT)
    world.judge(world.candidate(pair), ("accept", "reject", "reject"))
    release = freeze_release(name="r", campaign=world.campaign, rule="posterior")
    assert release.manifest["model"]["model"].startswith("two-coin")
    assert release.parameters["threshold"] == 0.95


def test_a_campaign_without_candidates_is_refused():
    world = make_world()
    with pytest.raises(ReleaseRefusedError, match="no candidates"):
        freeze_release(name="r", campaign=world.campaign)


def test_the_command_prints_counts_and_a_last_line(mixed, capsys):
    call_command("freeze_release", "croc-hum", "--rule", "unanimous", "--min-judgements", "3")
    out = capsys.readouterr().out
    assert "candidates in all" in out
    assert out.strip().splitlines()[-1].startswith("Froze croc-hum 1.0.0: 1 verified images")


def test_the_command_prints_one_json_document(mixed, capsys):
    call_command("freeze_release", "croc-hum", "--json")
    found = json.loads(capsys.readouterr().out)
    assert sum(found["counts"].values()) == found["candidates"] == Candidate.objects.count()


def test_the_command_names_the_remedy(mixed):
    with pytest.raises(CommandError, match="main"):
        call_command("freeze_release", "x", "--campaign", "nope")
    call_command("freeze_release", "croc-hum", "--json")
    call_command("freeze_release", "croc-hum", "--json")
    assert {r.version for r in Release.objects.all()} == {"1.0.0", "1.1.0"}


def test_freezing_takes_few_queries(django_assert_max_num_queries):
    world = full_world(pairs=1, seeds=2)
    with django_assert_max_num_queries(60):
        freeze_release(name="r", campaign=world.campaign)
    assert connection.vendor in {"postgresql", "sqlite"}


def test_withdrawing_and_comparing_from_the_command_line(mixed, capsys):
    freeze_release(name="r", campaign=mixed.campaign)
    mixed.verified(ContrastPair.objects.get(slug="counting_7"))
    freeze_release(name="r", version="1.1.0", campaign=mixed.campaign)

    call_command("compare_releases", "r@1.0.0", "r@1.1.0")
    assert "1 images came in, 0 went out, 1 are in both" in capsys.readouterr().out
    call_command("compare_releases", "r@1.0.0", "r@1.1.0", "--json")
    assert json.loads(capsys.readouterr().out)["moves"] == [
        {"before": "absent", "after": "verified", "n": 1}
    ]

    call_command("withdraw_release", "r@1.1.0", "--note", "Wrong rule.")
    assert find_release("r").version == "1.0.0"
    with pytest.raises(CommandError, match="withdrawn already"):
        call_command("withdraw_release", "r@1.1.0", "--note", "Again.")
    with pytest.raises(CommandError, match="there are"):
        call_command("withdraw_release", "nothing", "--note", "x")


@pytest.mark.django_db(transaction=True)
def test_of_two_who_freeze_one_name_at_once_the_second_is_told(mixed):
    from threading import Barrier, Thread

    barrier, outcomes = Barrier(2), []

    def freeze() -> None:
        barrier.wait()
        try:
            outcomes.append(freeze_release(name="same", campaign=mixed.campaign).sha256)
        except ReleaseRefusedError as error:
            outcomes.append(str(error))
        finally:
            connection.close()

    threads = [Thread(target=freeze) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert Release.objects.count() == 1
    assert sum("next" in outcome for outcome in outcomes) == 1
