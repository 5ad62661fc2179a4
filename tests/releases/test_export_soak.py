"""Ten times the size of the real benchmark: the memory of an export does not grow with it.

About 18 minutes on two busy cores, 8 of them to make the rows and files; 2 GB of disk.
"""

from __future__ import annotations

import time

import pytest

from tests.benchmarks.bench_export import FORMATS, MEMORY_LIMIT_MB, World

ROWS = 240_000


@pytest.mark.soak
@pytest.mark.timeout(7_200)
def test_memory_stays_under_the_limit_at_240_000_images(tmp_path):
    world = World(tmp_path)
    # Small pictures: the number of rows is the question, not the number of bytes.
    start = time.monotonic()
    world.build(ROWS, 32)
    print(f"built in {time.monotonic() - start:.0f} s", flush=True)
    peaks = {}
    for name in FORMATS:
        done = world.export(name)
        peaks[name] = done.megabytes
        # With ``-s``: how far it is.
        print(f"{name}: {done.seconds:.0f} s, {done.megabytes:.0f} MB", flush=True)
    assert max(peaks.values()) < MEMORY_LIMIT_MB, peaks
