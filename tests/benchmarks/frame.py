"""The frame of all measurements: rows, a table, .bench/results.json, time and memory of a call."""

from __future__ import annotations

import json
import multiprocessing
import os
import platform
import resource
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).resolve().parents[2] / ".bench" / "results.json"


@dataclass(frozen=True)
class Row:
    """One measurement. ``ratio`` is ours against the peer, so that larger is better for us."""

    name: str
    ours: float
    peer: float | None = None
    unit: str = "s"
    ratio: float | None = None
    n: int | None = None
    memory_mb: float | None = None
    note: str = ""


def seconds(call: Callable[[], Any], *, repeat: int = 3) -> float:
    """The median wall time of ``repeat`` calls, in seconds."""
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def _child(call: Callable[[], Any], pipe: Any) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    value = call()
    took = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    pipe.send((took, after / 1024, before / 1024, value))


def in_child(call: Callable[[], Any]) -> tuple[float, float, Any]:
    """Seconds, peak resident MB (of the whole process) and result of ``call`` in a forked child."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    process = context.Process(target=_child, args=(call, theirs))
    process.start()
    theirs.close()
    try:
        took, peak, _before, value = ours.recv()
    except EOFError:
        raise RuntimeError("The measured call ended without a result") from None
    finally:
        process.join()
    return took, peak, value


def machine() -> dict[str, Any]:
    """What the numbers were taken on."""
    return {
        "python": platform.python_version(),
        "cores": len(os.sched_getaffinity(0)),
        "machine": platform.machine(),
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def show(rows: list[Row]) -> str:
    """The rows as a table."""
    head = ["measurement", "ours", "peer/limit", "unit", "ratio", "n", "MB", "note"]
    body = [
        [
            row.name,
            f"{row.ours:.4g}",
            "" if row.peer is None else f"{row.peer:.4g}",
            row.unit,
            "" if row.ratio is None else f"{row.ratio:.2f}",
            "" if row.n is None else f"{row.n:,}",
            "" if row.memory_mb is None else f"{row.memory_mb:.0f}",
            row.note,
        ]
        for row in rows
    ]
    widths = [max(len(line[i]) for line in [head, *body]) for i in range(len(head))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in [head, *body]
    )


def save(results: dict[str, list[Row]]) -> None:
    """Write all rows, keeping those of measurements that were not run now."""
    old = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    old["machine"] = machine()
    for name, rows in results.items():
        old[name] = [asdict(row) for row in rows]
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(old, indent=2, ensure_ascii=False))
