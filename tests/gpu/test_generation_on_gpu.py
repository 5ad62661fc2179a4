from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


def measure(*arguments: str, timeout: float, what: str = "generation") -> str:
    done = subprocess.run(
        [sys.executable, "-m", f"tests.gpu.measure_{what}", *arguments],
        cwd=ROOT, env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True, text=True,
        timeout=timeout, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.mark.torch
@pytest.mark.timeout(300)  # twenty seconds on a quiet machine
def test_the_script_for_the_gpu_runs_on_tiny_pipelines() -> None:
    pytest.importorskip("diffusers", reason="needs the gpu extra")
    said = measure("--tiny", "--images", "4", "--plain", "2", timeout=280)
    for line in ("flux plain loop", "flux worker", "sd3 plain loop", "sd3 worker"):
        assert f"{line}: " in said
    assert "failed, e.g." not in said


@pytest.mark.torch
@pytest.mark.timeout(300)
def test_the_script_for_the_metrics_runs_on_tiny_models() -> None:
    pytest.importorskip("transformers", reason="needs the gpu extra")
    said = measure("--tiny", "--images", "8", "--workers", "2", timeout=280, what="metrics")
    for line in ("clipscore tiny", "vqascore tiny"):
        assert f"{line}: " in said
    assert said.count("noise floor") == 2


@pytest.mark.torch
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("name", "denoiser", "text_encoders"),
    # FLUX.1-dev: 11.9 B + T5-XXL's encoder 4.76 B + CLIP-L 0.12 B; SD 3.5 Large: 8.06 B + the
    # same + CLIP-bigG 0.69 B, as the files on the Hub.
    [("flux", 11.90e9, 4.885e9), ("sd3", 8.06e9, 5.58e9)],
)
def test_the_models_have_the_real_sizes_and_their_shapes_fit(
    monkeypatch, name: str, denoiser: float, text_encoders: float
) -> None:
    """On torch's device "meta": all the script builds on a GPU, without weights and arithmetic."""
    torch = pytest.importorskip("torch", reason="needs the gpu extra")
    from tests.gpu import measure_generation as script

    monkeypatch.setattr(script, "DEVICE", "meta")
    pipe = getattr(script, name)()
    texts = [part for key, part in pipe.components.items() if key.startswith("text_encoder")]
    assert _parameters(pipe.transformer) == pytest.approx(denoiser, rel=0.01)
    assert sum(_parameters(part) for part in texts if part) == pytest.approx(
        text_encoders, rel=0.01
    )
    with torch.device("meta"), torch.inference_mode():
        latents = torch.empty(1, 16, 128, 128, dtype=torch.bfloat16)
        assert pipe.vae.decode(latents).sample.shape == (1, 3, 1024, 1024)
        assert _denoised(name, pipe.transformer, latents).shape[-1] in (64, 128)


def _parameters(part: Any) -> int:
    return sum(parameter.numel() for parameter in part.parameters())


def _denoised(name: str, transformer: Any, latents: Any) -> Any:
    """One step at 1024 × 1024 with the tensors that the pipelines hand over."""
    import torch

    half = {"dtype": torch.bfloat16}
    if name == "sd3":
        states, pooled = torch.empty(1, 333, 4096, **half), torch.empty(1, 2048, **half)
        return transformer(
            hidden_states=latents, timestep=torch.empty(1), encoder_hidden_states=states,
            pooled_projections=pooled,
        ).sample  # fmt: skip
    states, pooled = torch.empty(1, 512, 4096, **half), torch.empty(1, 768, **half)
    return transformer(
        hidden_states=torch.empty(1, 4096, 64, **half), timestep=torch.empty(1, **half),
        guidance=torch.empty(1), encoder_hidden_states=states, pooled_projections=pooled,
        txt_ids=torch.empty(512, 3), img_ids=torch.empty(4096, 3),
    ).sample  # fmt: skip


@pytest.mark.gpu
@pytest.mark.timeout(600)
def test_both_models_at_real_size_on_the_gpu() -> None:
    said = measure(timeout=590)
    assert "images failed" not in said
    assert said.count("images/s") == 4
