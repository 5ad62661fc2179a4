"""Run a metric on the files of another benchmark, or on retrieval over a release."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from django.core.files.storage import default_storage

from croc_annotate.benchmark import human_files, other_sets
from croc_annotate.benchmark.correlate import correlate
from croc_annotate.benchmark.metric import ImageInput, MetricError, Prepares
from croc_annotate.benchmark.retrieving import (
    RetrievalSet,
    build_set,
    evaluate_full,
    evaluate_pools,
    neighbours_of,
    score_pairs,
)
from croc_annotate.benchmark.winoground import CHANCE, score_examples, text_accuracy
from croc_annotate.lib.hashing import sha256_bytes
from croc_annotate.lib.imagefiles import BadImageError, rgb

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from croc_annotate.benchmark.flat_index import IndexChoice
    from croc_annotate.benchmark.metric import Metric
    from croc_annotate.benchmark.selectors import ReleaseImages

SETS: Final = (
    "winoground", "sugarcrepe", "tifa", "genai-bench", "coco-5k", "coco-1k", "flickr30k",
    "mscoco-fg", "flickr30k-fg",
)  # fmt: skip
_NEIGHBOURS: Final = 50
BATCH: Final = 16  # images at once, unless the caller says how many; halved where memory runs out


@dataclass(frozen=True)
class SetFiles:
    """Where a set's file and images lie."""

    file: Path
    images: Path
    pool: Path | None = None


def run_set(
    metric: Metric, name: str, files: SetFiles, *, batch: int = BATCH, index: IndexChoice = "auto"
) -> dict[str, Any]:
    """The set's own statistics; raises SetFileError, HumanFileError or MetricError."""
    start = time.perf_counter()
    if name == "winoground":
        result = _winoground(metric, files, batch)
    elif name == "sugarcrepe":
        result = _sugarcrepe(metric, files, batch)
    elif name in {"tifa", "genai-bench"}:
        result = _graded(metric, files, batch)
    else:
        result = _captions(metric, name, files, batch, index)
    return {
        "set": name,
        "metric": metric.describe().parts(),
        **result,
        "total_seconds": round(time.perf_counter() - start, 3),
    }


def run_retrieval(
    metric: Metric,
    images: ReleaseImages,
    *,
    pool: str = "full",
    encoder: Metric | None = None,
    batch: int = BATCH,
    index: IndexChoice = "auto",
) -> dict[str, Any]:
    """Retrieval over a release: every text against all images, or against its pair's pool."""
    members = list(images.members)
    if not members:
        raise MetricError("the release has no verified image of a scored side.")
    names = {pair: number for number, pair in enumerate(images.layout.pair_ids)}
    texts = [[m.prompt if m.role == "prompt" else m.contrast] for m in members]
    data = build_set(
        "release", [m.sha256 for m in members], texts,
        groups=[names[m.pair_slug] for m in members],
    )  # fmt: skip

    def read(row: int) -> bytes:
        with default_storage.open(members[row].storage_name) as file:
            content: bytes = file.read()
        return content

    if pool == "full":
        return {**evaluate_full(metric, data, read, batch=batch, index=index), "pool": "full"}
    if encoder is None:
        raise MetricError("--pool pair needs --neighbours-by METRIC: another, frozen encoder.")
    if encoder.describe().parts() == metric.describe().parts():
        raise MetricError("the encoder of the neighbours must not be the metric that is evaluated.")
    neighbours = neighbours_of(encoder, data, read, k=_NEIGHBOURS, batch=batch)
    return evaluate_pools(metric, data, read, neighbours, batch=batch)


def score_files(
    metric: Metric, folder: Path, wanted: Mapping[str, Sequence[str]], *, batch: int = BATCH
) -> dict[tuple[str, str], float | None]:
    """(file, text) → score; each file is decoded once for all its texts.

    Raises SetFileError for a file that is missing, unreadable or outside the folder.
    """
    scores: dict[tuple[str, str], float | None] = {}
    names = list(wanted)
    with ThreadPoolExecutor(max_workers=2) as pool:
        for start in range(0, len(names), batch):
            chunk = names[start : start + batch]
            images = pool.map(lambda name: _image(metric, folder, name), chunk)
            rows = score_pairs(metric, [(i, wanted[n]) for i, n in zip(images, chunk, strict=True)])
            for name, values in zip(chunk, rows, strict=True):
                scores |= {
                    (name, text): value for text, value in zip(wanted[name], values, strict=True)
                }
    return scores


