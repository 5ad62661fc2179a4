"""correlate against SciPy's values, and the tie calibration against plain loops."""

from __future__ import annotations

import itertools
import json
from io import StringIO

import numpy as np
import pytest
from django.core.management import CommandError, call_command
from hypothesis import given, settings
from hypothesis import strategies as st

from croc_annotate.benchmark.correlation import kendall_tau_b, pairwise_accuracy, pearson


def correlate(path, **options):
    out = StringIO()
    call_command("correlate", str(path), json=True, stdout=out, **options)
    return json.loads(out.getvalue())["metrics"]


def test_tifa_correlations_equal_scipys(real_data):
    folder = real_data / "tifa_real"
    expected = json.loads((folder / "expected.json").read_text())["human_correlation"]
    found = correlate(folder / "published_scores.json", draws=0)
    assert set(found) == set(expected)
    for metric, values in expected.items():
        for key, value in values.items():
            assert found[metric][key] == pytest.approx(value, abs=1e-9)


def test_the_worked_example_of_ties():
    human, metric = np.array([3.0, 3, 4, 5]), np.array([0.2, 0.2, 0.5, 0.5])
    assert kendall_tau_b(human, metric) == pytest.approx(0.8944271909999159)
    assert pairwise_accuracy(human, metric).accuracy == pytest.approx(5 / 6)


def test_a_constant_side_has_no_correlation():
    assert kendall_tau_b(np.ones(4), np.arange(4.0)) is None
    assert pearson(np.arange(4.0), np.ones(4)) is None


grades = st.lists(
    st.tuples(st.integers(1, 5), st.sampled_from([0.0, 0.1, 0.15, 0.4, 0.8])), min_size=2,
    max_size=9,
)  # fmt: skip


@given(rows=grades)
@settings(max_examples=100, deadline=None)
def test_tie_calibration_equals_trying_every_threshold(rows):
    pairs = list(itertools.combinations(rows, 2))

    def accuracy(epsilon):
        right = 0
        for (h1, m1), (h2, m2) in pairs:
            human = np.sign(h1 - h2)
            metric = 0 if abs(m1 - m2) <= epsilon else np.sign(m1 - m2)
            right += human == metric
        return right / len(pairs)

    thresholds = {0.0, *(abs(a[1] - b[1]) for a, b in pairs)}
    human, metric = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    found = pairwise_accuracy(human, metric)
    assert found.accuracy == pytest.approx(max(accuracy(e) for e in thresholds))
    assert found.accuracy == pytest.approx(accuracy(found.epsilon))
    assert found.at_zero == pytest.approx(accuracy(0.0))


def test_genai_bench_files_are_read_with_scores_and_skills(tmp_path):
    grades = {
        "0001": {"prompt": "a cat", "models": {"A": [5, 4, 5], "B": [1, 2, 1]}},
        "0002": {"prompt": "two dogs", "models": {"A": [3, 3, 3], "B": [4, 4, 5]}},
    }
    scores = {"m": {"0001/A": 0.9, "0001/B": 0.1, "0002/A": 0.4, "0002/B": None}}
    (tmp_path / "genai.json").write_text(json.dumps(grades))
    (tmp_path / "scores.json").write_text(json.dumps(scores))
    (tmp_path / "skills.json").write_text(json.dumps({"counting": ["0002"], "basic": ["0001"]}))
    found = correlate(
        tmp_path / "genai.json", scores=tmp_path / "scores.json",
        skills=tmp_path / "skills.json", draws=20,
    )["m"]  # fmt: skip
    assert (found["n"], found["missing"]) == (3, 1)
    assert found["kendall_tau_b"] == 1.0
    assert found["skills"]["basic"]["n"] == 2
    assert found["within_prompt"]["n_spearman"] == 1


def test_a_file_of_another_form_is_refused(tmp_path):
    (tmp_path / "a.json").write_text(json.dumps({"k": {"text": "x", "score": 1.0}}))
    with pytest.raises(CommandError, match="neither human_avg nor human_scores"):
        correlate(tmp_path / "a.json")
