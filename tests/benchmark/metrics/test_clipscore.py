from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the gpu extra")

from croc_annotate.benchmark import registry
from croc_annotate.benchmark.metric import (
    DualEncoder,
    ImageInput,
    MetricError,
    MetricOptions,
    Prepares,
    fingerprint,
)
from tests.benchmark.metrics import tiny
from tests.benchmark.metrics.conftest import (
    TEXTS,
    as_input,
    assert_same_at_any_batch_size,
    picture,
    scores_in_batches,
)

pytestmark = pytest.mark.torch


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny.clip(tmp_path_factory.mktemp("clip"))


@pytest.fixture(scope="module")
def metric(folder):
    return registry.create("clipscore", options=MetricOptions(model=str(folder), device="cpu"))


def by_hand(folder, image: ImageInput, text: str) -> float:
    """The formula with the model's own forward pass, one pair, squashed and bilinear."""
    from PIL import Image
    from transformers import AutoTokenizer, CLIPModel

    model = CLIPModel.from_pretrained(folder).eval()
    small = np.asarray(image.pixels.resize((32, 32), Image.Resampling.BILINEAR), dtype=np.float32)
    mean = np.array([0.48145466, 0.4578275, 0.40821073])
    std = np.array([0.26862954, 0.26130258, 0.27577711])
    values = torch.tensor(((small / 255 - mean) / std).transpose(2, 0, 1)[None]).float()
    tokens = AutoTokenizer.from_pretrained(folder)(
        [text], truncation=True, max_length=77, return_tensors="pt"
    )
    with torch.inference_mode():
        out = model(**tokens, pixel_values=values)
        cosine = torch.cosine_similarity(out.image_embeds, out.text_embeds)
    return max(100 * float(cosine), 0.0)


def test_the_score_is_a_hundred_cosines_and_never_negative(metric, folder, inputs):
    texts = [TEXTS[:3] for _ in range(4)]
    got = metric.score(images=inputs[:4], texts=texts).scores
    wanted = [[by_hand(folder, image, text) for text in TEXTS[:3]] for image in inputs[:4]]
    np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-4)
    assert np.min(got) >= 0


def test_the_pooled_features_are_used_and_not_the_output_object(metric, inputs):
    """Trap 1: get_image_features answers an object since transformers 5."""
    assert metric.embed_images(images=inputs[:3]).shape == (3, 16)
    assert metric.embed_texts(texts=TEXTS[:2]).shape == (2, 16)


@pytest.mark.field_case(40)
def test_a_long_text_keeps_its_end_token_and_is_counted(metric, folder, inputs):
    """Trap 2: without the end token the embedding falls on the start token, equal for all texts."""
    long = "apples " * 75, "apples " * 200
    batch = metric.score(images=inputs[:1], texts=[[*long, TEXTS[0], "tables " * 75]])
    first, second, _, other = batch.scores[0]
    assert first == pytest.approx(second, abs=1e-4)
    assert first != pytest.approx(other, abs=1e-4)
    assert batch.truncated == {*long, "tables " * 75}
    assert metric.score(images=inputs[:1], texts=[["word " * 500]]).scores[0][0] is not None


def test_without_the_end_token_all_long_texts_would_look_alike(folder):
    """Trap 2, the mistake itself: this is what the published run did to long texts."""
    from transformers import AutoTokenizer, CLIPModel

    model, tokenizer = CLIPModel.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    ids = tokenizer(["apples " * 75, "tables " * 75], verbose=False)["input_ids"]
    cut = torch.tensor([own[:77] for own in ids])
    with torch.inference_mode():
        one, two = model.get_text_features(input_ids=cut).pooler_output
    assert torch.allclose(one, two)


@pytest.mark.field_case(39)
def test_batch_size_and_order_change_no_winner(metric, inputs, texts):
    """Trap 11."""
    assert_same_at_any_batch_size(metric, inputs, texts)


def test_two_runs_on_the_cpu_are_bit_equal(folder, inputs, texts):
    """Trap 13."""
    options = MetricOptions(model=str(folder), device="cpu")
    runs = [
        scores_in_batches(registry.create("clipscore", options=options), inputs, texts, 4)
        for _ in range(2)
    ]
    assert runs[0].tobytes() == runs[1].tobytes()


def test_each_image_and_each_text_is_encoded_once(folder, inputs, texts):
    metric = registry.create("clipscore", options=MetricOptions(model=str(folder), device="cpu"))
    model = metric._model()
    seen = {"images": 0, "texts": 0}
    model.vision_model.register_forward_hook(
        lambda module, args, out: seen.update(images=seen["images"] + len(out.last_hidden_state))
    )
    model.text_model.register_forward_hook(
        lambda module, args, out: seen.update(texts=seen["texts"] + len(out.last_hidden_state))
    )
    scores_in_batches(metric, inputs, texts, 4)
    assert seen == {"images": 16, "texts": 6}
    assert not model.training


