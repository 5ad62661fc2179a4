"""The thread that owns the device: it renders batch after batch and never touches the database."""

from __future__ import annotations

import queue
import threading
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from generation.batching import FittingBatches
    from generation.pipeline import Outcome


@dataclass
class Batch:
    """Seeds of one text handed to the device, and what has come back so far.

    They may be more than the device draws at once. `cancelled` ends it before its next batch.
    """

    text: str
    seeds: Sequence[int]
    cancelled: bool = False
    _results: queue.SimpleQueue[Outcome | BaseException | None] = field(
        default_factory=queue.SimpleQueue
    )

    def outcomes(self) -> Iterator[Outcome]:
        """Yield outcomes as they come; raises what the pipeline raised."""
        while (result := self._results.get()) is not None:
            if isinstance(result, BaseException):
                raise result
            yield result

    def run(self, batches: FittingBatches, stopped: Callable[[], bool]) -> None:
        """Render into the queue; an error travels to whoever reads the outcomes."""
        try:
            over = partial(self._is_over, stopped)
            for outcome in batches.render(self.text, self.seeds, stopped=over):
                self._results.put(outcome)
        except BaseException as error:  # noqa: BLE001 - re-raised in the reading thread
            self._results.put(error)
        finally:
            self._results.put(None)

    def _is_over(self, stopped: Callable[[], bool]) -> bool:
        return self.cancelled or stopped()


class Device:
    """Runs batches in order in one thread, so that the next is there when one ends."""

    def __init__(
        self, batches: FittingBatches, *, stopped: Callable[[], bool] = lambda: False
    ) -> None:
        self._batches, self._stopped = batches, stopped
        self._waiting: queue.SimpleQueue[Batch | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="device", daemon=True)
        self._thread.start()

    def submit(self, text: str, seeds: Sequence[int]) -> Batch:
        """Hand a batch over; it starts when those before it are done."""
        batch = Batch(text, seeds)
        self._waiting.put(batch)
        return batch

    def close(self) -> None:
        """End after the batch at hand; batches not begun are dropped."""
        self._waiting.put(None)
        self._thread.join()

    def _work(self) -> None:
        while (batch := self._waiting.get()) is not None:
            batch.run(self._batches, self._stopped)
