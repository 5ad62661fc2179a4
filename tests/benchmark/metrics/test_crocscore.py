from __future__ import annotations

import json
import shutil

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the gpu extra")

from croc_annotate.benchmark import registry
from croc_annotate.benchmark.metric import MetricError, MetricOptions
from tests.benchmark.metrics import tiny
from tests.benchmark.metrics.conftest import (
    TEXTS,
    as_input,
    assert_same_at_any_batch_size,
    picture,
    scores_in_batches,
)

pytestmark = pytest.mark.torch

SIDE = {"side": "48"}  # 2×2 crops of 32


@pytest.fixture(scope="module")
def native(tmp_path_factory):
    return tiny.phi4_native(tmp_path_factory.mktemp("native"))


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    return tiny.phi4_published(tmp_path_factory.mktemp("published"))


def make(folder, **options):
    return registry.create(
        "crocscore",
        options=MetricOptions(model=str(folder), device="cpu", extra=SIDE, **options),
    )


@pytest.fixture(scope="module")
def metric(native):
    return make(native)


def by_hand(folder, image, text) -> float:
    """One pair through the class's own forward pass, with full logits."""
    from PIL import Image
    from transformers import AutoTokenizer, Phi4MultimodalForCausalLM

    from croc_annotate.benchmark.metrics.crocscore import cut_crops

    model = Phi4MultimodalForCausalLM.from_pretrained(folder).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    crops = cut_crops(image.pixels.resize((48, 48), Image.Resampling.LANCZOS), 32)[None]
    tokens = "<|endoftext10|>" * ((2 * 2) ** 2 + 2 * 2 + 1 + 2**2 + 2)
    question = f"Does this image show the following content:'{text}'? Answer with Yes or No."
    prompt = f"<|user|>{tokens}{question}<|end|><|assistant|>"
    ids = tokenizer(prompt, add_special_tokens=False, return_tensors="pt")["input_ids"]
    yes, no = (tokenizer(word, add_special_tokens=False)["input_ids"][0] for word in ("Yes", "No"))
    with torch.inference_mode():
        logits = model(
            input_ids=ids,
            image_pixel_values=crops,
            image_sizes=torch.tensor([[64, 64]]),
            image_attention_mask=torch.ones(1, 5, 4, 4),
        ).logits[0, -1]
    chances = torch.softmax(logits.float(), dim=-1)
    return float(chances[yes] - chances[no])


def test_the_score_is_the_probability_of_yes_less_that_of_no(metric, native, inputs):
    got = metric.score(images=inputs[:3], texts=[TEXTS[:2]] * 3).scores
    wanted = [[by_hand(native, image, text) for text in TEXTS[:2]] for image in inputs[:3]]
    np.testing.assert_allclose(got, wanted, rtol=1e-3, atol=1e-6)


def test_the_published_layout_gives_the_native_scores(metric, published, inputs):
    """Names mapped, the vision adapter merged, the speech adapter left out."""
    texts = [TEXTS[:3]] * 4
    np.testing.assert_allclose(
        make(published).score(images=inputs[:4], texts=texts).scores,
        metric.score(images=inputs[:4], texts=texts).scores,
        rtol=1e-3,
        atol=1e-5,
    )


def test_a_native_checkpoint_with_its_adapter_in_a_folder(native, tmp_path, metric, inputs):
    from safetensors.torch import load_file, save_file

    folder = shutil.copytree(native, tmp_path / "adapted")
    weights = load_file(folder / "model.safetensors")
    name = "model.layers.0.mlp.down_proj.weight"
    down, up = torch.randn(4, weights[name].shape[1]), torch.randn(weights[name].shape[0], 4)
    weights[name] = weights[name] - 0.5 * up @ down
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "vision-lora").mkdir()
    stem = "base_model.model.model.layers.0.mlp.down_proj"
    save_file(
        {f"{stem}.lora_A.weight": down, f"{stem}.lora_B.weight": up},
        folder / "vision-lora" / "adapter_model.safetensors",
    )
    (folder / "vision-lora" / "adapter_config.json").write_text('{"r": 4, "lora_alpha": 2}')
    np.testing.assert_allclose(
        make(folder).score(images=inputs[:2], texts=[TEXTS] * 2).scores,
        metric.score(images=inputs[:2], texts=[TEXTS] * 2).scores,
        rtol=1e-3,
        atol=1e-5,
    )


