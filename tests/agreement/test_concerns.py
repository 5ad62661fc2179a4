"""Reasons to talk: one fact base, the same English sentence everywhere, a German one on pages."""

from __future__ import annotations

import re

import pytest
from django.utils.translation import override

from croc_annotate.agreement.concerns import SENTENCES, Concern, Usual, concerns_about
from croc_annotate.agreement.people_pages import concern_text

ROW = {
    "judgements": 3_000,
    "gold": {"value": 0.5, "low": 0.31, "high": 0.69, "part": 10, "n": 20},
    "others": {"value": 0.7, "low": 0.68, "high": 0.72, "n": 2_400},
    "accept_share": {"value": 0.9, "n": 2_400},
    "accept_share_others": 0.55,
    "median_ms": 640.0,
    "busiest_minute": 95,
    "longest_run": 41,
    "longest_run_chance": 0.0001,
    "drift": {"difference": -0.2, "n": 2_400, "error": 0.02, "first": 0.81, "last": 0.61},
    "unsure_share": 0.34,
    "suspicious_pairs": [
        {"with": "annotator-7", "equal": 1_190, "common": 1_200, "expected": 923.6, "z": 9.5}
    ],
}
USUAL = Usual(agreement=0.93, median_ms=2_349.0, unsure_share=0.02, busiest_minute=18.0)
ENGLISH = {
    "gold": "10 of 20 gold items right (50 %, interval 31 %–69 %); 80 % are asked for",
    "others": "agrees with the majority of the others in 70 % of 2,400 votes; the middle person in 93 %",
    "share": "accepts 90 % where others accept 55 % of the same items",
    "pace": "takes 0.6 s for half of the items; the middle person 2.3 s",
    "burst": "gave 95 answers within one minute; the middle person at most 18",
    "run": "gave 41 equal answers in a row, which chance makes in fewer than 1 of 1,000",
    "drift": "agreement with others fell from 81 % in the first third of the work to 61 % in the last",
    "unsure": "could not tell 34 % of the items",
    "pair": "gave the same answer as annotator-7 to 1,190 of 1,200 items; their skill explains 924",
}


@pytest.fixture
def found() -> dict[str, Concern]:
    return {one.code: one for one in concerns_about(ROW, USUAL, gold_threshold=0.8)}


def kept(concern: Concern) -> dict:
    """A reason as a snapshot keeps it."""
    return {"code": concern.code, "text": concern.text, "facts": concern.facts}


def test_commands_and_the_api_say_it_in_english(found):
    assert {code: one.text for code, one in found.items()} == ENGLISH
    with override("de"):
        assert {code: one.text for code, one in found.items()} == ENGLISH


def test_a_page_says_it_in_the_readers_language(found):
    with override("en"):
        assert {code: concern_text(kept(one)) for code, one in found.items()} == ENGLISH
    with override("de"):
        german = {code: concern_text(kept(one)) for code, one in found.items()}
    assert [code for code in ENGLISH if german[code] == ENGLISH[code]] == []
    # German pages write numbers as charts and files do (croc_annotate/lib/formats/de).
    assert german["pace"].endswith("2.3 s")
    assert "2,400 Stimmen" in german["others"]
    assert "annotator-7 bei 1,190 von 1,200" in german["pair"]
    # Nothing is left out on the way: the same numbers, in whatever order.
    for code, text in german.items():
        assert digits(text) == digits(ENGLISH[code])


def digits(text: str) -> list[str]:
    return sorted(re.sub(r"(?<=\d)[.,](?=\d)", "", text).count(d) * d for d in "0123456789")


def test_every_reason_has_a_sentence_and_a_snapshot_of_before_keeps_its_own(found):
    assert set(SENTENCES) == set(found)
    with override("de"):
        assert concern_text({"code": "run", "text": "as it was said"}) == "as it was said"
