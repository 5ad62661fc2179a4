"""Retrieval: ranks under ties, pools, and the command on a release."""

from __future__ import annotations

import itertools
import json
import zlib
from io import StringIO

import numpy as np
import pytest
from django.core.management import CommandError, call_command
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score

from croc_annotate.benchmark.retrieval import (
    merge_equal,
    nearest_neighbours,
    rank_all,
    rank_one,
    relevant_lists,
)
from tests.benchmark.fakes import Encoder
from tests.benchmark.world import small_release

values = st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=2, max_size=6)


@given(scores=values, data=st.data())
@settings(max_examples=100, deadline=None)
def test_ranks_equal_trying_every_order_of_the_ties(scores, data):
    relevant = data.draw(
        st.lists(st.integers(0, len(scores) - 1), min_size=1, unique=True).map(sorted)
    )
    ranks = [
        1 + min(order.index(r) for r in relevant)
        for order in itertools.permutations(range(len(scores)))
        if all(scores[a] >= scores[b] for a, b in itertools.pairwise(order))
    ]
    first, expected, _ = rank_one(np.array(scores), np.array(relevant))
    assert first == max(ranks)
    assert expected == pytest.approx(sum(ranks) / len(ranks))


@given(seed=st.integers(0, 10_000))
@settings(max_examples=40, deadline=None)
def test_average_precision_without_ties_equals_scikit_learn(seed):
    rng = np.random.default_rng(seed)
    scores = rng.permutation(20) / 20
    relevant = np.flatnonzero(rng.random(20) < 0.3)
    if len(relevant):
        labels = np.isin(np.arange(20), relevant)
        _, _, precision = rank_one(scores, relevant)
        assert precision == pytest.approx(average_precision_score(labels, scores))


def test_many_relevant_items_are_ranked_like_few():
    rng = np.random.default_rng(5)
    scores = rng.integers(0, 30, 500) / 30
    relevant = np.flatnonzero(rng.random(500) < 0.3)
    first, _, precision = rank_one(scores, relevant)
    others = np.delete(scores, relevant)
    mine = np.sort(scores[relevant])[::-1]
    ranks = [1 + k + int(np.sum(others >= m)) for k, m in enumerate(mine)]
    assert first == ranks[0]
    assert precision == pytest.approx(np.mean([(k + 1) / r for k, r in enumerate(ranks)]))


def test_a_constant_metric_finds_nothing():
    ranking = rank_all(
        4, [np.array([i]) for i in range(4)], lambda b: np.zeros((b.stop - b.start, 4)), n_items=4
    )
    assert ranking.summary()["recall@1"] == 0.0
    assert ranking.summary()["mean_rank"] == 4
    assert ranking.summary()["mean_expected_rank"] == 2.5


def test_equal_texts_are_one_query_with_all_their_images():
    texts, numbers = merge_equal(["a dog", "a cat", "a dog"])
    images, own = relevant_lists(numbers, len(texts))
    assert texts == ["a dog", "a cat"]
    assert [i.tolist() for i in images] == [[0, 2], [1]]
    assert [t.tolist() for t in own] == [[0], [1], [0]]


def test_a_missing_score_of_a_relevant_item_is_last():
    first, _, _ = rank_one(np.array([np.nan, 0.1, 0.2]), np.array([0]))
    assert first == 3


def test_neighbours_leave_the_image_itself_out():
    points = np.array([[1, 0], [0.9, 0.1], [0, 1], [0.1, 0.9]], dtype=np.float32)
    assert nearest_neighbours(points, k=1).ravel().tolist() == [1, 0, 3, 2]


class Embedder(Encoder):
    """A dual encoder that knows the truth: a text's embedding is that of its images."""

    truth: dict[str, int] = {}

    def __init__(self, *, options):
        self.name = options.extra.get("name", "truth")

    def rows(self, keys):
        rows = np.zeros((len(keys), 64), dtype=np.float32)
        rows[np.arange(len(keys)), [self.truth[k] for k in keys]] = 1
        return rows


@pytest.mark.django_db
@pytest.mark.parametrize("pool", ["full", "pair"])
def test_retrieval_over_a_release(pool):
    from croc_annotate.benchmark.selectors import release_images

    release = small_release(pairs=4, images=2)
    for member in release_images(release).members:
        text = member.prompt if member.role == "prompt" else member.contrast
        number = Embedder.truth.setdefault(text, len(Embedder.truth) % 64)
        Embedder.truth[member.sha256] = number
    out = StringIO()
    path = "tests.benchmark.test_retrieval:Embedder"
    call_command(
        "run_benchmark", metric=[path], retrieval=True, pool=pool, stdout=out,
        option=["name=other"], neighbours_by=path if pool == "pair" else None,
    )  # fmt: skip
    document = json.loads(out.getvalue())
    assert document["text_to_image"]["recall@1"] == 1.0
    assert document["text_to_image"]["queries"] == 8
    if pool == "full":
        assert document["rsum"] == pytest.approx(600)
        assert document["image_to_text"]["mrr"] == 1.0
    assert "milliseconds_per_query" in document


