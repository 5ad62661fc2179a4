"""FLUX.1: `FluxPipeline`. Defaults are those of the published CROChum images (FLUX.1-dev)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from diffusers import FluxPipeline

from generation.pipelines.torch_runner import TorchRunner

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import torch


class FluxRunner(TorchRunner):
    """FLUX.1-dev (guidance distilled: no negative prompt) and FLUX.1-schnell by settings."""

    pipeline_class = FluxPipeline
    quantised_components = ("transformer", "text_encoder_2")
    defaults: ClassVar = {
        "steps": 50,
        "guidance": 3.5,
        "max_sequence_length": 512,
        "width": 1024,
        "height": 1024,
        "dtype": "bfloat16",
    }

    def embed(self, text: str) -> dict[str, Any]:
        """T5 states (1, tokens, 4096) and CLIP's pooled vector (1, 768)."""
        states, pooled, _ = self._pipe.encode_prompt(
            prompt=text,
            prompt_2=None,
            device=self._pipe._execution_device,
            max_sequence_length=self.spec.settings.max_sequence_length,
        )
        return {"prompt_embeds": states, "pooled_prompt_embeds": pooled}

    def call_arguments(self) -> dict[str, Any]:
        """Settings under diffusers' names."""
        settings = self.spec.settings
        return {
            "num_inference_steps": settings.steps,
            "guidance_scale": settings.guidance,
            "max_sequence_length": settings.max_sequence_length,
            "width": settings.width,
            "height": settings.height,
            **settings.extra,
        }

    def called(self, arguments: Mapping[str, Any]) -> tuple[torch.Tensor, Sequence[bool]]:
        """Decodes by itself where the weights stay in their place.

        FluxPipeline looks through all modules of its decoder, at each call, for where an
        offloading hook would move it.
        """
        if self.spec.settings.offload != "none":
            return super().called(arguments)
        pipe = self._pipe
        latents = pipe(**arguments, output_type="latent").images
        size = (arguments["height"], arguments["width"], pipe.vae_scale_factor)
        latents = pipe._unpack_latents(latents, *size)
        latents = latents / pipe.vae.config.scaling_factor + pipe.vae.config.shift_factor
        images = pipe.vae.decode(latents, return_dict=False)[0]
        return pipe.image_processor.denormalize(images), [False] * len(images)
