"""Pipelines of the tests: real ones behind the Protocol, quick, with failures on demand.

A Generator's settings steer them through `extra`:
    fits: at most so many images a batch · black / nothing / broken / crash: seeds that go wrong
    spoils: seeds that end each call they are in before its first image
    unspeakable: seeds whose facts are no JSON
    kill_after: end the process (SIGKILL) at the n-th image · delay: seconds an image
    down: the source cannot be reached · log: file that gets a line per call
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from PIL import Image

from generation.pipeline import (
    DoesNotFit,
    GeneratorSpec,
    Outcome,
    RenderedImage,
    RenderFailure,
    TryLater,
)

PATH = "tests.generation.fakes:Noise"


def noise(text: str, seed: int, size: int = 24) -> Image.Image:
    """The picture of a text and a seed: always the same, hardly ever like another."""
    draw = random.Random(f"{text}|{seed}")
    return Image.frombytes("RGB", (size, size), draw.randbytes(size * size * 3))


class Noise:
    """Draws noise that depends on text and seed alone."""

    defaults: ClassVar[Mapping[str, object]] = {"batch_size": 4}

    def __init__(self, spec: GeneratorSpec) -> None:
        self.spec = spec
        self.extra = dict(spec.settings.extra)
        self.loaded = 0
        self.made = 0

    def load(self) -> None:
        self.loaded += 1
        self._log(f"load {self.spec.slug}")
        if self.extra.get("down"):
            raise TryLater(f"{self.spec.slug} is down")

    def render(self, text: str, seeds: Sequence[int]) -> Iterator[Outcome]:
        self._log(f"render {text} {','.join(map(str, seeds))}")
        if len(seeds) > self.extra.get("fits", 1_000):
            raise DoesNotFit(f"{len(seeds)} images need too much memory")
        if set(seeds) & set(self.extra.get("spoils", [])):
            raise RuntimeError("shapes do not match")
        for seed in seeds:
            time.sleep(self.extra.get("delay", 0))
            outcome = self._one(text, seed)
            if outcome is not None:
                yield outcome
            self.made += 1
            if self.made == self.extra.get("kill_after"):
                os.kill(os.getpid(), signal.SIGKILL)

    def _one(self, text: str, seed: int) -> Outcome | None:
        for fault in ("nothing", "refused", "black", "broken", "crash", "unspeakable"):
            if seed in self.extra.get(fault, []):
                return getattr(self, f"_{fault}")(seed)
        return RenderedImage(seed, image=noise(text, seed), facts={"seconds": 0.01})

    def _nothing(self, _seed: int) -> None:
        return None

    def _refused(self, seed: int) -> Outcome:
        return RenderFailure(seed, "refused by the source")

    def _black(self, seed: int) -> Outcome:
        return RenderedImage(seed, image=Image.new("RGB", (24, 24)))

    def _broken(self, seed: int) -> Outcome:
        return RenderedImage(seed, data=b"no image")

    def _crash(self, seed: int) -> Outcome:
        raise ValueError(f"a bug at seed {seed}")

    def _unspeakable(self, seed: int) -> Outcome:
        return RenderedImage(seed, image=noise("", seed), facts={"latents": object()})

    def describe(self) -> dict[str, object]:
        return {
            "model_id": self.spec.model_id,
            "settings": self.spec.settings.as_json(),
            "device": "noise",
        }

    def close(self) -> None:
        self._log(f"close {self.spec.slug}")

    def _log(self, line: str) -> None:
        if self.extra.get("log"):
            with Path(self.extra["log"]).open("a") as out:
                out.write(line + "\n")
