"""The rules of a prompt bank, one broken at a time."""

from __future__ import annotations

import dataclasses

import pytest

from croc_annotate.prompts import rules
from croc_annotate.prompts.rules import PairRow, check_bank, check_pair, normalised

GOOD = PairRow(
    slug="counting_7",
    category="counting",
    prompt="three red apples on a plate",
    contrast="four red apples on a plate",
    place="line 3",
)


def problems(**changes: str) -> list[str]:
    return [str(problem) for problem in check_pair(dataclasses.replace(GOOD, **changes))]


def test_a_good_pair_has_no_problems() -> None:
    assert check_pair(GOOD) == []


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"category": "colour"}, "line 3: category: “colour” is not a category"),
        ({"category": "spacial_relation"}, "is not a category"),
        ({"slug": "count_7"}, "must be “counting_”"),
        ({"slug": "counting7"}, "must be “counting_”"),
        ({"slug": "counting_"}, "must be “counting_”"),
        ({"slug": "counting_7/../x"}, "letters, digits"),
        ({"slug": "counting_7___a"}, "letters, digits"),
        ({"slug": "counting_" + "7" * 80}, "has 89 characters"),
        ({"prompt": ""}, "line 3: prompt: is empty"),
        ({"contrast": "  "}, "line 3: contrast: is empty"),
        ({"contrast": "…!"}, "has no words"),
        ({"contrast": "Three  red apples, on a PLATE."}, "says the same as the prompt"),
        ({"prompt": "caf\u00e9", "contrast": "cafe\u0301"}, "says the same as the prompt"),
        ({"prompt": "two\ncats"}, "control character (U+000A) at character 4"),
        ({"prompt": "two\tcats"}, "control character (U+0009)"),
        ({"prompt": "two\u2028cats"}, "line separator"),
        ({"prompt": "two \ud800 cats"}, "unpaired surrogate"),
        ({"prompt": "x" * 1001}, "has 1,001 characters; 1,000 are allowed"),
        ({"contrast": "None"}, "tables read as a missing value"),
        ({"topic": "NA"}, "line 3: topic: is “NA”"),
        ({"category": "negation", "slug": "negation_1"}, "alt_contrast: is required for negation"),
        ({"alt_contrast": "Three red apples on a plate!"}, "its images would show the prompt"),
    ],
)
def test_a_broken_rule_is_named_with_its_place(changes: dict[str, str], expected: str) -> None:
    found = problems(**changes)
    assert any(expected in problem for problem in found), found
    assert all(problem.startswith("line 3: ") for problem in found)


def test_any_script_sign_or_quote_is_a_fine_text() -> None:
    texts = [
        '=1+1 "apples", [and] {pears}',
        "שלושה תפוחים",
        "ثلاث تفاحات",
        "三个红苹果",
        "👩‍🚀 on a 🛥️",
    ]
    for text in texts:
        assert problems(prompt=text) == [], text


def test_missing_words_are_exactly_those_of_pandas() -> None:
    parsers = pytest.importorskip("pandas._libs.parsers")
    assert parsers.STR_NA_VALUES == rules.MISSING_WORDS


def test_no_category_name_begins_another() -> None:
    names = rules.CATEGORIES
    assert not [(a, b) for a in names for b in names if a != b and a.startswith(b)]


def test_ids_are_compared_whole() -> None:
    one = dataclasses.replace(GOOD, slug="counting_1", place="line 1")
    ten = dataclasses.replace(GOOD, slug="counting_10", place="line 2")
    assert check_bank([one, ten]) == []
    again = dataclasses.replace(GOOD, slug="counting_1", place="line 9")
    assert [str(p) for p in check_bank([one, ten, again])] == [
        "line 9: id: “counting_1” is used twice, first at line 1"
    ]


def test_normalisation_drops_case_spacing_punctuation_and_composition() -> None:
    assert normalised("  A  Dog’s “ball”, \u00e9! ") == normalised("a dog's  ball  e\u0301")
    assert normalised("2 > 1") != normalised("2 < 1")
