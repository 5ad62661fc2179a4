"""Reasons of the arithmetic, which knows no languages, on a German page.

German pages write numbers as charts and files do (`croc_annotate/lib/formats/de`).
"""

from __future__ import annotations

import numpy as np
import pytest
from django.utils.translation import override

from croc_annotate.benchmark import intervals
from croc_annotate.lib.bootstrap import percentile_interval
from croc_annotate.lib.reasons import reason_text

MIN = intervals.MIN_COMPONENTS


def of_draws(values: list[float]) -> str:
    return percentile_interval(np.array(values), clusters=5).reason


@pytest.mark.parametrize(
    ("reason", "german"),
    [
        (of_draws([np.nan] * 1500 + [0.5]), "in 1,500 von 1,501 Ziehungen nicht definiert"),
        (of_draws([0.5] * 10), "jede Ziehung ergab denselben Wert"),
        (intervals._too_few(3), f"3 unabhängige Paare; ein Intervall braucht {MIN}"),
        (
            intervals._too_few_in_one(2),
            f"eine Kategorie hat nur 2 unabhängige Paare; ein Intervall braucht in jeder {MIN}",
        ),
        (
            intervals._too_few_in_one(1),
            f"eine Kategorie hat nur 1 unabhängiges Paar; ein Intervall braucht in jeder {MIN}",
        ),
        (
            intervals._too_few_in_one(0),
            f"eine Kategorie hat keine unabhängigen Paare; ein Intervall braucht in jeder {MIN}",
        ),
    ],
)
def test_a_reason_is_german_for_german_readers(reason, german):
    with override("de"):
        assert reason_text(reason) == german
    with override("en"):
        assert reason_text(reason).replace(",", "") == reason


def test_no_reason_and_unknown_words_stay_as_they_are():
    with override("de"):
        assert reason_text("") == ""
        assert reason_text("the metric says: 3 of 4") == "the metric says: 3 of 4"
