"""Images per second and busy share of one GPU: ViT-L/14 and a 7 B vision language model.

    python -m tests.gpu.measure_metrics [--images 512] [--workers 8] [--tiny]

Random weights of real size, 1024×1024 PNG files with two texts each. For each model it prints
images/s with decoding in threads, images/s with the images ready in memory (so: is it decoding
that holds it up?), the GPU's mean utilisation by nvidia-smi, and the noise floor: the largest
difference of a score between batch sizes, and whether a winner changed.
`--tiny` runs the same script within seconds on a CPU: does it work at all?
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch

from croc_annotate.benchmark import registry
from croc_annotate.benchmark.metric import ImageInput, Metric, MetricOptions, Prepares
from tests.benchmark.metrics import tiny
from tests.benchmarks import bench_metrics as bench


@contextmanager
def gpu_busy() -> Iterator[list[float]]:
    """Utilisation in percent, asked of nvidia-smi five times a second."""
    seen: list[float] = []
    done = threading.Event()

    def watch() -> None:
        ask = ["nvidia-smi", "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits"]
        while not done.wait(0.2):
            answer = subprocess.run(ask, capture_output=True, text=True, check=False)
            if answer.returncode == 0:
                seen.append(float(answer.stdout.split()[0]))

    thread = threading.Thread(target=watch)
    if shutil.which("nvidia-smi"):
        thread.start()
    try:
        yield seen
    finally:
        done.set()
        if thread.is_alive():
            thread.join()


def opened(metric: Metric, data: bytes) -> ImageInput:
    image = bench.opened(data)
    return metric.prepare(image=image) if isinstance(metric, Prepares) else image


def rate(metric: Metric, files: list[bytes], *, batch: int, workers: int) -> float:
    """Images per second with the files decoded in threads ahead of the model."""
    start = time.perf_counter()
    with ThreadPoolExecutor(workers) as pool:
        coming = [pool.submit(opened, metric, data) for data in files]
        for first in range(0, len(files), batch):
            images = [one.result() for one in coming[first : first + batch]]
            metric.score(images=images, texts=[bench.TEXTS] * len(images))
    _wait()
    return len(files) / (time.perf_counter() - start)


def rate_without_decoding(metric: Metric, images: list[ImageInput], *, batch: int) -> float:
    start = time.perf_counter()
    for first in range(0, len(images), batch):
        part = images[first : first + batch]
        metric.score(images=part, texts=[bench.TEXTS] * len(part))
    _wait()
    return len(images) / (time.perf_counter() - start)


def noise(metric: Metric, images: list[ImageInput]) -> tuple[float, int]:
    """Largest difference of a score, and winners that changed, between batch sizes 1, 3 and 16."""
    tables = []
    for batch in (1, 3, 16):
        rows: list[list[float]] = []
        for first in range(0, len(images), batch):
            part = images[first : first + batch]
            rows += metric.score(images=part, texts=[bench.TEXTS] * len(part)).scores
        tables.append(np.array(rows, dtype=np.float64))
    gaps = [np.abs(table - tables[0]).max() for table in tables[1:]]
    signs = [np.sign(table[:, 0] - table[:, 1]) for table in tables]
    return float(max(gaps)), int(sum((sign != signs[0]).sum() for sign in signs[1:]))


def measure(name: str, metric: Metric, files: list[bytes], *, batch: int, workers: int) -> None:
    warm = [opened(metric, data) for data in files[:batch]]
    metric.score(images=warm, texts=[bench.TEXTS] * len(warm))
    on_gpu = torch.cuda.is_available()
    if on_gpu:
        torch.cuda.reset_peak_memory_stats()
    with gpu_busy() as seen:
        whole = rate(metric, files, batch=batch, workers=workers)
    ready = [opened(metric, data) for data in files[: 4 * batch]]
    alone = rate_without_decoding(metric, ready, batch=batch)
    gap, changed = noise(metric, ready[:32])
    busy = f"{np.mean(seen):.0f} %" if seen else "not measured"
    bound = "decode-bound" if whole < 0.8 * alone else "model-bound"
    memory = torch.cuda.max_memory_allocated() / 2**30 if on_gpu else 0.0
    print(
        f"{name}: {whole:.1f} images/s with decoding, {alone:.1f} without ({bound}); GPU busy "
        f"{busy}; peak {memory:.1f} GiB; noise floor {gap:.2g}, {changed} winners changed",
        flush=True,
    )


def _wait() -> None:
    """Until the device has done all that it was given."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def random_clip(folder: Path) -> Metric:
    from transformers import CLIPModel

    bench.make_clip(folder, "ViT-L/14")
    metric = registry.create("clipscore", options=MetricOptions(model=str(folder), device="cuda"))
    metric._loaded = CLIPModel(bench.clip_config("ViT-L/14")).eval().to("cuda")
    return metric


def tiny_metrics(folder: Path) -> Iterator[tuple[str, Metric, int]]:
    """The same metrics around models of the tests."""
    for name, save in (("clipscore", tiny.clip), ("vqascore", tiny.llava)):
        path = str(save(folder / name))
        metric = registry.create(name, options=MetricOptions(model=path, dtype="float32"))
        yield f"{name} tiny", metric, 4


def real_metrics(folder: Path) -> Iterator[tuple[str, Metric, int]]:
    """Name, metric and batch size; one model in memory at a time."""
    yield "clipscore ViT-L/14 fp32", random_clip(folder / "clip"), 64
    yield "vqascore LLaVA 7 B bf16", bench.make_vlm(folder / "vlm", large=True), 16


def main() -> None:
    """Measure each metric; a model that answers in seconds gets fewer images."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--images", type=int, default=512)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--tiny", action="store_true", help="tiny models: test the script")
    options = parser.parse_args()
    if not options.tiny and not torch.cuda.is_available():
        raise SystemExit("There is no CUDA device here; --tiny tests the script.")
    different = min(options.images, 64)
    files = [bench.png(number, 64 if options.tiny else 1024) for number in range(different)]
    files = (files * (options.images // different + 1))[: options.images]
    with tempfile.TemporaryDirectory() as folder:
        metrics = tiny_metrics if options.tiny else real_metrics
        for name, metric, batch in metrics(Path(folder)):
            count = max(32, options.images // 8) if name.startswith("vqascore") else None
            measure(name, metric, files[:count], batch=batch, workers=options.workers)
            metric.close()


if __name__ == "__main__":
    main()
