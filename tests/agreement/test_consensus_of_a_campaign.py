"""Votes in the database become states, numbers and reasons."""

from __future__ import annotations

import numpy as np
import pytest

from croc_annotate.agreement.consensus import Rule, RuleRefusedError
from croc_annotate.agreement.selectors import campaign_consensus
from croc_annotate.agreement.services import agreement_report
from tests.agreement.rows import Judged, judged_campaign

pytestmark = pytest.mark.django_db


def states(table):
    return dict(zip(table.item_id.tolist(), table.state.tolist(), strict=True))


def test_the_campaigns_own_rule_is_used_unless_another_is_given():
    judged = judged_campaign(["aaa", "aar", "arr", "aau", "a"])
    found = campaign_consensus(campaign=judged.campaign)
    assert found.state.tolist() == ["accepted", "accepted", "rejected", "disputed", "pending"]
    assert found.verified_by.tolist() == ["majority", "majority", "majority", "", ""]
    strict = campaign_consensus(campaign=judged.campaign, rule=Rule("unanimous", 2))
    assert strict.state.tolist() == ["accepted", "disputed", "disputed", "accepted", "pending"]


def test_counts_posterior_and_completeness_stand_beside_the_state():
    judged = judged_campaign(["aaa", "aar", "aru", "", "rrr", "rra"])
    found = campaign_consensus(campaign=judged.campaign)
    assert found.n_accept.tolist() == [3, 2, 1, 0, 0, 1]
    assert found.n_reject.tolist() == [0, 1, 1, 0, 3, 2]
    assert found.n_unsure.tolist() == [0, 0, 1, 0, 0, 0]
    assert found.complete.tolist() == [True, True, True, False, True, True]
    assert np.isnan(found.posterior).tolist() == [False, False, False, True, False, False]


def test_more_accepts_mean_a_higher_posterior():
    words = ["aaa"] * 6 + ["aar", "ara", "raa"] + ["rra", "rar", "arr"] + ["rrr"] * 6
    found = campaign_consensus(campaign=judged_campaign(words).campaign)
    assert found.posterior[0] > found.posterior[6] > found.posterior[11] > found.posterior[17]


@pytest.mark.parametrize(
    "change",
    [
        {"purpose": "gold"},
        {"purpose": "training"},
        {"purpose": "reference"},
        {"surplus": True},
        {"set_aside_at": "2026-01-01T00:00:00Z"},
    ],
)
def test_only_counted_judgements_enter(change):
    judged = judged_campaign(["aar"])
    last = judged.judgements[0][2]
    type(last).objects.filter(pk=last.pk).update(**change)
    found = campaign_consensus(campaign=judged.campaign, rule=Rule("majority", 2))
    assert (found.n_accept[0], found.n_reject[0], found.state[0]) == (2, 0, "accepted")


def test_a_correction_replaces_the_answer_that_it_corrects():
    judged = judged_campaign(["aar"])
    judged.correct(item=0, rater=2, verdict="accept")
    found = campaign_consensus(campaign=judged.campaign, rule=Rule("unanimous"))
    assert (found.n_accept[0], found.state[0]) == (3, "accepted")


def test_an_adjudication_overrides_the_votes_of_its_text_only():
    judged = judged_campaign(["arr", "arr"], roles=["own", "other"], same_candidate=True)
    judged.adjudicate(item=0, verdict="accept")
    found = campaign_consensus(campaign=judged.campaign)
    assert found.text_role.tolist() == ["own", "other"]
    assert found.state.tolist() == ["accepted", "rejected"]
    assert found.verified_by.tolist() == ["adjudicated", "majority"]


def test_the_posterior_rule_is_refused_in_a_campaign_of_two_judgements():
    judged = judged_campaign(["aa", "rr", "ar"], min_judgements=2)
    with pytest.raises(RuleRefusedError, match="three judgements"):
        campaign_consensus(campaign=judged.campaign, rule=Rule("posterior"))


def test_an_empty_campaign_gives_an_empty_table_and_a_report_without_numbers():
    judged = judged_campaign([])
    assert campaign_consensus(campaign=judged.campaign).state.tolist() == []
    row = agreement_report(campaign=judged.campaign, by=["category"])["all"]
    assert (row["items"], row["raters"], row["krippendorff_alpha"]) == (0, 0, None)
    assert row["undefined"]["krippendorff_alpha"] == "no item has two votes"


def test_the_table_takes_three_queries_for_judgements_whatever_their_number(
    django_assert_max_num_queries,
):
    judged = judged_campaign(["aar"] * 30)
    with django_assert_max_num_queries(12):
        campaign_consensus(campaign=judged.campaign)


def test_a_judged_campaign_reads_back_as_it_was_made():
    judged = judged_campaign(["au", "ra"])
    assert isinstance(judged, Judged)
    assert [len(given) for given in judged.judgements] == [2, 2]
