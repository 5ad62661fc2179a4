from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from croc_annotate.benchmark import registry
from croc_annotate.benchmark.metric import (
    ImageInput,
    MetricError,
    MetricOptions,
    as_score,
    fingerprint,
    nested,
)

IMAGES = [ImageInput(sha256=f"{number:064x}") for number in range(500)]


def test_random_is_uniform_and_the_same_in_any_order():
    metric = registry.create("random")
    texts = [["a", "b"]] * len(IMAGES)
    scores = np.array(metric.score(images=IMAGES, texts=texts).scores)
    backwards = np.array(metric.score(images=IMAGES[::-1], texts=texts).scores)[::-1]
    np.testing.assert_array_equal(scores, backwards)
    assert stats.kstest(scores.ravel(), "uniform").pvalue > 0.001
    assert abs(np.mean(scores[:, 0] > scores[:, 1]) - 0.5) < 0.08


def test_random_with_another_seed_is_another_metric():
    one, other = (registry.create("random", options=MetricOptions(seed=seed)) for seed in (0, 1))
    assert fingerprint(one.describe()) != fingerprint(other.describe())
    texts = [["a"]] * 5
    assert (
        one.score(images=IMAGES[:5], texts=texts).scores
        != other.score(images=IMAGES[:5], texts=texts).scores
    )


def test_human_answers_with_the_held_out_vote_and_misses_where_there_is_none():
    votes = {(IMAGES[0].sha256, "a"): True, (IMAGES[0].sha256, "b"): False}
    metric = registry.create("human", options=MetricOptions(reference_votes=votes))
    batch = metric.score(images=IMAGES[:2], texts=[["a", "b", "c"], ["a"]])
    assert batch.scores == [[1.0, 0.0, None], [None]]
    assert batch.reasons == ("no reference vote",)
    assert metric.describe().ties == "half"


def test_human_without_reference_votes_says_so():
    for votes in (None, {}):
        with pytest.raises(MetricError, match="kept out of the selection"):
            registry.create("human", options=MetricOptions(reference_votes=votes))


def test_one_more_vote_is_another_human():
    few = {(IMAGES[0].sha256, "a"): True}
    more = few | {(IMAGES[1].sha256, "a"): False}
    prints = [
        fingerprint(
            registry.create("human", options=MetricOptions(reference_votes=votes)).describe()
        )
        for votes in (few, more, dict(reversed(more.items())))
    ]
    assert prints[0] != prints[1]
    assert prints[1] == prints[2]


def test_neither_opens_an_image():
    assert registry.create("random").needs == "hash"


@pytest.mark.parametrize("name", ["random"])
def test_swapped_and_flat_arguments_are_refused(name):
    """Trap 15: keyword-only, and the two sides are told apart."""
    metric = registry.create(name)
    with pytest.raises(TypeError):
        metric.score(IMAGES[:1], [["a"]])
    with pytest.raises(MetricError, match="takes ImageInput objects"):
        metric.score(images=[["a"]], texts=IMAGES[:1])
    with pytest.raises(MetricError, match="a list of texts"):
        metric.score(images=IMAGES[:1], texts=["a"])
    with pytest.raises(MetricError, match="2 images came with 1 lists of texts"):
        metric.score(images=IMAGES[:2], texts=[["a"]])


def test_not_a_number_is_a_missing_score():
    assert [as_score(value) for value in (1.5, float("nan"), float("inf"))] == [1.5, None, None]


def test_scores_are_cut_back_into_their_rows_or_refused():
    assert nested([1.0, None, 3.0], [["a", "b"], [], ["c"]]) == [[1.0, None], [], [3.0]]
    with pytest.raises(MetricError):
        nested([1.0], [["a", "b"]])


@pytest.mark.parametrize(
    ("name", "options", "sentence"),
    [
        ("random", {"extra": {"sead": "1"}}, "Metric 'random' has no option 'sead'; it has none."),
        ("random", {"prompt": "Is it {text}?"}, "Metric 'random' asks no question"),
        (
            "onnx-dual-encoder",
            {"extra": {"thread": "2"}},
            "has no option 'thread'; it has threads.",
        ),
        ("onnx-dual-encoder", {"extra": {"threads": "two"}}, "threads='two' is no whole number"),
        ("onnx-dual-encoder", {"extra": {"threads": "0"}}, "threads='0' is no whole number"),
    ],
)
def test_a_misspelt_option_is_not_passed_over(name, options, sentence):
    with pytest.raises(MetricError) as caught:
        registry.create(name, options=MetricOptions(**options))
    assert sentence in str(caught.value)
