"""`vqascore`: P("Yes") of a vision language model that is asked whether the image shows the text.

For any image-text-to-text model of `transformers` (Qwen2.5-VL, InternVL, Gemma 3, PaliGemma, LLaVA,
SmolVLM …). The published VQAScore model, CLIP-FlanT5, is the metric `clip-flant5`; scores with
another question, another answer word or another model are other metrics and get other
fingerprints.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import torch
from transformers import AutoModelForImageTextToText, AutoProcessor

from croc_annotate.benchmark.metric import (
    ImageInput,
    ImageNeed,
    MetricError,
    MetricFacts,
    MetricOptions,
    ScoreBatch,
    as_score,
    check_batch,
    nested,
    pixels_of,
)
from croc_annotate.benchmark.metrics import torch_support, vlm

if TYPE_CHECKING:
    from collections.abc import Sequence

MODEL = "Qwen/Qwen2.5-VL-7B-Instruct"
QUESTION = 'Does this figure show "{text}"? Please answer yes or no.'
ANSWER = "Yes"
PAIRS_PER_IMAGE = 2  # in one pass: with more texts, an image that fits with two fits with all


class VqaScore:
    """Options: `answer` (Yes), `prompt` (the question, with {text})."""

    needs: ImageNeed = "pixels"

    def __init__(self, *, options: MetricOptions) -> None:
        self._device = torch_support.pick_device(options.device)
        default = "float32" if self._device.type == "cpu" else "bfloat16"
        self._dtype = torch_support.pick_dtype(options.dtype, default=default)
        self._question = options.prompt or QUESTION
        if "{text}" not in self._question:
            raise MetricError("The prompt of vqascore needs {text} where the text shall stand.")
        self._answer = options.extra.get("answer", ANSWER)
        self._checkpoint = torch_support.find_checkpoint(options, default=MODEL)
        config = json.loads(torch_support.fetch(self._checkpoint, "config.json").read_text("utf-8"))
        if config.get("model_type") == "clip_t5":
            raise MetricError(f"{self._checkpoint.source} is read by --metric clip-flant5.")
        self._processor = self._load_processor()
        before, behind = self._frame()
        self._before, self._behind = before, behind
        self._token = vlm.answer_token(
            self._processor.tokenizer, before=behind or before, answer=self._answer
        )
        self._loaded: Any = None

    def describe(self) -> MetricFacts:
        """Question, frame of the chat and answer token are all part of the metric."""
        image_processor = self._processor.image_processor
        return MetricFacts(
            name="vqascore",
            label=f"VQAScore ({self._checkpoint.source.rstrip('/').rpartition('/')[2]})",
            model=self._checkpoint.source,
            revision=self._checkpoint.revision,
            prompt=f"{self._before}{self._question}{self._behind}",
            preprocessing=f"{type(image_processor).__name__} of the checkpoint",
            image_backend=str(getattr(image_processor, "backend", "unknown")),
            dtype=self._dtype,
            settings={"answer": self._answer, "answer_token": str(self._token)},
            source="Lin et al. 2024, arXiv:2404.01291",
            parameters=torch_support.count_parameters(self._loaded) if self._loaded else None,
        )

    def score(self, *, images: Sequence[ImageInput], texts: Sequence[Sequence[str]]) -> ScoreBatch:
        """P(answer) of each pair, softmax over the whole vocabulary in float32."""
        check_batch(images, texts)
        pairs = [(index, text) for index, own in enumerate(texts) for text in own]
        step = max(1, PAIRS_PER_IMAGE * len(images))
        flat: list[float | None] = []
        for start in range(0, len(pairs), step):
            flat += self._score_pairs(images, pairs[start : start + step])
        return ScoreBatch(scores=nested(flat, texts))

    def close(self) -> None:
        """Give the model's memory back."""
        self._loaded = None
        torch_support.release(self._device)

    def _score_pairs(
        self, images: Sequence[ImageInput], pairs: list[tuple[int, str]]
    ) -> list[float | None]:
        inputs = self._processor(
            images=[[pixels_of(images[index])] for index, _ in pairs],
            text=[self._prompt(text) for _, text in pairs],
            padding=True,
            padding_side="right",
            return_tensors="pt",
        )
        model = self._model()
        with torch_support.scoring():
            on_device = {
                key: value.to(self._device, model.dtype if value.is_floating_point() else None)
                for key, value in inputs.items()
            }
            tower = getattr(model.model, "vision_tower", None)
            if tower is None:
                logits = vlm.next_token_logits(model, on_device)
            else:
                with vlm.rows_encoded_once(tower, [index for index, _ in pairs]):
                    logits = vlm.next_token_logits(model, on_device)
            chances = torch.softmax(logits, dim=-1)[:, self._token].cpu()
        return [as_score(value) for value in chances.tolist()]

    def _prompt(self, text: str) -> str:
        # Not str.format: braces in the text stay as they are.
        return f"{self._before}{self._question.replace('{text}', text)}{self._behind}"

    def _frame(self) -> tuple[str, str]:
        """What stands before and behind the question, by the model's own chat template."""
        marker = "\u241fquestion\u241f"
        if getattr(self._processor, "chat_template", None):
            content = [{"type": "image"}, {"type": "text", "text": marker}]
            whole = self._processor.apply_chat_template(
                [{"role": "user", "content": content}], add_generation_prompt=True, tokenize=False
            )
        else:
            whole = f"{getattr(self._processor, 'image_token', '<image>')}\n{marker}\n"
        before, found, behind = whole.partition(marker)
        if not found:
            raise MetricError(f"The chat template of {self._checkpoint.source} drops the question.")
        return before, behind

    def _load_processor(self) -> Any:
        processor = torch_support.load_part(AutoProcessor, self._checkpoint)
        if not hasattr(processor, "image_processor"):
            raise MetricError(f"{self._checkpoint.source} has no processor for images and texts.")
        # The Pillow form where there is one: the two backends give different pixels.
        processor.image_processor = torch_support.load_image_processor(self._checkpoint)
        processor.tokenizer.padding_side = "right"
        if processor.tokenizer.pad_token is None:
            processor.tokenizer.pad_token = processor.tokenizer.eos_token
        return processor

    def _model(self) -> Any:
        if self._loaded is None:
            self._loaded = torch_support.load_model(
                AutoModelForImageTextToText,
                self._checkpoint,
                dtype=self._dtype,
                device=self._device,
            )
        return self._loaded
