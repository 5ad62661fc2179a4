"""Metrics for tests: deterministic, countable, and able to fail on demand."""

from __future__ import annotations

from croc_annotate.benchmark.metric import (
    MetricError,
    MetricFacts,
    MetricMemoryError,
    ScoreBatch,
    check_batch,
)
from croc_annotate.lib.hashing import stable_unit


class Counting:
    """Scores from hashes; counts what it is asked for over the whole test process.

    Options (`extra`): die_after (number of batches), memory (images that fit at once),
    blank (texts with this word have no score), flaky (and may have one the next time), needs, name.
    """

    calls: list[tuple[str, str]] = []
    batches: list[int] = []
    built = 0
    closed = 0

    def __init__(self, *, options):
        type(self).built += 1
        self.extra = dict(options.extra)
        self.needs = self.extra.get("needs", "hash")
        self.name = self.extra.get("name", "counting")
        self.revision = options.revision or "1"

    @classmethod
    def reset(cls):
        cls.calls, cls.batches, cls.built, cls.closed = [], [], 0, 0

    def describe(self):
        return MetricFacts(
            name=self.name,
            label=self.name.title(),
            revision=self.revision,
            deterministic="flaky" not in self.extra,
        )

    def score(self, *, images, texts):
        check_batch(images, texts)
        if len(images) > int(self.extra.get("memory", 10_000)):
            raise MetricMemoryError("out of memory")
        if len(self.batches) >= int(self.extra.get("die_after", 10_000)):
            raise KeyboardInterrupt
        if "broken" in self.extra:
            raise MetricError("the model file is damaged.")
        self.batches.append(len(images))
        scores = []
        for image, own in zip(images, texts, strict=True):
            if self.needs == "pixels":
                assert image.pixels.mode == "RGB"
            self.calls.extend((image.sha256, text) for text in own)
            scores.append([self._score(image.sha256, text) for text in own])
        long = frozenset(t for own in texts for t in own if "long" in self.extra)
        missing = any(v is None for row in scores for v in row)
        return ScoreBatch(
            scores=scores, truncated=long, reasons=("no noun phrase",) if missing else ()
        )

    def _score(self, sha256, text):
        blank = self.extra.get("blank")
        return None if blank and blank in text else stable_unit(self.revision, sha256, text)

    def close(self):
        type(self).closed += 1


class Encoder:
    """What the dual encoders of the tests share; a subclass says its `name` and its `rows`."""

    needs = "hash"
    name = ""

    def __init__(self, *, options):
        pass

    def describe(self):
        return MetricFacts(name=self.name)

    def rows(self, keys):
        """The embeddings of hashes or texts, (n, d)."""
        raise NotImplementedError

    def embed_images(self, *, images):
        return self.rows([image.sha256 for image in images])

    def embed_texts(self, *, texts):
        return self.rows(list(texts))

    def similarity(self, *, images, texts):
        return images @ texts.T

    def truncated(self, *, texts):
        return frozenset()

    def score(self, *, images, texts):
        return ScoreBatch(
            scores=[
                [float(seen @ text) for text in self.embed_texts(texts=own)]
                for seen, own in zip(self.embed_images(images=images), texts, strict=True)
            ]
        )

    def close(self):
        pass
