"""Batches that fit: halve on memory errors, go on, and give up only what does not fit alone."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from generation.pipeline import DoesNotFit, Outcome, Pipeline, PipelineError, RenderFailure

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

logger = logging.getLogger(__name__)

# A broken installation must not use up all candidates as failures within minutes.
ERRORS_IN_A_ROW = 5


class FittingBatches:
    """Renders any number of seeds; remembers the batch size that the device could hold."""

    def __init__(self, pipeline: Pipeline) -> None:
        self.pipeline = pipeline
        self.size = pipeline.spec.settings.batch_size
        self._errors = 0

    def render(
        self, text: str, seeds: Sequence[int], *, stopped: Callable[[], bool] = lambda: False
    ) -> Iterator[Outcome]:
        """Yield exactly one outcome per seed, whatever the pipeline does about memory.

        Asks `stopped` before each batch; once it says so, the remaining seeds have no outcome.
        """
        waiting = list(seeds)
        while waiting and not stopped():
            part = waiting[: self.size]
            done: set[int] = set()
            try:
                for outcome in self.pipeline.render(text, part):
                    if outcome.seed in part and outcome.seed not in done:
                        done.add(outcome.seed)
                        yield outcome
                self._errors = 0
                yield from self._failed(part, done, "the pipeline answered with no image")
                done = set(part)
            except DoesNotFit as error:
                if len(part) == 1:
                    yield RenderFailure(part[0], f"does not fit into memory, even alone: {error}")
                    done = set(part)
                else:
                    self.size = len(part) // 2
                    logger.warning("Out of memory at %d images; now %d", len(part), self.size)
            except PipelineError:
                raise
            except Exception as error:  # noqa: BLE001 - any pipeline may raise anything
                yield from self._failed(part, done, self._reason(error))
                done = set(part)
            waiting = [seed for seed in waiting if seed not in done]

    def _failed(self, part: Sequence[int], done: set[int], reason: str) -> Iterator[Outcome]:
        for seed in part:
            if seed not in done:
                yield RenderFailure(seed, reason)

    def _reason(self, error: Exception) -> str:
        """One unexpected error fails its images; many in a row mean that nothing can work."""
        logger.error("The pipeline raised an unexpected error", exc_info=error)
        self._errors += 1
        reason = f"{type(error).__name__}: {error}"
        if self._errors >= ERRORS_IN_A_ROW:
            raise PipelineError(
                f"{self._errors} batches in a row ended in an error, the last with {reason}"
            ) from error
        return reason
