"""Run with `pytest -m gpu tests/gpu`: the tiny models once more, on a CUDA device."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the gpu extra")

from croc_annotate.benchmark import registry
from croc_annotate.benchmark.metric import MetricMemoryError, MetricOptions
from tests.benchmark.metrics import tiny
from tests.benchmark.metrics.conftest import TEXTS, as_input, picture

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device here"),
]

KINDS = {
    "clipscore": tiny.clip,
    "siglip": tiny.siglip,
    "alignscore": tiny.align,
    "blip2-itm": tiny.blip2_itm,
    "vqascore": tiny.llava,
    "clip-flant5": tiny.clip_flant5,
}
IMAGES = [as_input(picture(number)) for number in range(16)]


@pytest.mark.parametrize("name", KINDS)
def test_the_gpu_gives_the_scores_of_the_cpu(name, tmp_path):
    folder = str(KINDS[name](tmp_path / "m"))
    scores = [
        registry.create(
            name, options=MetricOptions(model=folder, device=device, dtype="float32")
        ).score(images=IMAGES, texts=[TEXTS] * 16).scores
        for device in ("cpu", "cuda")
    ]  # fmt: skip
    np.testing.assert_allclose(scores[1], scores[0], rtol=2e-3, atol=2e-4)


@pytest.mark.parametrize("name", KINDS)
def test_batch_size_changes_no_winner_beyond_the_noise_floor(name, tmp_path):
    metric = registry.create(
        name, options=MetricOptions(model=str(KINDS[name](tmp_path / "m")), device="cuda")
    )
    whole = np.array(metric.score(images=IMAGES, texts=[TEXTS] * 16).scores)
    single = np.array([metric.score(images=[i], texts=[TEXTS]).scores[0] for i in IMAGES])
    floor = np.abs(whole - single).max()
    gaps = whole[:, :, None] - whole[:, None, :]
    others = single[:, :, None] - single[:, None, :]
    assert (np.sign(gaps) == np.sign(others))[np.abs(gaps) > 2 * floor].all()


def test_a_batch_that_does_not_fit_asks_for_a_smaller_one(tmp_path):
    from croc_annotate.benchmark.metrics import torch_support

    with pytest.raises(MetricMemoryError), torch_support.scoring():
        torch.empty(2**45, device="cuda")
