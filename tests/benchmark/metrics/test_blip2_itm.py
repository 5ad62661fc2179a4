from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the gpu extra")

from croc_annotate.benchmark import registry
from croc_annotate.benchmark.metric import MetricError, MetricOptions
from tests.benchmark.metrics import tiny
from tests.benchmark.metrics.conftest import (
    TEXTS,
    assert_same_at_any_batch_size,
    scores_in_batches,
)

pytestmark = pytest.mark.torch


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny.blip2_itm(tmp_path_factory.mktemp("blip2"))


@pytest.fixture(scope="module")
def metric(folder):
    return registry.create("blip2-itm", options=MetricOptions(model=str(folder), device="cpu"))


def itm_logits(folder, image, text) -> torch.Tensor:
    """The class's own matching logits: image tokens in front of the text, as its forward expects."""
    from transformers import AutoImageProcessor, AutoTokenizer, Blip2ForImageTextRetrieval

    model = Blip2ForImageTextRetrieval.from_pretrained(folder).eval()
    values = AutoImageProcessor.from_pretrained(folder, backend="pil")(
        images=[image.pixels], return_tensors="pt"
    )["pixel_values"]
    ids = AutoTokenizer.from_pretrained(folder)([text], return_tensors="pt")["input_ids"]
    before = torch.full((1, model.config.num_query_tokens), model.config.image_token_index)
    ids = torch.cat([before, ids], dim=1)
    with torch.inference_mode():
        return model(
            pixel_values=values,
            input_ids=ids,
            attention_mask=torch.ones_like(ids),
            use_image_text_matching_head=True,
        ).logits_per_image


def test_the_score_is_one_softmax_of_the_matching_head(metric, folder, inputs):
    """Trap 4: softmax once; twice would squeeze everything into 0.27 … 0.73."""
    got, twice = [], []
    for image, text in zip(inputs[:6], TEXTS, strict=True):
        logits = itm_logits(folder, image, text)
        once = torch.softmax(logits, dim=1)
        [[value]] = metric.score(images=[image], texts=[[text]]).scores
        assert value == pytest.approx(float(once[0, 1]), abs=1e-5)
        got.append(value)
        twice.append(float(torch.softmax(once, dim=1)[0, 1]))
    assert max(got) > 0.74 or min(got) < 0.26
    assert not np.allclose(got, twice, atol=0.02)


def test_two_texts_on_one_image_differ(metric, inputs):
    """Trap 4: with image tokens cut off a text that has none, whole texts vanish."""
    [scores] = metric.score(images=inputs[:1], texts=[TEXTS]).scores
    assert len({round(value, 6) for value in scores}) == len(TEXTS)


def test_the_cut_that_makes_texts_alike_is_real(folder, inputs):
    """Trap 4, the mistake itself: the plain tokenizer's ids given to the class's own forward."""
    from transformers import AutoTokenizer, Blip2ForImageTextRetrieval

    model = Blip2ForImageTextRetrieval.from_pretrained(folder).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    two = tokenizer(
        ["red dog", "blue dog"], padding="max_length", max_length=12, return_tensors="pt"
    )
    mask = torch.ones(2, two["input_ids"].shape[1], dtype=torch.long)
    with torch.inference_mode():
        one, other = model(
            pixel_values=torch.zeros(2, 3, 32, 32),
            input_ids=two["input_ids"],
            attention_mask=mask,
            use_image_text_matching_head=True,
        ).logits_per_image
    assert torch.allclose(one, other)


def test_texts_are_cut_at_35_tokens_and_counted(metric, inputs):
    """Trap 4: 35 text tokens, whatever the number of query tokens."""
    fits, long = "red " * 33, "red " * 34
    batch = metric.score(images=inputs[:1], texts=[[fits, long, "red " * 60, TEXTS[0]]])
    assert batch.truncated == {long, "red " * 60}
    assert batch.scores[0][1] == pytest.approx(batch.scores[0][2], abs=1e-6)


@pytest.mark.field_case(39)
def test_batch_size_and_order_change_no_winner(metric, inputs, texts):
    """Trap 11."""
    assert_same_at_any_batch_size(metric, inputs, texts)


def test_two_runs_are_bit_equal_and_an_image_is_encoded_once(folder, inputs, texts):
    """Trap 13."""
    runs, encoded = [], []
    for _ in range(2):
        metric = registry.create(
            "blip2-itm", options=MetricOptions(model=str(folder), device="cpu")
        )
        metric._model().vision_model.register_forward_hook(
            lambda module, args, out: encoded.append(len(out.last_hidden_state))
        )
        runs.append(scores_in_batches(metric, inputs, texts, 4))
    assert runs[0].tobytes() == runs[1].tobytes()
    assert sum(encoded) == 2 * len(inputs)


def test_the_matching_head_stays_in_float32_in_half_precision(folder, inputs):
    """Trap 7: P(match) in half precision would tie."""
    metric = registry.create(
        "blip2-itm", options=MetricOptions(model=str(folder), device="cpu", dtype="bfloat16")
    )
    assert np.isfinite(metric.score(images=inputs[:2], texts=[TEXTS, TEXTS]).scores).all()
    assert metric._model().itm_head.weight.dtype is torch.float32
    assert metric._model().vision_model.dtype is torch.bfloat16


def test_no_texts_are_no_scores(metric, inputs):
    assert metric.score(images=inputs[:2], texts=[[], []]).scores == [[], []]


def test_a_blip2_checkpoint_without_a_matching_head_is_refused(folder, tmp_path, inputs):
    import shutil

    from safetensors.torch import load_file, save_file

    broken = shutil.copytree(folder, tmp_path / "broken")
    weights = load_file(broken / "model.safetensors")
    kept = {name: value for name, value in weights.items() if not name.startswith("itm_head")}
    save_file(kept, broken / "model.safetensors", metadata={"format": "pt"})
    metric = registry.create("blip2-itm", options=MetricOptions(model=str(broken), device="cpu"))
    with pytest.raises(MetricError, match=r"lacks 2 weights, the first is itm_head\.bias"):
        metric.score(images=inputs[:1], texts=[["a"]])