def _winoground(metric: Metric, files: SetFiles, batch: int) -> dict[str, Any]:
    examples = other_sets.read_winoground(files.file)
    wanted: dict[str, dict[str, None]] = {}
    for example in examples:
        for name in example.images:
            wanted.setdefault(name, {}).update(dict.fromkeys(example.captions))
    found = score_files(metric, files.images, {n: list(t) for n, t in wanted.items()}, batch=batch)
    scores = np.array(
        [[[_number(found[i, c]) for i in e.images] for c in e.captions] for e in examples]
    )
    result = score_examples(scores, missing="skip")
    return {
        "text": result.text, "image": result.image, "group": result.group, "n": result.n,
        "ties": result.ties, "missing": result.missing, "chance": CHANCE,
    }  # fmt: skip


def _sugarcrepe(metric: Metric, files: SetFiles, batch: int) -> dict[str, Any]:
    """One subset, or all JSON files of a folder; the average is over subsets."""
    paths = sorted(files.file.glob("*.json")) if files.file.is_dir() else [files.file]
    subsets: dict[str, Any] = {}
    for path in paths:
        examples = other_sets.read_sugarcrepe(path)
        wanted: dict[str, dict[str, None]] = {}
        for e in examples:
            wanted.setdefault(e.images[0], {}).update(dict.fromkeys(e.captions))
        found = score_files(
            metric, files.images, {n: list(t) for n, t in wanted.items()}, batch=batch
        )
        columns = [
            np.array([_number(found[e.images[0], e.captions[k]]) for e in examples]) for k in (0, 1)
        ]
        accuracy, n, ties = text_accuracy(columns[0], columns[1])
        subsets[path.stem] = {"accuracy": accuracy, "n": n, "ties": ties}
    values = [s["accuracy"] for s in subsets.values()]
    mean = sum(values) / len(values) if values and None not in values else None
    return {"subsets": subsets, "average": mean, "chance": 0.5}


def _graded(metric: Metric, files: SetFiles, batch: int) -> dict[str, Any]:
    graded = human_files.read(files.file, need_scores=False)
    names = human_files.image_names(files.file, graded)
    wanted: dict[str, dict[str, None]] = {}  # an image may have been graded for several texts
    for name, text in names:
        wanted.setdefault(name, {})[text] = None
    found = score_files(metric, files.images, {n: list(t) for n, t in wanted.items()}, batch=batch)
    scores = np.array([_number(found[name, text]) for name, text in names])
    own = human_files.GradedSet(
        graded.keys, graded.prompt, graded.human, {metric.describe().name: scores}, graded.skills
    )
    return {"metrics": correlate(own)}


def _captions(
    metric: Metric, name: str, files: SetFiles, batch: int, index: IndexChoice
) -> dict[str, Any]:
    def read_from(data: RetrievalSet) -> Any:
        return lambda row: _bytes(files.images, data.image_keys[row])

    if name == "coco-1k":  # the mean over five folds of 1,000 images
        folds = []
        for fold in range(5):
            data = other_sets.read_karpathy(files.file, fold=fold)
            folds.append(evaluate_full(metric, data, read_from(data), batch=batch, index=index))
        return {"folds": folds, "rsum": sum(f["rsum"] for f in folds) / len(folds)}
    if name.endswith("-fg"):
        data = other_sets.read_fine_grained(files.file, pool=files.pool)
    else:
        data = other_sets.read_karpathy(files.file)
    return evaluate_full(metric, data, read_from(data), batch=batch, index=index)


def _image(metric: Metric, folder: Path, name: str) -> ImageInput:
    content = _bytes(folder, name)
    sha256 = sha256_bytes(content)
    if metric.needs == "hash":
        return ImageInput(sha256=sha256)
    try:
        pixels = rgb(content) if metric.needs == "pixels" else None
    except BadImageError as error:
        raise other_sets.SetFileError(f"{folder / name}: {error}") from error
    image = ImageInput(sha256=sha256, data=content, pixels=pixels)
    return metric.prepare(image=image) if isinstance(metric, Prepares) else image


def _bytes(folder: Path, name: str) -> bytes:
    path = (folder / name).resolve()
    if not path.is_relative_to(folder.resolve()):
        raise other_sets.SetFileError(f"{name}: outside {folder}.")
    try:
        return path.read_bytes()
    except OSError as error:
        raise other_sets.SetFileError(f"{path}: cannot be read: {error.strerror}.") from error


def _number(value: float | None) -> float:
    return float("nan") if value is None else value
