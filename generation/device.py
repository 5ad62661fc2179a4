"""The thread that owns the device: it renders batch after batch and never touches the database."""

from __future__ import annotations

import queue
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from generation.batching import FittingBatches
    from generation.pipeline import Outcome


@dataclass
class Batch:
    """Seeds of one text handed to the device, and what has come back so far."""

    text: str
    seeds: Sequence[int]
    started: bool = False
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

    def run(self, render: Callable[[str, Sequence[int]], Iterator[Outcome]]) -> None:
        """Render into the queue; an error travels to whoever reads the outcomes."""
        self.started = True
        try:
            for outcome in render(self.text, self.seeds):
                self._results.put(outcome)
        except BaseException as error:  # noqa: BLE001 - re-raised in the reading thread
            self._results.put(error)
        finally:
            self._results.put(None)


class Device:
    """Runs batches in order in one thread, so that the next is there when one ends."""

    def __init__(self, batches: FittingBatches) -> None:
        self._batches = batches
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
            if batch.cancelled:
                continue
            batch.run(self._batches.render)
