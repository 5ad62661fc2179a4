"""Every coefficient against an independent library, on any table of two verdicts."""

from __future__ import annotations

import warnings

import krippendorff
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score
from statsmodels.stats.inter_rater import fleiss_kappa as statsmodels_fleiss

from croc_annotate.agreement import coefficients as c
from tests.agreement.oracles import ac1_by_gwet, counts, raw_by_pairs, verdict_tables


@st.composite
def tables(draw, *, missing=True, max_raters=6):
    """Random, sparse and degenerate tables: any share of missing values, any size."""
    n_items = draw(st.integers(1, 14))
    n_raters = draw(st.integers(1, max_raters))
    values = [-1, -1, 0, 1] if missing else [0, 1]
    alphabet = draw(st.lists(st.sampled_from(values), min_size=1, max_size=6))
    cells = draw(
        st.lists(
            st.sampled_from(alphabet), min_size=n_items * n_raters, max_size=n_items * n_raters
        )
    )
    return verdict_tables(cells, n_items, n_raters)


def same(found: c.Coefficient, expected: float | None) -> bool:
    """Both undefined (then with a reason), or equal to 1e-12."""
    if expected is None:
        return found.value is None and bool(found.reason)
    return found.value is not None and abs(found.value - expected) < 1e-12


@given(tables())
@settings(max_examples=300, deadline=None)
def test_alpha_is_that_of_the_krippendorff_package(table):
    accept, reject = counts(table)
    pairable = accept + reject >= 2
    mixed = (accept * pairable).sum() * (reject * pairable).sum() > 0
    expected = krippendorff.alpha(table, level_of_measurement="nominal") if mixed else None
    assert same(c.krippendorff_alpha(accept, reject), expected)


@given(tables())
@settings(max_examples=300, deadline=None)
def test_raw_agreement_and_ac1_are_those_of_pairwise_counting(table):
    accept, reject = counts(table)
    assert same(c.raw_agreement(accept, reject), raw_by_pairs(table))
    assert same(c.gwet_ac1(accept, reject), ac1_by_gwet(table))


@given(tables(missing=False))
@settings(max_examples=300, deadline=None)
def test_fleiss_kappa_is_that_of_statsmodels_where_votes_are_equal_in_number(table):
    accept, reject = counts(table)
    expected = None
    if table.shape[0] > 1 and len(np.unique(table)) == 2:
        expected = statsmodels_fleiss(np.stack([accept, reject], axis=1), method="fleiss")
    assert same(c.fleiss_kappa(accept, reject), expected)


def test_fleiss_kappa_says_why_when_items_have_different_numbers_of_votes():
    found = c.fleiss_kappa(np.array([2, 1]), np.array([0, 2]))
    assert found == c.Coefficient(None, "items have different numbers of votes")


def test_fleiss_kappa_ignores_items_with_a_single_vote():
    with_single = c.fleiss_kappa(np.array([2, 1, 0, 1]), np.array([0, 1, 2, 0]))
    assert with_single == c.fleiss_kappa(np.array([2, 1, 0]), np.array([0, 1, 2]))


@given(tables(max_raters=2))
@settings(max_examples=300, deadline=None)
def test_cohen_kappa_is_that_of_scikit_learn_on_the_common_items(table):
    if table.shape[0] < 2:
        table = np.vstack([table, np.full(table.shape[1], np.nan)])
    codes = np.where(np.isnan(table), -1, table).astype(np.int8)
    both = (codes >= 0).all(axis=0)
    first, second = codes[0][both], codes[1][both]
    expected = None
    if both.any() and len(np.unique(codes[:, both])) == 2:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = float(cohen_kappa_score(first, second))
    assert same(c.cohen_kappa(codes[0], codes[1]), expected)


@pytest.mark.field_case(31)
@pytest.mark.parametrize(
    ("accept", "reject"), [([3, 3, 2], [0, 0, 0]), ([1, 0, 1], [0, 1, 0]), ([], [])]
)
def test_equal_labels_or_no_overlap_are_undefined_in_words(accept, reject):
    accept, reject = np.array(accept, dtype=int), np.array(reject, dtype=int)
    alpha = c.krippendorff_alpha(accept, reject)
    assert alpha.value is None
    assert "votes" in alpha.reason
    assert c.fleiss_kappa(accept, reject).value is None


@pytest.mark.field_case(31)
def test_no_overlap_leaves_even_raw_agreement_undefined():
    found = c.raw_agreement(np.array([1, 0]), np.array([0, 1]))
    assert found == c.Coefficient(None, "no item has two votes")
    assert c.gwet_ac1(np.array([1, 0]), np.array([0, 1])) == found


@pytest.mark.field_case(32)
def test_one_disagreement_in_a_sea_of_agreement_has_high_ac1_beside_alpha_near_zero():
    accept, reject = np.array([2] * 99 + [1]), np.array([0] * 99 + [1])
    assert abs(c.krippendorff_alpha(accept, reject).value) < 0.01
    assert c.raw_agreement(accept, reject).value == pytest.approx(0.99)
    assert c.gwet_ac1(accept, reject).value > 0.98


@pytest.mark.field_case(33)
def test_two_people_who_never_agree_get_the_lowest_agreement():
    accept, reject = np.array([1] * 40), np.array([1] * 40)
    assert c.raw_agreement(accept, reject).value == 0.0
    assert c.krippendorff_alpha(accept, reject).value < 0
    assert c.gwet_ac1(accept, reject).value == -1.0


@pytest.mark.parametrize(("matches", "alpha", "ac1"), [(0.5, 0.64, 0.64), (0.99, 0.07, 0.78)])
def test_prevalence_moves_alpha_and_ac1_apart_at_equal_skill(matches, alpha, ac1):
    """Two raters who are right nine times in ten, at expected counts of 100,000 items."""
    n = 100_000
    both = matches * 0.81 + (1 - matches) * 0.01
    none = matches * 0.01 + (1 - matches) * 0.81
    sizes = [round(n * both), round(n * 0.18), round(n * none)]
    accept = np.repeat([2, 1, 0], sizes)
    reject = np.repeat([0, 1, 2], sizes)
    assert c.raw_agreement(accept, reject).value == pytest.approx(0.82, abs=0.001)
    assert c.krippendorff_alpha(accept, reject).value == pytest.approx(alpha, abs=0.01)
    assert c.gwet_ac1(accept, reject).value == pytest.approx(ac1, abs=0.01)


@given(tables(), st.randoms(use_true_random=False))
@settings(max_examples=100, deadline=None)
def test_order_of_items_and_raters_changes_nothing(table, random):
    rows, columns = list(range(table.shape[0])), list(range(table.shape[1]))
    random.shuffle(rows)
    random.shuffle(columns)
    one, two = counts(table), counts(table[rows][:, columns])
    for function in (c.raw_agreement, c.krippendorff_alpha, c.gwet_ac1, c.fleiss_kappa):
        assert same(function(*two), function(*one).value)
