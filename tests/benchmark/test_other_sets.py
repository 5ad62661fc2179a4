"""Winoground, SugarCrepe, Karpathy, FG, TIFA and GenAI-Bench files, read and scored."""

from __future__ import annotations

import importlib.util
import json
import zlib
from io import StringIO

import numpy as np
import pytest
from django.core.management import CommandError, call_command

from croc_annotate.benchmark.metric import MetricFacts, MetricMemoryError, ScoreBatch
from croc_annotate.benchmark.metrics.dual_encoder import unit_rows
from croc_annotate.benchmark.other_sets import SetFileError, read_fine_grained, read_karpathy
from croc_annotate.benchmark.winoground import score_examples
from tests.benchmark.fakes import Encoder
from tests.factories import png_bytes


class Lookup:
    """Scores from a table that the test fills: (text) → score by the order of the images."""

    needs = "pixels"
    table: dict[str, list[float]] = {}
    order: list[str] = []

    def __init__(self, *, options):
        pass

    def describe(self):
        return MetricFacts(name="lookup")

    def score(self, *, images, texts):
        for image in images:
            if image.sha256 not in self.order:
                self.order.append(image.sha256)
        return ScoreBatch(
            scores=[
                [self.table[t][self.order.index(i.sha256)] for t in own]
                for i, own in zip(images, texts, strict=True)
            ]
        )

    def close(self):
        pass


@pytest.fixture(autouse=True)
def empty_table():
    Lookup.table, Lookup.order = {}, []


def run(name, file, images, **options):
    out = StringIO()
    call_command("run_benchmark", metric=["tests.benchmark.test_other_sets:Lookup"], set=name,
                 file=file, images=images, stdout=out, **options)  # fmt: skip
    return json.loads(out.getvalue())


def pictures(folder, *names):
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(png_bytes())
    return folder


def test_winoground_scores_are_those_of_the_definition():
    # Example 0 is right in every way, 1 in texts only, 2 ties everywhere.
    scores = np.array([
        [[0.9, 0.1], [0.2, 0.8]],
        [[0.9, 0.95], [0.2, 0.96]],
        [[0.5, 0.5], [0.5, 0.5]],
    ])  # fmt: skip
    result = score_examples(scores)
    assert (result.text, result.image, result.group) == pytest.approx((2 / 3, 1 / 3, 1 / 3))
    assert result.ties == 1


def test_winoground_by_chance_is_a_quarter_and_a_sixth():
    scores = np.random.default_rng(3).random((60_000, 2, 2))
    result = score_examples(scores)
    assert (result.text, result.image) == pytest.approx((0.25, 0.25), abs=0.01)
    assert result.group == pytest.approx(1 / 6, abs=0.01)


def test_winoground_files(tmp_path):
    pictures(tmp_path / "images", "ex_0_img_0.png", "ex_0_img_1.png")
    entry = {"id": 0, "caption_0": "a dog on a cat", "caption_1": "a cat on a dog",
             "image_0": "ex_0_img_0", "image_1": "ex_0_img_1"}  # fmt: skip
    (tmp_path / "examples.jsonl").write_text(json.dumps(entry) + "\n")
    Lookup.table = {"a dog on a cat": [0.9, 0.3], "a cat on a dog": [0.1, 0.2]}
    document = run("winoground", tmp_path / "examples.jsonl", tmp_path / "images")
    assert (document["text"], document["image"], document["group"]) == (0.0, 1.0, 0.0)


def test_sugarcrepe_files(tmp_path):
    pictures(tmp_path / "images", "1.png", "2.png")
    entries = {
        "0": {"filename": "1.png", "caption": "a red car", "negative_caption": "a blue car"},
        "1": {"filename": "2.png", "caption": "two dogs", "negative_caption": "three dogs"},
    }
    (tmp_path / "swap_att.json").write_text(json.dumps(entries))
    Lookup.table = {"a red car": [0.9, 0], "a blue car": [0.1, 0], "two dogs": [0, 0.4],
                    "three dogs": [0, 0.4]}  # fmt: skip
    document = run("sugarcrepe", tmp_path / "swap_att.json", tmp_path / "images")
    assert document["subsets"]["swap_att"] == {"accuracy": 0.5, "n": 2, "ties": 1}


