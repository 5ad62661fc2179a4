"""`vqascore` with the families that people use it with: Qwen2.5-VL (its default), InternVL, Gemma 3."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the gpu extra")

from croc_annotate.benchmark import registry
from croc_annotate.benchmark.metric import MetricOptions
from tests.benchmark.metrics import tiny_vlms
from tests.benchmark.metrics.conftest import (
    TEXTS,
    as_input,
    assert_same_at_any_batch_size,
    picture,
)

pytestmark = pytest.mark.torch
FAMILIES = {
    "qwen": ("Qwen2_5_VLProcessor", tiny_vlms.qwen),
    "internvl": ("InternVLProcessor", tiny_vlms.internvl),
    "gemma3": ("Gemma3Processor", tiny_vlms.gemma3),
}
# Of several shapes: the number of an image's tokens may depend on it.
SIZES = [(48, 40), (120, 40), (33, 97), (64, 64)]


@pytest.fixture(scope="module", params=FAMILIES)
def family(request):
    return request.param


@pytest.fixture(scope="module")
def folder(family, tmp_path_factory):
    return FAMILIES[family][1](tmp_path_factory.mktemp(family))


@pytest.fixture(scope="module")
def metric(folder):
    return registry.create("vqascore", options=MetricOptions(model=str(folder), device="cpu"))


@pytest.fixture(scope="module")
def shaped():
    return [as_input(picture(n, size=size)) for n, size in enumerate(SIZES)]


def by_hand(folder, metric, image, text) -> float:
    """One image and one text, without padding, cache or a batch: the model as it comes."""
    from transformers import AutoModelForImageTextToText

    model = AutoModelForImageTextToText.from_pretrained(folder).eval()
    prompt = metric.describe().prompt.replace("{text}", text)
    inputs = metric._processor(images=[image.pixels], text=[prompt], return_tensors="pt")
    with torch.inference_mode():
        logits = model(**inputs).logits[0, -1].float()
    return float(torch.softmax(logits, dim=-1)[int(metric.describe().settings["answer_token"])])


def test_the_score_is_the_models_own(metric, folder, shaped):
    got = metric.score(images=shaped, texts=[TEXTS[:2]] * len(shaped)).scores
    wanted = [[by_hand(folder, metric, image, text) for text in TEXTS[:2]] for image in shaped]
    np.testing.assert_allclose(got, wanted, rtol=1e-4)


def test_an_image_is_read_once_for_all_its_texts(metric, shaped):
    alone = [
        metric.score(images=[image], texts=[[t]]).scores[0][0] for image in shaped for t in TEXTS
    ]
    seen = []
    tower = next(m for n, m in metric._model().named_modules() if n in TOWERS)
    hook = tower.register_forward_hook(lambda *_: seen.append(1))
    try:
        together = metric.score(images=shaped, texts=[TEXTS] * len(shaped)).scores
    finally:
        hook.remove()
    assert metric._sharing
    assert len(seen) <= len(shaped)  # not one a text
    np.testing.assert_allclose(np.ravel(together), alone, rtol=1e-4)


@pytest.mark.field_case(39)
def test_batch_size_and_order_change_no_winner(metric, inputs, texts):
    assert_same_at_any_batch_size(metric, inputs, texts)


def test_no_package_for_videos_is_needed(metric, family):
    """torchvision, which only a processor's part for videos asks for, is in none of our extras."""
    assert type(metric._processor).__name__ == FAMILIES[family][0]
    assert getattr(metric._processor, "video_processor", None) is None


TOWERS = {"model.visual", "model.vision_tower"}
