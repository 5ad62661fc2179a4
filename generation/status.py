"""Where generation stands: the same figures for the terminal and for the page."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from django.db.models import F

from croc_annotate.candidates.models import Worker
from croc_annotate.candidates.selectors import (
    Cell,
    FailureGroup,
    failures_by_reason,
    progress_table,
    rendered_since,
)
from generation.heart import LEASE

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

_RATE_WINDOW = timedelta(minutes=10)
_WORKERS_SHOWN = timedelta(hours=24)


@dataclass(frozen=True)
class WorkerLine:
    """A worker as the page shows it."""

    name: str
    device: str
    doing: str
    images_done: int
    heartbeat_at: datetime
    state: str  # alive | silent | stopped


@dataclass(frozen=True)
class Row:
    """A category with a cell per generator, None where the two never met."""

    category: str
    cells: Sequence[Cell | None]


@dataclass(frozen=True)
class Status:
    """Everything on the generation page, as of one moment."""

    at: datetime
    cells: Sequence[Cell]
    rendered: int
    waiting: int
    failed: int
    per_minute: float
    eta: datetime | None
    workers: Sequence[WorkerLine]
    failures: Sequence[FailureGroup]

    @property
    def total(self) -> int:
        """All candidates."""
        return self.rendered + self.waiting + self.failed

    @property
    def share(self) -> float:
        """Rendered of all, 0…1."""
        return self.rendered / self.total if self.total else 0.0

    @property
    def generators(self) -> list[str]:
        """The generators that have candidates."""
        return sorted({cell.generator for cell in self.cells})

    @property
    def rows(self) -> list[Row]:
        """The cells as a table: a row per category, a column per generator."""
        at = {(cell.category, cell.generator): cell for cell in self.cells}
        return [
            Row(category, [at.get((category, generator)) for generator in self.generators])
            for category in dict.fromkeys(cell.category for cell in self.cells)
        ]

    @property
    def alive(self) -> int:
        """Workers that were heard of lately."""
        return sum(worker.state == "alive" for worker in self.workers)


def generation_status(*, at: datetime) -> Status:
    """Count everything once."""
    cells = progress_table()
    waiting = sum(cell.waiting for cell in cells)
    per_minute = _rate(at)
    return Status(
        at=at,
        cells=cells,
        rendered=sum(cell.rendered for cell in cells),
        waiting=waiting,
        failed=sum(cell.failed for cell in cells),
        per_minute=per_minute,
        eta=forecast(at=at, waiting=waiting, per_minute=per_minute),
        workers=_workers(at),
        failures=failures_by_reason(),
    )


def _rate(at: datetime) -> float:
    """Images a minute lately; a run that began a moment ago is not divided by the whole window."""
    n, first = rendered_since(at - _RATE_WINDOW)
    if first is None:
        return 0.0
    return n / max((at - first).total_seconds() / 60, 1.0)


def forecast(*, at: datetime, waiting: int, per_minute: float) -> datetime | None:
    """When the last waiting image will be there at this rate; None when that cannot be said."""
    if not waiting or not per_minute:
        return None
    return at + timedelta(minutes=waiting / per_minute)


def status_lines(status: Status) -> Iterable[str]:
    """The status as a table for a terminal."""
    width = max([len("generator"), *(len(cell.generator) for cell in status.cells)])
    yield f"{'category':<18}{'generator':<{width + 2}}{'done':>9}{'waiting':>9}{'failed':>8}"
    for cell in status.cells:
        yield (
            f"{cell.category:<18}{cell.generator:<{width + 2}}"
            f"{cell.rendered:>9,}{cell.waiting:>9,}{cell.failed:>8,}"
        )
    rate = f"{status.per_minute:,.1f} images a minute over the last 10 minutes"
    eta = f", done about {status.eta:%Y-%m-%d %H:%M} UTC" if status.eta else ""
    yield f"{rate}{eta}; {status.alive} workers alive"
    for group in status.failures[:10]:
        yield f"failed {group.count:,} × {group.generator}: {group.example}"


def _workers(at: datetime) -> list[WorkerLine]:
    rows = Worker.objects.filter(heartbeat_at__gte=at - _WORKERS_SHOWN, queue__in=("gpu", "here"))
    return [
        WorkerLine(
            name=row.name,
            device=row.device,
            doing=row.doing,
            images_done=row.images_done,
            heartbeat_at=row.heartbeat_at,
            state=_state(row, at),
        )
        for row in rows.order_by(F("stopped_at").desc(nulls_first=True), "-heartbeat_at")
    ]


def _state(row: Worker, at: datetime) -> str:
    if row.stopped_at is not None:
        return "stopped"
    return "alive" if row.heartbeat_at >= at - LEASE else "silent"