def test_tifa_files_are_scored_with_a_metric_of_our_own(tmp_path):
    pictures(tmp_path / "images", "a.jpg", "b.jpg", "c.jpg")
    entries = {
        k: {"text": f"text {k}", "human_avg": h, "image_path": f"{k}.jpg"}
        for k, h in (("a", 1.0), ("b", 3.0), ("c", 5.0))
    }
    (tmp_path / "tifa.json").write_text(json.dumps(entries))
    Lookup.table = {"text a": [0.1] * 3, "text b": [0.2] * 3, "text c": [0.9] * 3}
    document = run("tifa", tmp_path / "tifa.json", tmp_path / "images")
    assert document["metrics"]["lookup"]["kendall_tau_b"] == pytest.approx(1.0)


def test_genai_bench_images_lie_by_generator(tmp_path):
    pictures(tmp_path / "images", "A/1.jpeg", "B/1.jpeg")
    (tmp_path / "genai.json").write_text(
        json.dumps({"1": {"prompt": "a cat", "models": {"A": [5, 5, 5], "B": [1, 1, 2]}}})
    )
    Lookup.table = {"a cat": [0.9, 0.1]}
    document = run("genai-bench", tmp_path / "genai.json", tmp_path / "images")
    assert document["metrics"]["lookup"]["spearman"] == pytest.approx(1.0)


def karpathy(tmp_path, n=3):
    images = [
        {"filename": f"{i}.jpg", "filepath": "val2014", "split": "test" if i < n else "train",
         "sentences": [{"raw": f"caption {i}.{k} "} for k in range(5)]}
        for i in range(n + 2)
    ]  # fmt: skip
    (tmp_path / "dataset_coco.json").write_text(json.dumps({"images": images, "dataset": "coco"}))
    return tmp_path / "dataset_coco.json"


def test_karpathy_splits_have_five_captions_an_image(tmp_path):
    data = read_karpathy(karpathy(tmp_path))
    assert data.image_keys == ("val2014/0.jpg", "val2014/1.jpg", "val2014/2.jpg")
    assert len(data.texts) == 15
    assert data.texts[0] == "caption 0.0"
    assert data.texts_of_image[2].tolist() == [10, 11, 12, 13, 14]


def test_an_enlarged_pool_has_images_without_captions(tmp_path):
    (tmp_path / "fg.json").write_text(json.dumps({"1.jpg": ["a", "b"], "2.jpg": ["a"]}))
    (tmp_path / "pool.json").write_text(json.dumps(["2.jpg", "3.jpg"]))
    data = read_fine_grained(tmp_path / "fg.json", pool=tmp_path / "pool.json")
    assert data.image_keys == ("1.jpg", "2.jpg", "3.jpg")
    assert [i.tolist() for i in data.images_of_text] == [[0, 1], [0]]
    assert data.texts_of_image[2].tolist() == []


class Hashed(Encoder):
    """A dual encoder whose embeddings are drawn from names and texts: no skill, but definite."""

    name = "hashed"
    fits = 1_000  # images at once
    batches: list[int] = []

    def rows(self, keys):
        drawn = [np.random.default_rng(zlib.crc32(key.encode())).normal(size=8) for key in keys]
        # Coarse, so that some tie.
        return unit_rows(np.round(np.array(drawn)))

    def embed_images(self, *, images):
        if len(images) > self.fits:
            raise MetricMemoryError("out of memory")
        self.batches.append(len(images))
        return super().embed_images(images=images)

    def score(self, *, images, texts):
        raise NotImplementedError  # its embeddings are to be used


@pytest.fixture
def hashed(monkeypatch):
    monkeypatch.setattr(Hashed, "batches", [])
    return Hashed


