"""Generation on one GPU: FLUX.1-dev and SD 3.5 Large at real size, through the worker.

    python -m tests.gpu.measure_generation [--images 8] [--plain 3] [--batch 4] [--tiny]

The pipelines are built from their configurations with random weights in bf16 (no download) and
draw 1024×1024 with the published steps. The last projection is set to zero, which costs the same
arithmetic and keeps the numbers finite. For each model it prints images/s of the plain loop (one
call and one PNG an image, as published) and of the worker (rows in SQLite, claims, batches,
encoding beside the device), the peak of GPU memory, and the GPU's mean utilisation during both.
`--tiny` runs the same script in a minute on a CPU: does it work at all?
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

TEXTS = ["three red apples on a white plate", "a small house without windows beside a tall tree"]
TINY = False
DEVICE = "cuda"  # "meta" in a test: the real sizes without their memory
SHARED: dict[str, Any] = {}


def flux() -> Any:
    """FluxPipeline with the configuration of FLUX.1-dev: 12 B + T5-XXL."""
    from diffusers import FlowMatchEulerDiscreteScheduler, FluxPipeline, FluxTransformer2DModel

    from tests.generation import tiny_pipelines as tiny

    if TINY:
        return tiny.flux()
    transformer = _on_device(lambda: FluxTransformer2DModel(guidance_embeds=True))
    transformer.proj_out.weight.data.zero_()
    return FluxPipeline(
        scheduler=FlowMatchEulerDiscreteScheduler(use_dynamic_shifting=True, shift=3.0),
        text_encoder=_clip(768, 12, 12, projection=False),
        tokenizer=tiny.clip_tokenizer(),
        text_encoder_2=_t5(),
        tokenizer_2=tiny.t5_tokenizer(),
        vae=_vae(scaling=0.3611, shift=0.1159),
        transformer=transformer,
    )


def sd3() -> Any:
    """StableDiffusion3Pipeline with the configuration of SD 3.5 Large: 8 B + T5-XXL + two CLIPs."""
    from diffusers import (
        FlowMatchEulerDiscreteScheduler,
        SD3Transformer2DModel,
        StableDiffusion3Pipeline,
    )

    from tests.generation import tiny_pipelines as tiny

    if TINY:
        return tiny.sd3()
    transformer = _on_device(
        lambda: SD3Transformer2DModel(
            sample_size=128,
            num_layers=38,
            attention_head_dim=64,
            num_attention_heads=38,
            caption_projection_dim=2432,
            joint_attention_dim=4096,
            pooled_projection_dim=2048,
            pos_embed_max_size=192,
            qk_norm="rms_norm",
        )
    )
    transformer.proj_out.weight.data.zero_()
    return StableDiffusion3Pipeline(
        scheduler=FlowMatchEulerDiscreteScheduler(shift=3.0),
        text_encoder=_clip(768, 12, 12, projection=True),
        tokenizer=tiny.clip_tokenizer(),
        text_encoder_2=_clip(1280, 32, 20, projection=True),
        tokenizer_2=tiny.clip_tokenizer(),
        text_encoder_3=_t5(),
        tokenizer_3=tiny.t5_tokenizer(),
        vae=_vae(scaling=1.5305, shift=0.0609),
        transformer=transformer,
    )


def _on_device(build: Callable[[], Any]) -> Any:
    """Build in bf16 on the GPU at once: 12 B parameters in fp32 on the CPU take minutes."""
    import torch

    torch.set_default_dtype(torch.bfloat16)
    try:
        with torch.device(DEVICE):
            return build().eval()
    finally:
        torch.set_default_dtype(torch.float32)


def _clip(width: int, layers: int, heads: int, *, projection: bool) -> Any:
    from transformers import CLIPTextConfig, CLIPTextModel, CLIPTextModelWithProjection

    config = CLIPTextConfig(
        hidden_size=width, intermediate_size=width * 4, num_hidden_layers=layers,
        num_attention_heads=heads, projection_dim=width, vocab_size=49408,
        bos_token_id=0, eos_token_id=1, pad_token_id=1,
    )  # fmt: skip
    kind = CLIPTextModelWithProjection if projection else CLIPTextModel
    return _on_device(lambda: kind(config))


def _t5() -> Any:
    from transformers import T5Config, T5EncoderModel

    config = T5Config(
        vocab_size=32128, d_model=4096, d_kv=64, d_ff=10240, num_layers=24, num_heads=64,
        feed_forward_proj="gated-gelu", is_gated_act=True,
    )  # fmt: skip
    return _on_device(lambda: T5EncoderModel(config))


def _vae(*, scaling: float, shift: float) -> Any:
    from diffusers import AutoencoderKL

    channels = (128, 256, 512, 512)
    return _on_device(
        lambda: AutoencoderKL(
            block_out_channels=channels,
            down_block_types=("DownEncoderBlock2D",) * 4,
            up_block_types=("UpDecoderBlock2D",) * 4,
            layers_per_block=2,
            latent_channels=16,
            scaling_factor=scaling,
            shift_factor=shift,
            use_quant_conv=False,
            use_post_quant_conv=False,
        )
    )


def runners() -> dict[str, Any]:
    """Our runners, with the pipelines that are in memory in place of those on disk."""
    from generation.pipelines.flux import FluxRunner
    from generation.pipelines.sd3 import StableDiffusion3Runner

    class FluxInMemory(FluxRunner):
        def _read(self, options: dict[str, Any]) -> Any:
            return SHARED["flux"]

    class Sd3InMemory(StableDiffusion3Runner):
        def _read(self, options: dict[str, Any]) -> Any:
            return SHARED["sd3"]

    return {"flux": FluxInMemory, "sd3": Sd3InMemory}


def __getattr__(name: str) -> Any:
    """`tests.gpu.measure_generation:flux_runner` for the registry, without torch at import."""
    if name.endswith("_runner"):
        return runners()[name.removesuffix("_runner")]
    raise AttributeError(name)


def measure(name: str, build: Callable[[], Any], arguments: argparse.Namespace) -> None:
    """Both loops on one model, and what they cost."""
    import torch

    from generation.pipelines.torch_runner import device_name
    from tests.gpu.measure_metrics import gpu_busy

    started = time.perf_counter()
    pipe = SHARED[name] = build()
    pipe.set_progress_bar_config(disable=True)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    pipe.to(device)
    defaults = runners()[name].defaults
    size = {"width": 32, "height": 32, "steps": 2, "max_sequence_length": 48} if TINY else {}
    settings = {**defaults, "dtype": "float32" if TINY else "bfloat16", **size}
    print(f"\n{name}: built in {time.perf_counter() - started:.0f} s on {device_name(device)}")
    _plain(pipe, settings, 1)  # warm
    for label, n, loop in (
        ("plain loop", arguments.plain, lambda: _plain(pipe, settings, arguments.plain)),
        ("worker", arguments.images, lambda: _worker(name, settings, arguments)),
    ):
        if device.type == "cuda":
            torch.cuda.reset_peak_memory_stats()
        with gpu_busy() as busy:
            started = time.perf_counter()
            n = loop() or n
            took = time.perf_counter() - started
        memory = torch.cuda.max_memory_allocated() / 2**30 if device.type == "cuda" else 0.0
        share = sum(busy) / len(busy) if busy else float("nan")
        print(
            f"{name} {label}: {n / took:.3f} images/s ({took / n:.2f} s each, n = {n}), "
            f"{memory:.1f} GiB, GPU busy {share:.0f} %",
            flush=True,
        )
    SHARED.clear()
    if device.type == "cuda":
        torch.cuda.empty_cache()


def _plain(pipe: Any, settings: dict[str, Any], images: int) -> int:
    import torch

    with tempfile.TemporaryDirectory() as folder:
        for seed in range(1, images + 1):
            image = pipe(
                TEXTS[0],
                width=settings["width"],
                height=settings["height"],
                num_inference_steps=settings["steps"],
                guidance_scale=settings["guidance"],
                max_sequence_length=settings["max_sequence_length"],
                generator=torch.Generator("cpu").manual_seed(seed),
            ).images[0]
            image.save(Path(folder) / f"{seed}.png")
    return images


def _worker(name: str, settings: dict[str, Any], arguments: argparse.Namespace) -> int:
    from django.core.management import call_command

    from croc_annotate.candidates.models import Candidate, Generator
    from croc_annotate.prompts.models import Category, ContrastPair

    category = Category.objects.get_or_create(slug="counting", defaults={"position": 3})[0]
    pair, _ = ContrastPair.objects.get_or_create(
        slug="counting_1",
        defaults={"category": category, "prompt": TEXTS[0], "contrast": TEXTS[1]},
    )
    Generator.objects.create(
        slug=name,
        label=name,
        pipeline=f"tests.gpu.measure_generation:{name}_runner",
        model_id=f"random weights at the size of {name}",
        settings={**settings, "batch_size": arguments.batch},
    )
    seeds = f"1-{max(arguments.images // 2, 1)}"
    call_command("generate", "--here", "--generator", name, "--pair", pair.slug, "--seeds", seeds)
    done = Candidate.objects.filter(generator__slug=name)
    failed = done.failed().values_list("error", flat=True)
    if failed:
        print(f"{name}: {len(failed)} images failed, e.g. {failed[0]}")
    return done.count()


def main() -> None:
    """Set up a database of its own and measure both models."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--images", type=int, default=8, help="through the worker (default 8)")
    parser.add_argument("--plain", type=int, default=3, help="by the plain loop (default 3)")
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--only", choices=["flux", "sd3"])
    parser.add_argument("--tiny", action="store_true", help="tiny pipelines: test the script")
    arguments = parser.parse_args()
    import tests.gpu.measure_generation as this  # not __main__: the registry imports it by name

    this.TINY = arguments.tiny
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update(
            DJANGO_SETTINGS_MODULE="croc_annotate.settings",
            DATABASE_URL=f"sqlite:///{folder}/measure.sqlite3",
            MEDIA_ROOT=f"{folder}/media",
            REDIS_URL="",
        )
        import django
        from django.core.management import call_command

        django.setup()
        call_command("migrate", verbosity=0)
        for name, build in (("flux", this.flux), ("sd3", this.sd3)):
            if arguments.only in (None, name):
                this.measure(name, build, arguments)


if __name__ == "__main__":
    main()
