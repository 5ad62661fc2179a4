"""The thread that owns the device: it renders batch after batch and never touches the database."""

from __future__ import annotations

import queue
import threading
import time
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from concurrent.futures import Future

    from generation.batching import FittingBatches
    from generation.finishing import Finished
    from generation.pipeline import Outcome


@dataclass
class Batch:
    """Seeds of one text handed to the device, and what has come back so far.

    They may be more than the device draws at once. `cancelled` ends it before its next batch.
    `encode` sends an outcome on to the encoders; the device's thread calls it and goes on.
    """

    text: str
    seeds: Sequence[int]
    encode: Callable[[Outcome], Future[Finished]]
    cancelled: bool = False
    begun: bool = False  # the device may have asked a source for some of it
    seconds: float = 0.0  # that the device took, once it is done
    # What the encoders report, as it happens; then, from the device, how many there are to be;
    # before it whatever ended the batch.
    _events: queue.SimpleQueue[Future[Finished] | BaseException | int] = field(
        default_factory=queue.SimpleQueue
    )

    def results(self) -> Iterator[Finished]:
        """Yield each seed's result as soon as it is encoded, while the device draws on.

        Raises what the pipeline raised, once all that it drew before has been yielded.
        """
        yielded, expected, trouble = 0, -1, None
        while yielded != expected:
            event = self._events.get()
            if isinstance(event, int):
                expected = event
            elif isinstance(event, BaseException):
                trouble = event
            else:
                yielded += 1
                yield event.result()
        if trouble is not None:
            raise trouble

    def run(self, batches: FittingBatches, stopped: Callable[[], bool]) -> None:
        """Render; an error travels to whoever reads the results."""
        started, drawn = time.monotonic(), 0
        try:
            over = partial(self._is_over, stopped)
            self.begun = not over()  # before the batches ask themselves: never too late
            for outcome in batches.render(self.text, self.seeds, stopped=over):
                self.encode(outcome).add_done_callback(self._events.put)
                drawn += 1
        except BaseException as error:  # noqa: BLE001 - re-raised in the reading thread
            self._events.put(error)
        finally:
            self.seconds = time.monotonic() - started
            self._events.put(drawn)

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

    def submit(
        self, text: str, seeds: Sequence[int], encode: Callable[[Outcome], Future[Finished]]
    ) -> Batch:
        """Hand a batch over; it starts when those before it are done."""
        batch = Batch(text, seeds, encode)
        self._waiting.put(batch)
        return batch

    def close(self) -> None:
        """End after the batch at hand; batches not begun are dropped."""
        self._waiting.put(None)
        self._thread.join()

    def _work(self) -> None:
        while (batch := self._waiting.get()) is not None:
            batch.run(self._batches, self._stopped)