def searched(name, file, tmp_path, **options):
    out = StringIO()
    call_command("run_benchmark", metric=["tests.benchmark.test_other_sets:Hashed"], set=name,
                 file=file, images=tmp_path, stdout=out, **options)  # fmt: skip
    return json.loads(out.getvalue())


def recalls(queries, items, relevant):
    """Recall@1/5/10 by sorting, each relevant item behind all that tie with it: in plain loops."""
    embed = Hashed(options=None).rows
    table = embed(queries).astype(float) @ embed(items).astype(float).T
    table = table.astype(np.float32)
    ranks = []
    for row, wanted in zip(table, relevant, strict=True):
        best = max(row[k] for k in wanted)
        ranks.append(1 + sum(row[k] >= best for k in range(len(items)) if k not in wanted))
    return [sum(rank <= k for rank in ranks) / len(ranks) for k in (1, 5, 10)]


def captioned(n, each):
    return {f"{i}.jpg": [f"caption {i}.{k}" for k in range(each)] for i in range(n)}


def expected(captions, pool=()):
    """(text → image, image → text): an image's captions all answer it."""
    images, texts = [*captions, *pool], [t for own in captions.values() for t in own]
    owner = [i for i, own in enumerate(captions.values()) for _ in own]
    forward = recalls(texts, images, [{i} for i in owner])
    answers = [{t for t, o in enumerate(owner) if o == i} for i in range(len(captions))]
    return forward, recalls(list(captions), texts, answers)


@pytest.mark.parametrize("name", ["coco-5k", "flickr30k", "mscoco-fg", "flickr30k-fg"])
def test_retrieval_sets_are_searched_both_ways_with_latency_and_memory(name, tmp_path, hashed):
    captions = captioned(40, 5)
    pool: list[str] = []
    options = {}
    if name.endswith("-fg"):
        file, pool = tmp_path / "fg.json", [f"extra {i}.jpg" for i in range(25)]
        file.write_text(json.dumps(captions))
        (tmp_path / "pool.json").write_text(json.dumps(pool))
        options["pool_file"] = tmp_path / "pool.json"
    else:
        file = tmp_path / "karpathy.json"
        images = [{"filename": i, "split": "test", "sentences": [{"raw": t} for t in own]}
                  for i, own in captions.items()]  # fmt: skip
        file.write_text(json.dumps({"images": images, "dataset": name}))
    document = searched(name, file, tmp_path, **options)
    forward, backward = expected(captions, pool)
    assert [document["text_to_image"][f"recall@{k}"] for k in (1, 5, 10)] == forward
    assert [document["image_to_text"][f"recall@{k}"] for k in (1, 5, 10)] == backward
    assert document["rsum"] == pytest.approx(100 * sum(forward + backward))
    assert 0 < forward[2] < 1
    assert (document["images"], document["texts"]) == (40 + len(pool), 200)
    assert document["text_to_image"]["pool"] == 40 + len(pool)
    assert set(document["seconds"]) == {"images", "texts", "ranking"}
    assert document["milliseconds_per_query"] > 0
    assert document["peak_memory_mb"]["host"] > 0
    assert document["index"] == "exact"


@pytest.mark.skipif(importlib.util.find_spec("faiss") is None, reason="needs the faiss extra")
def test_with_faiss_by_hand_or_beyond_the_stated_size_the_numbers_are_the_same(
    tmp_path, hashed, monkeypatch
):
    (tmp_path / "fg.json").write_text(json.dumps(captioned(60, 3)))
    found = {}
    for index in ("exact", "faiss", "auto"):
        if index == "auto":  # as if 180 texts were a large pool
            monkeypatch.setattr("croc_annotate.benchmark.flat_index.FAISS_FROM", 180)
        document = searched("mscoco-fg", tmp_path / "fg.json", tmp_path, index=index)
        assert document["index"] == ("exact" if index == "exact" else "faiss")
        found[index] = [document[way] for way in ("text_to_image", "image_to_text")]
    assert found["exact"] == found["faiss"] == found["auto"]


