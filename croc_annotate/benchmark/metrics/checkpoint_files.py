"""Weights read by name from a model's folder: safetensors or PyTorch files, one or many shards."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import TYPE_CHECKING

import torch
from safetensors import safe_open

from croc_annotate.benchmark.metric import MetricError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

_INDEXES = ("model.safetensors.index.json", "pytorch_model.bin.index.json")
_SINGLES = ("model.safetensors", "adapter_model.safetensors", "pytorch_model.bin")


def weight_names(folder: Path) -> list[str]:
    """Names of all weights in the folder, sorted; a MetricError where there are none."""
    return sorted(_places(folder))


def read_weights(folder: Path, names: Iterable[str]) -> dict[str, torch.Tensor]:
    """The tensors of these names, on the CPU, shard by shard."""
    places = _places(folder)
    by_file: dict[str, list[str]] = defaultdict(list)
    for name in names:
        by_file[places[name]].append(name)
    found: dict[str, torch.Tensor] = {}
    for file, wanted in by_file.items():
        found.update(_read(folder / file, wanted))
    return found


def _places(folder: Path) -> dict[str, str]:
    for index in _INDEXES:
        if (folder / index).is_file():
            return dict(json.loads((folder / index).read_text("utf-8"))["weight_map"])
    for single in _SINGLES:
        path = folder / single
        if path.is_file():
            return dict.fromkeys(_names_in(path), single)
    raise MetricError(f"{folder} holds no weights ({', '.join(_SINGLES)}).")


def _names_in(path: Path) -> list[str]:
    if path.suffix == ".safetensors":
        with safe_open(path, framework="pt") as file:
            return list(file.keys())
    return list(torch.load(path, map_location="cpu", weights_only=True, mmap=True))


def _read(path: Path, names: list[str]) -> dict[str, torch.Tensor]:
    if path.suffix == ".safetensors":
        with safe_open(path, framework="pt") as file:
            return {name: file.get_tensor(name) for name in names}
    everything = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    return {name: everything[name] for name in names}