def test_what_a_checkpoint_lacks_is_named(published, tmp_path, inputs):
    from safetensors.torch import load_file, save_file

    folder = shutil.copytree(published, tmp_path / "broken")
    weights = load_file(folder / "model.safetensors")
    for name in [n for n in weights if n.endswith("glb_GN") or "layers.1.mlp.down_proj" in n]:
        del weights[name]
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(MetricError, match=r"lacks 2 weights, the first is model\.embed_tokens_ext"):
        make(folder).score(images=inputs[:1], texts=[["a"]])


def test_an_adapter_without_its_alpha_is_not_guessed(published, tmp_path, inputs):
    folder = shutil.copytree(published, tmp_path / "no-alpha")
    config = json.loads((folder / "config.json").read_text())
    del config["vision_lora"]
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(MetricError, match="does not state its lora_alpha"):
        make(folder).score(images=inputs[:1], texts=[["a"]])


def test_long_and_short_texts_are_never_mixed_across_the_rotary_switch(metric, inputs):
    """Trap 10: LongRoPE takes its factors from the longest row of the batch."""
    short = metric.score(images=inputs[:1], texts=[["a cat"]]).scores[0][0]
    with pytest.raises(MetricError, match="beyond 128 positions"):
        metric.score(images=inputs[:1], texts=[["a cat", "red " * 120]])
    model = metric._model()
    beyond = torch.arange(140)[None]
    with torch.inference_mode():
        cos, _ = model.model.rotary_emb(torch.zeros(1, 1, 64), position_ids=beyond)
        near, _ = model.model.rotary_emb(torch.zeros(1, 1, 64), position_ids=beyond[:, :100])
    assert not torch.allclose(cos[:, :100], near), "the switch exists"
    assert metric.score(images=inputs[:1], texts=[["a cat"]]).scores[0][0] == short


@pytest.mark.field_case(39)
def test_batch_size_and_order_change_no_winner(metric, inputs, texts):
    """Trap 11."""
    assert_same_at_any_batch_size(metric, inputs, texts, tolerance=2e-5)


def test_two_runs_are_bit_equal_and_images_are_encoded_once(native, inputs, texts):
    """Trap 13."""
    runs, seen = [], []
    for _ in range(2):
        metric = make(native)
        tower = metric._model().model.embed_tokens_extend.image_embed.img_processor
        tower.embeddings.register_forward_hook(lambda module, args, out: seen.append(len(out)))
        runs.append(scores_in_batches(metric, inputs[:8], texts[:8], 4))
    assert runs[0].tobytes() == runs[1].tobytes()
    assert sum(seen) == 2 * 8 * 5  # five crops for each image, whatever the number of its texts


def test_scores_of_a_bfloat16_model_do_not_tie(native, inputs):
    """Trap 7."""
    scores = make(native, dtype="bfloat16").score(images=inputs[:4], texts=[TEXTS] * 4).scores
    flat = [value for row in scores for value in row]
    assert len(set(flat)) > len(flat) * 0.9
    assert any(value != torch.tensor(value).bfloat16().float().item() for value in flat)


def test_squashing_ahead_in_a_worker_changes_nothing(metric):
    image = as_input(picture(3, size=(150, 60)))
    ahead = metric.prepare(image=image)
    assert ahead.pixels.size == (48, 48)
    assert (
        metric.score(images=[ahead], texts=[TEXTS]).scores
        == metric.score(images=[image], texts=[TEXTS]).scores
    )


def test_an_image_of_the_published_size_has_2625_tokens():
    from croc_annotate.benchmark.metrics.crocscore import cut_crops, image_tokens

    assert image_tokens(1344, 448, 14) == 256 + 1 + 9 * 256 + 48 + 16
    crops = cut_crops(picture(1, size=(1024, 1024)), 448)
    assert crops.shape == (10, 3, 448, 448)
    assert float(crops.min()) >= -1.2
    assert float(crops.max()) <= 1.2  # bicubic overshoots a little


def test_another_model_is_one_sentence(tmp_path):
    with pytest.raises(MetricError, match="is a 'clip' model; crocscore reads Phi-4"):
        make(tiny.clip(tmp_path / "clip"))
