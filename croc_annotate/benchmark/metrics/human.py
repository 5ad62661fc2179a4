"""`human`: how one person who had no part in choosing the images would score.

The votes come from outside (`MetricOptions.reference_votes`): judgements with purpose `reference`,
which the consensus never sees. Votes that chose the images would flatter this row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from croc_annotate.benchmark.metric import (
    ImageInput,
    ImageNeed,
    MetricError,
    MetricFacts,
    MetricOptions,
    ScoreBatch,
    check_batch,
    check_options,
)
from croc_annotate.lib.hashing import canonical_json, sha256_text

if TYPE_CHECKING:
    from collections.abc import Sequence

NO_VOTES = (
    "Metric 'human' needs votes that were kept out of the selection (judgements with purpose "
    "'reference'), and this release has none."
)


class HumanMetric:
    """1 for an accept, 0 for a reject, missing where nobody gave a reference vote."""

    needs: ImageNeed = "hash"

    def __init__(self, *, options: MetricOptions) -> None:
        check_options(options, "human")
        if not options.reference_votes:
            raise MetricError(NO_VOTES)
        self._votes = dict(options.reference_votes)
        rows = sorted([image, text, vote] for (image, text), vote in self._votes.items())
        self._digest = sha256_text(canonical_json(rows))

    def describe(self) -> MetricFacts:
        """The votes themselves are the revision: one more vote is another metric."""
        return MetricFacts(
            name="human",
            label="Human (one held-out vote)",
            revision=self._digest,
            ties="half",
            source="judgements with purpose 'reference'",
        )

    def score(self, *, images: Sequence[ImageInput], texts: Sequence[Sequence[str]]) -> ScoreBatch:
        """Look the votes up; a pair without one is missing."""
        check_batch(images, texts)
        scores = [
            [self._vote(image.sha256, text) for text in own]
            for image, own in zip(images, texts, strict=True)
        ]
        missing = any(value is None for row in scores for value in row)
        return ScoreBatch(scores=scores, reasons=("no reference vote",) if missing else ())

    def close(self) -> None:
        """Nothing is held."""

    def _vote(self, image: str, text: str) -> float | None:
        vote = self._votes.get((image, text))
        return None if vote is None else float(vote)
