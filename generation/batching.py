"""Batches that fit: halve on memory errors, go on, and give up only what fails alone too."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from generation.pipeline import DoesNotFit, Outcome, Pipeline, PipelineError, RenderFailure
from generation.streak import Streak, reason_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

logger = logging.getLogger(__name__)

# Where so many seeds alone meet the error of their batch and none works, no seed is to blame.
_ALONE_IN_VAIN = 2


class FittingBatches:
    """Renders any number of seeds; remembers the batch size that the device could hold."""

    def __init__(self, pipeline: Pipeline) -> None:
        self.pipeline = pipeline
        self.size = pipeline.spec.settings.batch_size
        self._errors = Streak("batches in a row ended in an error")

    def render(
        self, text: str, seeds: Sequence[int], *, stopped: Callable[[], bool] = lambda: False
    ) -> Iterator[Outcome]:
        """Yield exactly one outcome per seed, whatever the pipeline does about memory.

        Asks `stopped` before each call; once it says so, the remaining seeds have no outcome.
        """
        waiting = list(seeds)
        while waiting and not stopped():
            part = waiting[: self.size]
            done: set[int] = set()
            try:
                yield from self._answers(text, part, done)
                self._errors.end()
            except DoesNotFit as error:
                if len(part) == 1:
                    yield _too_large(part[0], error)
                    done = set(part)
                else:
                    self.size = len(part) // 2
                    logger.warning("Out of memory at %d images; now %d", len(part), self.size)
            except PipelineError:
                raise
            except Exception as error:  # noqa: BLE001 - any pipeline may raise anything
                reason = self._errors.meet(error)
                yield from self._apart(text, part, done, reason, stopped)
            waiting = [seed for seed in waiting if seed not in done]

    def _answers(self, text: str, part: Sequence[int], done: set[int]) -> Iterator[Outcome]:
        """Ask the pipeline once; put right what it answers too often or not at all."""
        for outcome in self.pipeline.render(text, part):
            if outcome.seed in part and outcome.seed not in done:
                done.add(outcome.seed)
                yield outcome
        for seed in part:
            if seed not in done:
                done.add(seed)
                yield RenderFailure(seed, "the pipeline answered with no image")

    def _apart(
        self,
        text: str,
        part: Sequence[int],
        done: set[int],
        reason: str,
        stopped: Callable[[], bool],
    ) -> Iterator[Outcome]:
        """After an error of a whole call: only the seeds that meet it alone too fail.

        Bounded: an error that is not one seed's is met by the first ones already, and the
        others are not asked for again.
        """
        in_vain = _ALONE_IN_VAIN if len(part) == 1 else 0  # that one was alone
        worked = bool(done)
        for seed in [seed for seed in part if seed not in done]:
            if stopped():
                return
            if worked or in_vain < _ALONE_IN_VAIN:
                try:
                    yield from self._answers(text, [seed], done)
                    worked = True
                    self._errors.end()
                    continue
                except DoesNotFit as error:
                    reason = _too_large(seed, error).reason
                except PipelineError:
                    raise
                except Exception as error:  # noqa: BLE001 - as above
                    reason = reason_of(error)
                in_vain += 1
            done.add(seed)
            yield RenderFailure(seed, reason)


def _too_large(seed: int, error: DoesNotFit) -> RenderFailure:
    return RenderFailure(seed, f"does not fit into memory, even alone: {error}")