def test_coco_1k_is_the_mean_over_five_thousands(tmp_path, hashed):
    captions = captioned(5_000, 1)
    images = [{"filename": i, "split": "test", "sentences": [{"raw": t} for t in own]}
              for i, own in captions.items()]  # fmt: skip
    (tmp_path / "karpathy.json").write_text(json.dumps({"images": images, "dataset": "coco"}))
    document = searched("coco-1k", tmp_path / "karpathy.json", tmp_path)
    assert [fold["images"] for fold in document["folds"]] == [1_000] * 5
    assert document["rsum"] == pytest.approx(sum(f["rsum"] for f in document["folds"]) / 5)
    assert len({fold["rsum"] for fold in document["folds"]}) > 1  # other images in each


@pytest.mark.parametrize(("size", "fits", "batches"), [
    ("8", 1_000, [8, 8, 8, 8, 8]), ("auto", 1_000, [16, 16, 8]), ("16", 5, [4] * 10),
])  # fmt: skip
def test_the_batch_size_of_a_set_is_the_callers_and_is_halved_where_memory_runs_out(
    tmp_path, hashed, monkeypatch, size, fits, batches
):
    monkeypatch.setattr(Hashed, "fits", fits)
    (tmp_path / "fg.json").write_text(json.dumps(captioned(40, 1)))
    document = searched("mscoco-fg", tmp_path / "fg.json", tmp_path, batch_size=size)
    assert Hashed.batches == batches
    assert document["images"] == 40


def test_one_image_that_does_not_fit_is_one_sentence(tmp_path, hashed, monkeypatch):
    monkeypatch.setattr(Hashed, "fits", 0)
    (tmp_path / "fg.json").write_text(json.dumps(captioned(3, 1)))
    with pytest.raises(CommandError, match="out of memory"):
        searched("mscoco-fg", tmp_path / "fg.json", tmp_path)


@pytest.mark.parametrize("option", ["queue", "limit", "replicate", "retry_missing"])
@pytest.mark.parametrize("mode", [{"set": "winoground"}, {"retrieval": True}])
def test_what_a_set_does_not_heed_is_refused(option, mode):
    with pytest.raises(CommandError, match=f"--{option.replace('_', '-')} does not go with --"):
        call_command("run_benchmark", metric=["random"], **mode, **{option: 1})


def test_an_image_that_was_graded_for_two_texts_is_scored_against_both(tmp_path):
    pictures(tmp_path / "images", "a.jpg", "b.jpg")
    entries = {
        f"{image}{n}": {"text": f"text {n}", "human_avg": h, "image_path": f"{image}.jpg"}
        for image, n, h in (("a", 1, 1.0), ("a", 2, 4.0), ("b", 1, 2.0), ("b", 2, 5.0))
    }
    (tmp_path / "tifa.json").write_text(json.dumps(entries))
    Lookup.table = {"text 1": [0.1, 0.2], "text 2": [0.4, 0.5]}
    found = run("tifa", tmp_path / "tifa.json", tmp_path / "images")["metrics"]["lookup"]
    assert (found["n"], found["missing"]) == (4, 0)
    assert found["kendall_tau_b"] == pytest.approx(1.0)


def test_files_outside_the_folder_are_refused(tmp_path):
    pictures(tmp_path, "secret.png")
    entries = {"0": {"filename": "../secret.png", "caption": "a", "negative_caption": "b"}}
    (tmp_path / "images").mkdir()
    (tmp_path / "s.json").write_text(json.dumps(entries))
    with pytest.raises(CommandError, match="outside"):
        run("sugarcrepe", tmp_path / "s.json", tmp_path / "images")


def test_wrong_files_are_refused_with_line_or_entry(tmp_path):
    (tmp_path / "e.jsonl").write_text('{"id": 1}\n')
    with pytest.raises(CommandError, match=r"line 1: no 'caption_0'"):
        run("winoground", tmp_path / "e.jsonl", tmp_path)
    with pytest.raises(SetFileError, match="no image in split 'val'"):
        read_karpathy(karpathy(tmp_path), split="val")
    with pytest.raises(CommandError, match="needs --file and --images"):
        call_command("run_benchmark", metric=["random"], set="winoground")
