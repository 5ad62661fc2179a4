"""What all torch pipelines share: device, precision, batches, failures told apart.

A model's own file (`flux.py`, `sd3.py`, …) says which class is loaded, how a text is
embedded and which arguments the call takes. Nothing here is imported by the web app.
"""

from __future__ import annotations

import platform
import time
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import diffusers
import torch
import transformers
from PIL import Image

from generation.pipeline import (
    DeviceLost,
    DoesNotFit,
    GeneratorSpec,
    Outcome,
    PipelineError,
    RenderedImage,
    RenderFailure,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

# Messages of allocators that do not raise torch.OutOfMemoryError.
_MEMORY_MESSAGES = ("can't allocate memory", "out of memory", "_STATUS_ALLOC_FAILED")


class TorchRunner:
    """Base of the diffusers runners; see `generation.pipeline.Pipeline`.

    The noise of a seed comes from its own CPU generator, so an image depends neither on
    the batch that it was made in nor on the kind of device.
    """

    defaults: ClassVar[Mapping[str, object]] = {}
    pipeline_class: ClassVar[type[diffusers.DiffusionPipeline]] = diffusers.DiffusionPipeline
    quantised_components: ClassVar[tuple[str, ...]] = ("transformer",)

    def __init__(self, spec: GeneratorSpec) -> None:
        self.spec = spec
        self.device = _device(spec.settings.device)
        self.commit = spec.revision
        self._pipe: Any = None
        self._embedded: tuple[str, dict[str, Any]] | None = None

    # -- what a model's file says -------------------------------------------------

    def embed(self, text: str) -> dict[str, Any]:
        """Arguments of the call that stand for the text, for a batch of one."""
        raise NotImplementedError

    def call_arguments(self) -> dict[str, Any]:
        """Arguments of the call that come from the settings."""
        raise NotImplementedError

    def called(self, arguments: Mapping[str, Any]) -> tuple[torch.Tensor, Sequence[bool]]:
        """Images of one call, (n, 3, height, width) in 0…1, and which of them were blacked."""
        output = self._pipe(**arguments, output_type="pt")
        images: torch.Tensor = output.images
        return images, getattr(output, "nsfw_content_detected", None) or [False] * len(images)

    # -- the Protocol -------------------------------------------------------------

    def load(self) -> None:
        """Read the weights (once) and put them where the settings say."""
        try:
            self._guarded(self._load)
        except DoesNotFit as error:
            self.close()
            raise PipelineError(
                f"{self.spec.model_id} does not fit into the memory of {device_name(self.device)}: "
                f"{error} The settings `offload` and `quantisation` need less."
            ) from error

    def _load(self) -> None:
        settings = self.spec.settings
        options: dict[str, Any] = {"dtype": getattr(torch, settings.dtype)}
        if settings.quantisation != "none":
            options["quantization_config"] = self._quantisation()
        self._pipe = self._read(options)
        self._pipe.set_progress_bar_config(disable=True)
        self._place()
        if settings.first_block_cache is not None:
            self._cache_first_block(settings.first_block_cache)
        if settings.compile:
            _compile(self._pipe)

    def use(self, pipe: diffusers.DiffusionPipeline) -> None:
        """Take a pipeline that is in memory already (measurements with random weights)."""
        self._pipe = pipe
        self._pipe.set_progress_bar_config(disable=True)
        self._place()

    def render(self, text: str, seeds: Sequence[int]) -> Iterator[Outcome]:
        """Render one batch (see Protocol); raises DoesNotFit when memory is short."""
        # The first-block cache decides over a whole batch when to skip blocks: with it
        # an image would depend on its neighbours, so it goes one by one.
        size = len(seeds) if self.spec.settings.first_block_cache is None else 1
        for start in range(0, len(seeds), size):
            yield from self._render_batch(text, seeds[start : start + size])

    def describe(self) -> dict[str, object]:
        """Model, revision, settings, software and device."""
        return {
            "pipeline": type(self._pipe).__name__ if self._pipe else self.pipeline_class.__name__,
            "model_id": self.spec.model_id,
            "revision": self.commit,
            "settings": self.spec.settings.as_json(),
            "noise": "torch CPU generator per image, manual_seed(seed)",
            "device": device_name(self.device),
            "software": {
                "python": platform.python_version(),
                "torch": torch.__version__,
                "diffusers": diffusers.__version__,
                "transformers": transformers.__version__,
            },
        }

    def close(self) -> None:
        """Drop the weights and give the device's memory back."""
        self._pipe = None
        self._embedded = None
        _empty_cache()

    # -- steps --------------------------------------------------------------------

    def _read(self, options: dict[str, Any]) -> Any:
        source = self.spec.model_id
        try:
            if not Path(source).is_dir():
                folder = Path(
                    self.pipeline_class.download(source, revision=self.spec.revision or None)
                )
                # The snapshot's folder is named by its commit: "main" becomes a fixed point.
                self.commit, source = folder.name, str(folder)
            return self.pipeline_class.from_pretrained(source, **options)
        # RuntimeError: a quantiser that finds no GPU says so with one.
        except (OSError, ValueError, ImportError, RuntimeError) as error:
            if isinstance(error, RuntimeError) and (_is_memory(error) or _is_lost(error)):
                raise
            raise PipelineError(f"Cannot load {self.spec.model_id!r}: {error}") from error

    def _cache_first_block(self, threshold: float) -> None:
        denoiser: Any = getattr(self._pipe, "transformer", None)
        if not hasattr(denoiser, "enable_cache"):
            raise PipelineError(
                f"first_block_cache: the denoiser of {type(self._pipe).__name__} has no cache in "
                f"diffusers {diffusers.__version__}; leave the setting out."
            )
        denoiser.enable_cache(diffusers.FirstBlockCacheConfig(threshold=threshold))

    def _place(self) -> None:
        offload = self.spec.settings.offload
        if offload == "model":
            self._pipe.enable_model_cpu_offload(device=self.device)
        elif offload == "sequential":
            if self.device.type == "cpu":
                raise PipelineError(
                    "offload: sequential needs an accelerator; here the weights are in main memory "
                    "anyway. Leave the setting out."
                )
            self._pipe.enable_sequential_cpu_offload(device=self.device)
        else:
            self._pipe.to(self.device)
            _settle_device(self._pipe, self.device)

    def _quantisation(self) -> diffusers.PipelineQuantizationConfig:
        kind = self.spec.settings.quantisation
        parts = list(self.quantised_components)
        if kind == "torchao_int8":
            try:
                from torchao.quantization import Int8WeightOnlyConfig
            except ImportError as error:
                raise PipelineError("torchao_int8 needs: pip install torchao") from error
            mapping = {part: _torchao(part, Int8WeightOnlyConfig()) for part in parts}
            return diffusers.PipelineQuantizationConfig(quant_mapping=mapping)
        if find_spec("bitsandbytes") is None:
            raise PipelineError(f"{kind} needs a GPU and: pip install bitsandbytes")
        options: dict[str, Any] = {"load_in_8bit": True}
        if kind == "bitsandbytes_4bit":
            options = {
                "load_in_4bit": True,
                "bnb_4bit_quant_type": "nf4",
                "bnb_4bit_compute_dtype": getattr(torch, self.spec.settings.dtype),
            }
        return diffusers.PipelineQuantizationConfig(
            quant_backend=kind, quant_kwargs=options, components_to_quantize=parts
        )

    def _render_batch(self, text: str, seeds: Sequence[int]) -> Iterator[Outcome]:
        started = time.perf_counter()
        pixels, finite, refused = self._guarded(lambda: self._pixels(text, seeds))
        seconds = (time.perf_counter() - started) / len(seeds)
        facts = {"seconds": round(seconds, 3), "batch_size": len(seeds)}
        for index, seed in enumerate(seeds):
            if not finite[index]:
                yield RenderFailure(seed, "not a number in the picture (NaN or infinite values)")
            elif refused[index]:
                yield RenderFailure(seed, "the model's safety checker blacked the image")
            else:
                yield RenderedImage(seed, image=Image.fromarray(pixels[index]), facts=facts)

    def _guarded(self, act: Callable[[], Any]) -> Any:
        """Run `act`; an exhausted allocator becomes DoesNotFit once its memory is free again."""
        try:
            return act()
        except RuntimeError as error:  # torch.OutOfMemoryError is one
            if not _is_memory(error):
                _refuse_lost_device(error)
                raise
            reason = str(error).splitlines()[0]
        # Outside the handler: the traceback would keep the batch's tensors alive.
        _empty_cache()
        raise DoesNotFit(reason)

    def _pixels(self, text: str, seeds: Sequence[int]) -> tuple[Any, list[bool], list[bool]]:
        """uint8 (n, height, width, 3) on the CPU, per image whether finite, whether refused."""
        with torch.inference_mode():
            return self._drawn(text, seeds)

    def _drawn(self, text: str, seeds: Sequence[int]) -> tuple[Any, list[bool], list[bool]]:
        images, refused = self.called(
            {
                **self._batched(self._embedding(text), len(seeds)),
                **self.call_arguments(),
                "generator": [torch.Generator("cpu").manual_seed(seed) for seed in seeds],
            }
        )
        finite = torch.isfinite(images).flatten(1).all(dim=1).tolist()
        # As diffusers converts to PIL, but on the device: a quarter of the bytes to copy.
        levels = images.float().nan_to_num().clamp(0, 1).mul(255).round().to(torch.uint8)
        return levels.permute(0, 2, 3, 1).cpu().numpy(), finite, list(refused)

    def _embedding(self, text: str) -> dict[str, Any]:
        # One text has up to 50 seeds in several batches: its encoders run once.
        if self._embedded is None or self._embedded[0] != text:
            self._embedded = (text, self.embed(text))
        return self._embedded[1]

    def _batched(self, embedding: dict[str, Any], size: int) -> dict[str, Any]:
        return {
            name: value.repeat(size, *[1] * (value.dim() - 1))
            for name, value in embedding.items()
            if value is not None
        }


def device_name(device: torch.device) -> str:
    """The device as people call it, e.g. "NVIDIA H100 80GB HBM3"."""
    if device.type == "cuda":
        return str(torch.cuda.get_device_name(device))
    return f"{device.type} ({platform.processor() or platform.machine()})"


def _device(wanted: str) -> torch.device:
    if wanted != "auto":
        return torch.device(wanted)
    if torch.cuda.is_available():
        return torch.device("cuda")
    return torch.device("mps" if torch.backends.mps.is_available() else "cpu")


def _settle_device(pipe: Any, device: torch.device) -> None:
    """Tell a pipeline where it runs.

    diffusers looks for the device in every module of every part at each call. Without
    offloading it stays where it was put, and the search is a sixth of a small pipeline's image.
    """
    kind = type(pipe)
    pipe.__class__ = type(kind.__name__, (kind,), {"_execution_device": device})


def _compile(pipe: Any) -> None:
    """Compile the denoiser: block by block where the model names its blocks, else whole."""
    denoiser = getattr(pipe, "transformer", None) or pipe.unet
    if getattr(denoiser, "_repeated_blocks", None):
        denoiser.compile_repeated_blocks(dynamic=True)
    else:
        denoiser.compile(dynamic=True)


def _torchao(part: str, config: Any) -> Any:
    """Encoders belong to transformers, the rest to diffusers; each has its own config class."""
    library = transformers if part.startswith("text_encoder") else diffusers
    return library.TorchAoConfig(config)


def _is_memory(error: RuntimeError) -> bool:
    text = str(error)
    return isinstance(error, torch.OutOfMemoryError) or any(m in text for m in _MEMORY_MESSAGES)


def _is_lost(error: RuntimeError) -> bool:
    return "CUDA error" in str(error)


def _refuse_lost_device(error: RuntimeError) -> None:
    """After an illegal access or a failed assertion every further CUDA call fails too."""
    if _is_lost(error):
        raise DeviceLost(str(error).splitlines()[0]) from error


def _empty_cache() -> None:
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
