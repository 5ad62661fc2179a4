"""The export beside `cp -r` and `tar` of the same files; memory of every format.

Everything is in the page cache when a clock starts, and each clock, ours and theirs, stops when
the data is on the disk (`sync`). Ours reads the rows of the release, checks the hash of each image,
writes the table, the manifest and all that stands beside the data.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.benchmarks.frame import Row

ROOT = Path(__file__).resolve().parents[2]
FORMATS = ("crochum", "imagefolder", "parquet", "webdataset", "sft")
MEMORY_LIMIT_MB = 200
# Runs a command and prints its peak memory (kB). Between us and the command stands this small
# process, because on Linux the peak of a child begins with that of the process it forked from.
PEAK = (
    "import resource, subprocess, sys; code = subprocess.call(sys.argv[1:]); "
    "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr); sys.exit(code)"
)
FULL = 23_800


def run(quick: bool) -> list[Row]:
    """23,800 images of 512 px (2,000 when quick), every format."""
    return measured(2_000 if quick else FULL, 512)


def measured(images: int, side: int) -> list[Row]:
    """The rows of one size, in a folder that is removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="croc-bench-export-") as folder:
        world = World(Path(folder))
        world.build(images, side)
        copied = timed(["cp", "-r", str(world.originals), str(world.root / "copy")])
        shutil.rmtree(world.root / "copy")
        packed = timed(
            ["tar", "-cf", str(world.root / "copy.tar"), "-C", str(world.originals), "."]
        )
        (world.root / "copy.tar").unlink()
        rows = []
        for name in FORMATS:
            took, peak = world.export(name)
            peer = packed if name in ("parquet", "webdataset", "sft") else copied
            note = f"peer: {'tar' if peer is packed else 'cp -r'} of {world.megabytes:.0f} MB"
            rows.append(Row(f"export {name}", took, peer, "s", peer / took, images, peak, note))
        most = max(row.memory_mb or 0.0 for row in rows)
        rows.append(
            Row("export peak memory", most, MEMORY_LIMIT_MB, "MB", MEMORY_LIMIT_MB / most, images)
        )
        return rows


class World:
    """A database and a media folder of the measurement's own."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.originals = root / "media" / "originals"
        self.env = {
            **os.environ,
            "DATABASE_URL": f"sqlite:///{root}/bench.sqlite3",
            "REDIS_URL": "",
            "MEDIA_ROOT": str(root / "media"),
            "DJANGO_SETTINGS_MODULE": "croc_annotate.settings",
            "SECRET_KEY": "a key for measurements only, long enough",
            "LOG_LEVEL": "WARNING",
        }
        self.megabytes = 0.0

    def build(self, images: int, side: int) -> None:
        """Fill it, and bring the files into the page cache."""
        words = [sys.executable, "-m", "tests.benchmarks.export_world", str(images), str(side)]
        subprocess.run(words, cwd=ROOT, env=self.env, check=True)
        self.megabytes = (
            sum(len(path.read_bytes()) for path in self.originals.rglob("*.png")) / 1_000_000
        )

    def export(self, name: str) -> tuple[float, float]:
        """Seconds of the export itself and the peak memory of its process in MB."""
        out = self.root / "out"
        words = [sys.executable, "manage.py", "export_crochum", "--format", name, "--json"]
        with tempfile.TemporaryFile() as answer:
            process = subprocess.run(
                [sys.executable, "-c", PEAK, *words, "--out", str(out)], cwd=ROOT, env=self.env,
                stdout=answer, stderr=subprocess.PIPE, check=False,
            )  # fmt: skip
            if process.returncode:
                raise RuntimeError(f"the export as {name} failed")
            answer.seek(0)
            took = float(json.loads(answer.read())["seconds"])
            peak = int(process.stderr.split()[-1]) / 1024
        shutil.rmtree(out)
        return took, peak


def timed(words: list[str]) -> float:
    """Seconds of a command and of bringing what it wrote to the disk."""
    os.sync()
    start = time.perf_counter()
    subprocess.run(words, check=True)
    os.sync()
    return time.perf_counter() - start