class Drawn(Encoder):
    """Embeddings drawn from names and texts; another `salt` is another encoder."""

    def __init__(self, *, options):
        self.salt = options.extra.get("salt", "encoder")
        self.name = f"drawn {self.salt}"

    def row(self, key):
        draw = np.random.default_rng(zlib.crc32(f"{self.salt} {key}".encode())).normal(size=6)
        return (draw / np.linalg.norm(draw)).astype(np.float32)

    def rows(self, keys):
        return np.array([self.row(key) for key in keys])


@pytest.mark.django_db
def test_a_pairs_pool_is_its_images_and_their_neighbours_by_the_other_encoder(monkeypatch):
    """Against plain loops: for each text the pool, the ranks in it, and what follows."""
    from croc_annotate.benchmark.metric import MetricOptions
    from croc_annotate.benchmark.selectors import release_images

    monkeypatch.setattr("croc_annotate.benchmark.set_running._NEIGHBOURS", 3)
    members = list(release_images(small_release(pairs=6, images=2)).members)
    path = "tests.benchmark.test_retrieval:Drawn"
    out = StringIO()
    call_command("run_benchmark", metric=[path], retrieval=True, pool="pair", stdout=out,
                 option=["salt=metric"], neighbours_by=path)  # fmt: skip
    document = json.loads(out.getvalue())

    encoder = Drawn(options=MetricOptions())
    metric = Drawn(options=MetricOptions(extra={"salt": "metric"}))
    relevant, pair_of = {}, {}
    for member in members:
        text = member.prompt if member.role == "prompt" else member.contrast
        relevant.setdefault(text, set()).add(member.sha256)
        pair_of[text] = member.pair_slug
    ranks, precisions = [], []
    for text, wanted in relevant.items():
        own = [m.sha256 for m in members if m.pair_slug == pair_of[text]]
        pool = set(own)
        for image in own:
            others = [m.sha256 for m in members if m.sha256 != image]
            pool |= set(sorted(others, key=lambda o: -encoder.row(image) @ encoder.row(o))[:3])
        order = sorted(pool, key=lambda image: -metric.row(image) @ metric.row(text))
        places = [1 + order.index(image) for image in sorted(wanted, key=order.index)]
        ranks.append(places[0])
        precisions.append(sum((k + 1) / place for k, place in enumerate(places)) / len(places))
    found = document["text_to_image"]
    assert found["queries"] == len(ranks) == 12
    for k in (1, 5, 10):
        assert found[f"recall@{k}"] == pytest.approx(sum(r <= k for r in ranks) / len(ranks))
    assert found["mrr"] == pytest.approx(sum(1 / r for r in ranks) / len(ranks))
    assert found["map"] == pytest.approx(sum(precisions) / len(precisions))
    assert 4 < found["pool"] < len(members)
    assert document["image_to_text"] is None
    assert document["peak_memory_mb"]["host"] > 0
    assert document["seconds"]["scoring"] >= 0


@pytest.mark.django_db
def test_the_encoder_of_a_pool_is_another_one_and_is_named():
    small_release()
    path = "tests.benchmark.test_retrieval:Drawn"
    for other, sentence in ((None, "needs --neighbours-by"), (path, "must not be the metric")):
        with pytest.raises(CommandError, match=sentence):
            call_command(
                "run_benchmark", metric=[path], retrieval=True, pool="pair", neighbours_by=other
            )
    with pytest.raises(CommandError, match="must embed images"):
        call_command(
            "run_benchmark", metric=[path], retrieval=True, pool="pair", neighbours_by="random"
        )


@pytest.mark.django_db
def test_the_full_pool_needs_a_metric_that_embeds():
    small_release()
    with pytest.raises(CommandError, match="needs a metric that embeds"):
        call_command("run_benchmark", metric=["random"], retrieval=True)


@pytest.mark.django_db
def test_a_picture_that_cannot_be_read_and_a_release_without_any_are_one_sentence():
    from django.core.files.storage import default_storage

    from croc_annotate.benchmark.selectors import release_images
    from tests.benchmark.world import close_release, open_release

    release = small_release(pairs=2, images=1)
    member = next(iter(release_images(release).members))
    default_storage.delete(member.storage_name)
    with pytest.raises(CommandError, match=f"image {member.sha256} cannot be read"):
        call_command("run_benchmark", metric=["onnx-dual-encoder"], retrieval=True)
    close_release(open_release("empty"), [], [])
    with pytest.raises(CommandError, match="no verified image"):
        call_command("run_benchmark", metric=["onnx-dual-encoder"], retrieval=True, release="empty")
