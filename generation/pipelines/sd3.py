"""Stable Diffusion 3.5: `StableDiffusion3Pipeline`. Defaults as for the published images (Large)."""

from __future__ import annotations

from typing import Any, ClassVar

from diffusers import StableDiffusion3Pipeline

from generation.pipelines.torch_runner import TorchRunner


class StableDiffusion3Runner(TorchRunner):
    """SD 3.5 Large; Turbo with guidance 0 or 1 and 4 steps. Real classifier-free guidance."""

    pipeline_class = StableDiffusion3Pipeline
    quantised_components = ("transformer", "text_encoder_3")
    defaults: ClassVar = {
        "steps": 28,
        "guidance": 3.5,
        "max_sequence_length": 256,
        "width": 1024,
        "height": 1024,
        "dtype": "bfloat16",
    }

    def embed(self, text: str) -> dict[str, Any]:
        """States and pooled vector of the text and, with guidance, of the negative prompt."""
        settings = self.spec.settings
        states, negative, pooled, negative_pooled = self._pipe.encode_prompt(
            prompt=text,
            prompt_2=None,
            prompt_3=None,
            negative_prompt=settings.negative_prompt,
            do_classifier_free_guidance=settings.guidance > 1,
            device=self._pipe._execution_device,
            max_sequence_length=settings.max_sequence_length,
        )
        return {
            "prompt_embeds": states,
            "pooled_prompt_embeds": pooled,
            "negative_prompt_embeds": negative,
            "negative_pooled_prompt_embeds": negative_pooled,
        }

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