def test_squash_and_crop_differ_and_so_do_their_fingerprints(folder):
    """Trap 9."""
    wide = as_input(picture(3, size=(96, 40)))
    facts, scores = [], []
    for mode in ("squash", "processor"):
        metric = registry.create(
            "clipscore",
            options=MetricOptions(model=str(folder), device="cpu", extra={"preprocessing": mode}),
        )
        facts.append(metric.describe())
        scores.append(metric.score(images=[wide], texts=[TEXTS]).scores)
    assert not np.allclose(scores[0], scores[1], atol=1e-3)
    assert fingerprint(facts[0]) != fingerprint(facts[1])
    assert facts[0].preprocessing.startswith("squash 32x32, bilinear")
    assert facts[1].preprocessing.startswith("shortest edge 32, crop 32x32, bicubic")
    assert {one.image_backend for one in facts} == {"pil"}


@pytest.mark.parametrize("mode", ["squash", "processor"])
def test_resizing_ahead_in_a_worker_changes_nothing(folder, mode):
    metric = registry.create(
        "clipscore",
        options=MetricOptions(model=str(folder), device="cpu", extra={"preprocessing": mode}),
    )
    image = as_input(picture(5, size=(130, 70)))
    assert isinstance(metric, Prepares)
    ahead = metric.prepare(image=image)
    assert ahead.pixels.size == (32, 32)
    assert ahead.data is None
    assert (
        metric.score(images=[ahead], texts=[TEXTS]).scores
        == metric.score(images=[image], texts=[TEXTS]).scores
    )


def test_retrieval_by_matrix_product_equals_the_scores(metric, inputs):
    assert isinstance(metric, DualEncoder)
    product = metric.similarity(
        images=metric.embed_images(images=inputs), texts=metric.embed_texts(texts=TEXTS)
    )
    scores = metric.score(images=inputs, texts=[TEXTS] * len(inputs)).scores
    np.testing.assert_allclose(product, scores, rtol=1e-5, atol=1e-5)


def test_bfloat16_is_another_metric_whose_scores_are_still_float32(folder, inputs):
    half = registry.create(
        "clipscore", options=MetricOptions(model=str(folder), device="cpu", dtype="bfloat16")
    )
    full = registry.create("clipscore", options=MetricOptions(model=str(folder), device="cpu"))
    assert fingerprint(half.describe()) != fingerprint(full.describe())
    assert half.embed_images(images=inputs[:2]).dtype == np.float32


def test_a_missing_folder_is_one_sentence():
    with pytest.raises(MetricError, match="There is no folder /nowhere/clip"):
        registry.create("clipscore", options=MetricOptions(model="/nowhere/clip"))


def test_a_folder_of_another_model_is_one_sentence(tmp_path):
    from transformers import BertConfig, BertModel

    tiny.save_clip_tokenizer(tmp_path)
    folder = tiny.clip(tmp_path / "a")
    config = BertConfig(
        vocab_size=9, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8
    )
    BertModel(config).save_pretrained(folder)
    metric = registry.create("clipscore", options=MetricOptions(model=str(folder), device="cpu"))
    with pytest.raises(MetricError) as caught:
        metric.score(images=[as_input(picture(1))], texts=[["a"]])
    assert str(folder) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_checkpoint_without_some_weights_is_refused_and_not_filled_with_chance(folder, tmp_path):
    import shutil

    from safetensors.torch import load_file, save_file

    broken = shutil.copytree(folder, tmp_path / "broken")
    weights = load_file(broken / "model.safetensors")
    del weights["visual_projection.weight"]
    save_file(weights, broken / "model.safetensors", metadata={"format": "pt"})
    metric = registry.create("clipscore", options=MetricOptions(model=str(broken), device="cpu"))
    with pytest.raises(
        MetricError, match=r"lacks 1 weights, the first is visual_projection\.weight"
    ):
        metric.score(images=[as_input(picture(1))], texts=[["a"]])


def test_other_weights_in_the_same_folder_are_another_revision(folder, tmp_path):
    import shutil

    copy = shutil.copytree(folder, tmp_path / "copy")
    first = registry.create("clipscore", options=MetricOptions(model=str(copy), device="cpu"))
    data = bytearray((copy / "model.safetensors").read_bytes())
    data[-1] ^= 1
    (copy / "model.safetensors").write_bytes(bytes(data))
    second = registry.create("clipscore", options=MetricOptions(model=str(copy), device="cpu"))
    assert first.describe().revision != second.describe().revision


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"device": "gpu"}, "There is no device 'gpu'"),
        ({"dtype": "int8"}, "There is no dtype 'int8'"),
        ({"revision": "main"}, "a revision belongs to a model of the hub"),
        ({"extra": {"preprocessing": "warp"}}, "preprocessing='warp' is unknown"),
    ],
)
def test_wrong_options_are_one_sentence(folder, change, sentence):
    with pytest.raises(MetricError, match=sentence):
        registry.create("clipscore", options=MetricOptions(model=str(folder), **change))
