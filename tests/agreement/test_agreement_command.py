"""`manage.py agreement`: the table, the JSON document, and what it says when it cannot."""

from __future__ import annotations

import json
from io import StringIO

import numpy as np
import pytest
from django.core.management import CommandError, call_command

from croc_annotate.agreement import coefficients as c
from tests.agreement.rows import judged_campaign
from tests.factories import make_campaign

pytestmark = pytest.mark.django_db


def agreement(*arguments) -> str:
    out = StringIO()
    call_command("agreement", *arguments, stdout=out)
    return out.getvalue()


def as_json(*arguments) -> dict:
    return json.loads(agreement("--json", *arguments))


def test_the_json_document_has_the_promised_keys_and_the_right_values():
    judged_campaign(["aaa", "aar", "rru", "au", "ar"], categories=["counting"] * 3 + ["action"] * 2)
    found = as_json("--by", "category")
    row = found["all"]
    assert (row["items"], row["items_with_two"], row["judgements"], row["raters"]) == (5, 4, 13, 3)
    accept, reject = np.array([3, 2, 0, 1]), np.array([0, 1, 2, 1])
    assert row["raw_agreement"] == pytest.approx(c.raw_agreement(accept, reject).value)
    assert row["krippendorff_alpha"] == pytest.approx(c.krippendorff_alpha(accept, reject).value)
    assert row["gwet_ac1"] == pytest.approx(c.gwet_ac1(accept, reject).value)
    assert row["prevalence_accept"] == pytest.approx(6 / 10)
    assert row["unsure_share"] == pytest.approx(2 / 13)
    assert row["fleiss_kappa"] is None
    assert "different numbers" in row["undefined"]["fleiss_kappa"]
    assert "two raters" in row["undefined"]["cohen_kappa"]
    assert set(found["by"]["category"]) == {"counting", "action"}
    assert found["by"]["category"]["action"]["items_with_two"] == 1


def test_intervals_enclose_the_value_and_depend_on_the_seed_only():
    words = ["aa", "ar", "rr", "aa", "rr", "ra"] * 8
    judged_campaign(words, min_judgements=2)
    row = as_json()["all"]
    interval = row["intervals"]["krippendorff_alpha"]
    assert interval["low"] < row["krippendorff_alpha"] < interval["high"]
    assert (interval["draws"], interval["undefined_draws"], interval["pairs"]) == (1000, 0, 48)
    assert as_json() == as_json()
    assert as_json("--seed", "2")["all"]["intervals"] != row["intervals"]


def test_own_and_other_texts_are_never_mixed():
    judged_campaign(["aaa", "rrr", "rrr"], roles=["own", "other", "other"])
    found = as_json("--by", "text_role")
    assert found["all"]["items"] == 1
    assert found["other"]["all"]["items"] == 2
    assert found["by"]["text_role"]["other"] == found["other"]["all"]


def test_an_adaptive_campaign_counts_the_first_two_votes_only():
    judged_campaign(["aa", "arrr", "aua", "ra.aa"], redundancy="adaptive")
    row = as_json()["all"]
    assert row["judgements"] == 13
    accept, reject = np.array([2, 1, 2, 1]), np.array([0, 1, 0, 1])
    assert row["krippendorff_alpha"] == pytest.approx(c.krippendorff_alpha(accept, reject).value)
    assert row["fleiss_kappa"] is not None


@pytest.mark.parametrize(
    "part", ["category", "side", "generator", "annotator_pair", "week", "guideline_version", "mode"]
)
def test_every_part_counts_each_judgement_where_it_belongs(part):
    judged_campaign(["aar", "arr", "aaa", "rrr"])
    found = as_json("--by", part)
    rows = found["by"][part].values()
    judgements = 24 if part == "annotator_pair" else 12  # three pairs of people, two answers each
    assert sum(row["judgements"] for row in rows) == judgements
    assert all(row["raters"] == (2 if part == "annotator_pair" else 3) for row in rows)


def test_two_annotators_get_cohens_kappa_as_a_pair_and_as_a_whole():
    judged_campaign(["aa", "ar", "rr", "aa", "rr", "a.", "u.r"][:6])
    found = as_json("--by", "annotator_pair")
    (pair,) = found["by"]["annotator_pair"].values()
    expected = c.cohen_kappa(
        np.array([1, 1, 0, 1, 0], np.int8), np.array([1, 0, 0, 1, 0], np.int8)
    ).value
    assert found["all"]["cohen_kappa"] == pytest.approx(expected)
    assert pair["cohen_kappa"] == pytest.approx(expected)
    assert pair["items"] == 5


@pytest.mark.field_case(31)
def test_undefined_values_are_null_with_a_reason_in_words():
    judged_campaign(["aa", "aa"])
    text = agreement("--json")
    assert "NaN" not in text
    row = json.loads(text)["all"]
    assert row["raw_agreement"] == 1.0
    assert row["krippendorff_alpha"] is None
    assert row["cohen_kappa"] is None
    assert "all votes are equal" in row["undefined"]["krippendorff_alpha"]
    assert row["intervals"]["raw_agreement"]["reason"] == "every draw gave the same value"


@pytest.mark.field_case(33)
def test_two_people_who_never_agree_get_the_lowest_values():
    judged_campaign(["ar", "ra"] * 5, min_judgements=2)
    row = as_json()["all"]
    assert row["raw_agreement"] == 0.0
    assert row["gwet_ac1"] == -1.0
    assert row["krippendorff_alpha"] < 0


def test_the_table_names_campaign_counts_and_time_in_its_last_line():
    judged_campaign(["aa", "ar"], slug="main")
    lines = agreement("--by", "category").strip().splitlines()
    assert lines[-1].startswith("main: 4 judgements of 2 items by 2 people in ")
    assert any(line.startswith("category counting") for line in lines)


def test_without_a_campaign_or_with_several_it_says_what_to_do():
    with pytest.raises(CommandError, match="no campaign yet"):
        agreement()
    make_campaign(slug="one")
    make_campaign(slug="two")
    with pytest.raises(CommandError, match=r"several campaigns.*one, two"):
        agreement()
    with pytest.raises(CommandError, match="No campaign “three”"):
        agreement("--campaign", "three")


def test_an_unknown_part_is_a_wrong_call():
    make_campaign()
    with pytest.raises(CommandError, match="unknown part 'colour'"):
        agreement("--by", "colour")
