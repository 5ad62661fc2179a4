"""The export beside `cp -r` and `tar` of the same files; memory of every format; freezing.

The images are PNGs of 512 px with the grain of a photograph, about 290 KB each, all different. Before
a clock starts they are read once (so that they are in the page cache, where that is large enough) and
the disk is quiet (`sync`); each clock, ours and theirs, stops when the data is on the disk (`sync`
again). The peers run before and after our formats, and their mean counts: the note has both times.
Ours also reads the rows of the release, checks the hash of each image, hashes what it writes, and
writes the table, the manifest and all that stands beside the data. CPU is of the whole command, with
the start of Python.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from tests.benchmarks.bench_agreement import database
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
FREEZE_LIMIT_S = 10.0


def run(quick: bool) -> list[Row]:
    """23,800 images of 512 px (2,000 when quick), every format."""
    exports = measured(2_000 if quick else FULL, 512)
    return [*exports, freezing(seeds=5 if quick else 50)]


def measured(images: int, side: int) -> list[Row]:
    """The rows of one size, in a folder that is removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="croc-bench-export-") as folder:
        world = World(Path(folder))
        world.build(images, side)
        before = world.peers()
        found = {name: world.export(name) for name in FORMATS}
        after = world.peers()
        rows = []
        for name, done in found.items():
            tool = "tar" if name in ("parquet", "webdataset", "sft") else "cp -r"
            times = [run[tool].seconds for run in (before, after)]
            peer = sum(times) / 2
            note = (
                f"peer: {tool} of {world.megabytes:.0f} MB, {times[0]:.1f} and {times[1]:.1f} s;"
                f" CPU {done.cpu:.1f} s, its {before[tool].cpu:.1f} s"
            )
            rows.append(
                Row(f"export {name}", done.seconds, peer, "s", peer / done.seconds, images,
                    done.megabytes, note)
            )  # fmt: skip
        most = max(row.memory_mb or 0.0 for row in rows)
        rows.append(
            Row("export peak memory", most, MEMORY_LIMIT_MB, "MB", MEMORY_LIMIT_MB / most, images)
        )
        return rows


@dataclass(frozen=True)
class Done:
    """What a command took: wall and CPU seconds, peak memory in MB (0 where it was not measured)."""

    seconds: float
    cpu: float
    megabytes: float = 0.0


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

    def warm(self) -> None:
        """Bring the originals into the page cache and everything else to the disk."""
        for path in self.originals.rglob("*.png"):
            path.read_bytes()
        os.sync()

    def peers(self) -> dict[str, Done]:
        """`cp -r` and `tar` of the originals."""
        copy, archive = self.root / "copy", self.root / "copy.tar"
        self.warm()
        found = {"cp -r": timed(["cp", "-r", str(self.originals), str(copy)])}
        shutil.rmtree(copy)
        self.warm()
        found["tar"] = timed(["tar", "-cf", str(archive), "-C", str(self.originals), "."])
        archive.unlink()
        return found

    def export(self, name: str) -> Done:
        """The export itself: its own clock (with `sync`), CPU and peak memory of its process."""
        self.warm()
        out = self.root / "out"
        words = [sys.executable, "manage.py", "export_crochum", "--format", name, "--json"]
        start = cpu_of_children()
        with tempfile.TemporaryFile() as answer:
            process = subprocess.run(
                [sys.executable, "-c", PEAK, *words, "--out", str(out)], cwd=ROOT, env=self.env,
                stdout=answer, stderr=subprocess.PIPE, check=False,
            )  # fmt: skip
            if process.returncode:
                raise RuntimeError(f"the export as {name} failed: {process.stderr[-500:]!r}")
            answer.seek(0)
            took = float(json.loads(answer.read())["seconds"])
            peak = int(process.stderr.split()[-1]) / 1024
        shutil.rmtree(out)
        return Done(took, cpu_of_children() - start, peak)


def timed(words: list[str]) -> Done:
    """A command, and bringing what it wrote to the disk."""
    start, cpu = time.perf_counter(), cpu_of_children()
    subprocess.run(words, check=True)
    os.sync()
    return Done(time.perf_counter() - start, cpu_of_children() - cpu)


def cpu_of_children() -> float:
    """CPU seconds of all commands that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def freezing(seeds: int) -> Row:
    """``freeze_release`` of 1,600 candidates a seed with three judgements each, on PostgreSQL."""
    with database() as url:
        words = [sys.executable, "-m", "tests.benchmarks.freeze_world", str(seeds)]
        done = subprocess.run(
            words, cwd=ROOT, capture_output=True, check=True,
            env={**os.environ, "DATABASE_URL": url, "REDIS_URL": "", "OMP_NUM_THREADS": "1"},
        )  # fmt: skip
    found = json.loads(done.stdout.splitlines()[-1])
    limit = FREEZE_LIMIT_S
    return Row(
        "freeze_release", found["seconds"], limit, "s", limit / found["seconds"],
        found["candidates"], found["mb"],
        f"{found['judgements']:,} judgements; CPU of ours {found['cpu']:.1f} s, the rest PostgreSQL",
    )  # fmt: skip
