from __future__ import annotations

import json
import math

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


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny.clip_flant5(tmp_path_factory.mktemp("flan"))


def make(folder, **options):
    return registry.create(
        "clip-flant5", options=MetricOptions(model=str(folder), device="cpu", **options)
    )


@pytest.fixture(scope="module")
def metric(folder):
    return make(folder)


def by_hand(folder, image, text) -> float:
    """From the stored tensors, one pair: encoder over text, patches, text; loss of "Yes</s>"."""
    from safetensors.torch import load_file
    from transformers import (
        AutoImageProcessor,
        AutoTokenizer,
        CLIPVisionModel,
        T5Config,
        T5ForConditionalGeneration,
    )

    config = json.loads((folder / "config.json").read_text())
    weights = load_file(folder / "model.safetensors")
    t5 = T5ForConditionalGeneration(T5Config.from_dict({**config, "model_type": "t5"})).eval()
    t5.load_state_dict({k: v for k, v in weights.items() if k in t5.state_dict()})
    tower = CLIPVisionModel.from_pretrained(config["mm_vision_tower"]).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    assert image.pixels.width == image.pixels.height
    pixels = AutoImageProcessor.from_pretrained(config["mm_vision_tower"], backend="pil")(
        images=[image.pixels], return_tensors="pt"
    )["pixel_values"]
    front = (
        "A chat between a curious user and an artificial intelligence assistant. The assistant "
        "gives helpful, detailed, and polite answers to the user's questions. USER: "
    )
    back = f'\nDoes this figure show "{text}"? Please answer yes or no. ASSISTANT: '
    ids = [torch.tensor(tokenizer(part)["input_ids"]) for part in (front, back)]
    with torch.inference_mode():
        patches = tower(pixel_values=pixels, output_hidden_states=True).hidden_states[-2][0, 1:]
        hidden = patches @ weights["mm_projector.0.weight"].T + weights["mm_projector.0.bias"]
        hidden = torch.nn.functional.gelu(hidden)
        hidden = hidden @ weights["mm_projector.2.weight"].T + weights["mm_projector.2.bias"]
        joined = torch.cat([t5.shared(ids[0]), hidden, t5.shared(ids[1])])[None]
        labels = torch.tensor(tokenizer("Yes")["input_ids"])[None]
        loss = t5(inputs_embeds=joined, labels=labels).loss
    return math.exp(-float(loss))


def test_the_score_is_the_geometric_mean_over_yes_and_the_end(metric, folder):
    images = [as_input(picture(n, size=(40, 40))) for n in range(3)]
    got = metric.score(images=images, texts=[TEXTS[:3]] * 3).scores
    wanted = [[by_hand(folder, image, text) for text in TEXTS[:3]] for image in images]
    np.testing.assert_allclose(got, wanted, rtol=1e-4)


def test_the_tower_may_lie_in_its_own_checkpoint(metric, tmp_path):
    other = make(tiny.clip_flant5(tmp_path / "apart", tower_inside=False))
    image = as_input(picture(4))
    np.testing.assert_allclose(
        other.score(images=[image], texts=[TEXTS]).scores,
        metric.score(images=[image], texts=[TEXTS]).scores,
        rtol=1e-6,
    )


def test_an_image_is_padded_to_a_square_and_not_cropped(metric):
    """Trap 9: what stands at the far ends of a wide image reaches the score."""
    wide = picture(5, size=(120, 40))
    ends = wide.copy()
    ends.paste((255, 0, 0), (0, 0, 12, 40))
    scores = metric.score(images=[as_input(wide), as_input(ends)], texts=[TEXTS[:1]] * 2).scores
    assert scores[0][0] != pytest.approx(scores[1][0], rel=1e-5)


@pytest.mark.field_case(39)
def test_batch_size_and_order_change_no_winner(metric, inputs, texts):
    """Trap 11; the texts of a batch have different lengths, so the mask is tested as well."""
    assert_same_at_any_batch_size(metric, inputs, texts)


def test_two_runs_are_bit_equal_and_images_are_encoded_once(folder, inputs, texts):
    """Trap 13."""
    runs, seen = [], []
    for _ in range(2):
        metric = make(folder)
        metric._model().tower.register_forward_hook(
            lambda module, args, out: seen.append(len(out.last_hidden_state))
        )
        runs.append(scores_in_batches(metric, inputs[:8], texts[:8], 4))
    assert runs[0].tobytes() == runs[1].tobytes()
    assert sum(seen) == 2 * 8


def test_a_checkpoint_without_the_projector_is_refused_by_name(folder, tmp_path):
    import shutil

    from safetensors.torch import load_file, save_file

    broken = shutil.copytree(folder, tmp_path / "broken")
    weights = load_file(broken / "model.safetensors")
    del weights["mm_projector.2.bias"]
    save_file(weights, broken / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(MetricError, match=r"the first is mm_projector\.2\.bias"):
        make(broken).score(images=[as_input(picture(1))], texts=[["a"]])


def test_the_generic_metric_points_here(folder):
    with pytest.raises(MetricError, match="is read by --metric clip-flant5"):
        registry.create("vqascore", options=MetricOptions(model=str(folder), device="cpu"))


def test_no_texts_are_no_scores(metric, inputs):
    assert metric.score(images=inputs[:2], texts=[[], []]).scores == [[], []]
