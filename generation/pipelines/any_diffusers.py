"""Any text-to-image pipeline that diffusers can load by id: SDXL, SD 3.5 Turbo, Qwen-Image, …"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from diffusers import DiffusionPipeline

from generation.pipeline import PipelineError
from generation.pipelines.torch_runner import TorchRunner

if TYPE_CHECKING:
    from collections.abc import Callable

# Our setting -> the call's possible names for it; the first that the call has is used.
_NAMES = {
    "steps": ("num_inference_steps",),
    "guidance": ("guidance_scale", "true_cfg_scale"),
    "max_sequence_length": ("max_sequence_length",),
    "negative_prompt": ("negative_prompt",),
    "width": ("width",),
    "height": ("height",),
}


class _OncePerText:
    """A pipeline's own `encode_prompt`, which answers what it was asked before from memory.

    So the encoders run once for a text (and once for its negative prompt, and for the size of
    its last batch), whatever a pipeline calls its embeddings.
    """

    def __init__(self, encode: Callable[..., Any]) -> None:
        self._encode = encode
        self._answers: dict[str, Any] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        given = [*args, *kwargs.values()]
        if any(isinstance(value, torch.Tensor) for value in given):
            return self._encode(*args, **kwargs)
        asked = repr((args, sorted(kwargs.items())))
        if asked not in self._answers:
            self._answers[asked] = self._encode(*args, **kwargs)
        return self._answers[asked]

    def forget(self) -> None:
        """Another text comes."""
        self._answers.clear()


class DiffusersRunner(TorchRunner):
    """`DiffusionPipeline.from_pretrained(model_id)`, the class as the repository names it.

    Arguments that the pipeline's call does not know are left out; what else it needs
    stands under the setting `extra` in diffusers' own words.
    """

    pipeline_class = DiffusionPipeline
    defaults: ClassVar = {"steps": 30, "guidance": 5.0, "batch_size": 4}
    _encoded: _OncePerText | None = None

    def load(self) -> None:
        """As for all; refuses what cannot draw from a text."""
        super().load()
        if hasattr(self._pipe, "encode_prompt"):
            self._encoded = _OncePerText(self._pipe.encode_prompt)
            self._pipe.encode_prompt = self._encoded
        unknown = sorted(set(self.spec.settings.extra) - self._accepted())
        if "prompt" not in self._accepted() or unknown:
            what = f"has no argument {', '.join(unknown)}" if unknown else "takes no prompt"
            raise PipelineError(f"{type(self._pipe).__name__} {what}.")

    def embed(self, text: str) -> dict[str, Any]:
        """The text itself: every pipeline has its own embeddings under its own names."""
        if self._encoded is not None:
            self._encoded.forget()
        return {"prompt": text}

    def close(self) -> None:
        """Embeddings go with the weights."""
        self._encoded = None
        super().close()

    def call_arguments(self) -> dict[str, Any]:
        """Settings under the names that this pipeline's call uses."""
        accepted = self._accepted()
        found: dict[str, Any] = {}
        for setting, names in _NAMES.items():
            value = getattr(self.spec.settings, setting)
            name = next((n for n in names if n in accepted), None)
            if name is not None and value != "":
                found[name] = value
        return {**found, **self.spec.settings.extra}

    def _batched(self, embedding: dict[str, Any], size: int) -> dict[str, Any]:
        # The pipeline encodes the text once for the batch where it can count images itself.
        if "num_images_per_prompt" in self._accepted():
            return {"prompt": embedding["prompt"], "num_images_per_prompt": size}
        return {"prompt": [embedding["prompt"]] * size}

    def _accepted(self) -> set[str]:
        return set(inspect.signature(self._pipe.__call__).parameters)
