from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def measure(*arguments: str, timeout: float) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "tests.gpu.measure_generation", *arguments],
        cwd=ROOT, env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True, text=True,
        timeout=timeout, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.mark.torch
def test_the_script_for_the_gpu_runs_on_tiny_pipelines() -> None:
    pytest.importorskip("diffusers", reason="needs the gpu extra")
    said = measure("--tiny", "--images", "4", "--plain", "2", timeout=110)
    for line in ("flux plain loop", "flux worker", "sd3 plain loop", "sd3 worker"):
        assert f"{line}: " in said
    assert "failed, e.g." not in said


@pytest.mark.gpu
@pytest.mark.timeout(600)
def test_both_models_at_real_size_on_the_gpu() -> None:
    said = measure(timeout=590)
    assert "images failed" not in said
    assert said.count("images/s") == 4
