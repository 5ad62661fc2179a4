"""A small disk and a clock that can be set, where this machine lets us have them."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(scope="session", autouse=True)
def ended_as_by_the_keyboard() -> Iterator[None]:
    """SIGTERM ends the run as Ctrl-C does: fixtures then stop what they started."""

    def stop(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.fixture(scope="session")
def maybe_small_disk() -> Iterator[Path | None]:
    """A disk of 1.5 GB in memory; None where we may not mount one."""
    folder = Path(tempfile.mkdtemp(prefix="croc-disk-"))
    command = ["mount", "-t", "tmpfs", "-o", "size=1500m,mode=755", "tmpfs", str(folder)]
    mounted = not os.geteuid() and not subprocess.run(command, check=False).returncode
    yield folder if mounted else None
    if mounted:
        subprocess.run(["umount", "--lazy", folder], check=True)
    folder.rmdir()


@pytest.fixture
def small_disk(maybe_small_disk: Path | None) -> Path:
    """The same, or the test is skipped."""
    if maybe_small_disk is None:
        pytest.skip("no small disk: only root may mount a tmpfs")
    return maybe_small_disk


@pytest.fixture(scope="session")
def maybe_clock_shim(tmp_path_factory: pytest.TempPathFactory) -> Path | None:
    """The library that moves a process's time of day; None without a C compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        return None
    path = tmp_path_factory.mktemp("shim") / "clock_shim.so"
    source = Path(__file__).with_name("clock_shim.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-O2", "-o", path, source, "-ldl"], check=True)
    return path


@pytest.fixture
def clock_shim(maybe_clock_shim: Path | None) -> Path:
    """The same, or the test is skipped."""
    if maybe_clock_shim is None:
        pytest.skip("no C compiler (cc): install Debian's gcc")
    return maybe_clock_shim
