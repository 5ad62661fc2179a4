"""A metric that takes its time and writes down what it computed, for processes that are killed."""

from __future__ import annotations

import os
import time
from pathlib import Path

from croc_annotate.benchmark.metric import MetricFacts, ScoreBatch
from croc_annotate.lib.hashing import stable_unit


class Slow:
    """Scores from hashes, 20 ms an image; each image's hash is logged."""

    needs = "hash"

    def __init__(self, *, options):
        self.log = Path(os.environ["SLOW_LOG"])

    def describe(self):
        return MetricFacts(name="slow", label="Slow")

    def score(self, *, images, texts):
        time.sleep(0.02 * len(images))
        with self.log.open("a") as out:
            out.writelines(f"{image.sha256}\n" for image in images)
        return ScoreBatch(
            scores=[
                [stable_unit(image.sha256, text) for text in own]
                for image, own in zip(images, texts, strict=True)
            ]
        )

    def close(self):
        pass
