from __future__ import annotations

import gc
import tracemalloc
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="needs the gpu extra")

from croc_annotate.benchmark import registry
from croc_annotate.benchmark.metric import MetricMemoryError, MetricOptions
from croc_annotate.benchmark.metrics import torch_support
from tests.benchmark.metrics import tiny
from tests.benchmark.metrics.conftest import as_input, picture

pytestmark = pytest.mark.torch

KINDS = {
    "clipscore": tiny.clip,
    "blip2-itm": tiny.blip2_itm,
    "vqascore": tiny.llava,
    "onnx-dual-encoder": None,
}


def resident_kib() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))


@pytest.mark.field_case(43)
@pytest.mark.parametrize("name", KINDS)
def test_memory_is_flat_over_two_hundred_batches(name, tmp_path):
    """Trap 13: new texts in each batch, so that nothing is answered from a cache."""
    build = KINDS[name]
    options = MetricOptions(model=str(build(tmp_path / "m")), device="cpu") if build else None
    metric = registry.create(name, options=options)
    images = [as_input(picture(number)) for number in range(4)]

    def batch(number: int) -> None:
        own = [[f"{number} red apples", f"{number} blue cars {k}"] for k in range(4)]
        metric.score(images=images, texts=own)

    def growth(first: int) -> tuple[int, int]:
        """Of Python's memory and of the process's, over two hundred batches."""
        gc.collect()
        before = resident_kib()
        tracemalloc.start()
        for number in range(first, first + 200):
            batch(number)
        gc.collect()
        python, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return python, resident_kib() - before

    for number in range(20):
        batch(number)
    # What leaks grows each time; what other tests of this process left to be grown, once.
    rounds = []
    for number in range(3):
        python, resident = growth(20 + 200 * number)
        rounds.append((python, resident))
        if python < 3 * 2**20 and resident < 24 * 1024:
            return
    raise AssertionError(rounds)


@pytest.mark.field_case(42)
def test_a_checkpoint_is_loaded_once_whatever_the_number_of_calls(tmp_path, monkeypatch):
    metric = registry.create(
        "clipscore", options=MetricOptions(model=str(tiny.clip(tmp_path)), device="cpu")
    )
    loads, load = [], torch_support.load_model
    monkeypatch.setattr(
        torch_support, "load_model", lambda *a, **k: (loads.append(a), load(*a, **k))[1]
    )
    for number in range(5):
        metric.score(images=[as_input(picture(number))], texts=[["a"]])
    assert len(loads) == 1


def test_a_batch_that_does_not_fit_asks_for_a_smaller_one():
    for error in (
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20 GiB"),
        MemoryError(),
        RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: 8 bytes"),
    ):
        with pytest.raises(MetricMemoryError, match="does not fit"), torch_support.scoring():
            raise error


def test_another_error_of_the_model_is_not_taken_for_lack_of_memory():
    with pytest.raises(RuntimeError, match="shape"), torch_support.scoring():
        raise RuntimeError("shape mismatch")


def test_nothing_is_recorded_for_gradients(tmp_path):
    """Trap 13: eval and inference mode."""
    metric = registry.create(
        "clipscore", options=MetricOptions(model=str(tiny.clip(tmp_path)), device="cpu")
    )
    model = metric._model()
    modes = []
    model.vision_model.register_forward_hook(
        lambda module, args, out: modes.append(
            (module.training, torch.is_inference_mode_enabled(), out.pooler_output.requires_grad)
        )
    )
    metric.score(images=[as_input(picture(1))], texts=[["a"]])
    assert modes == [(False, True, False)]
