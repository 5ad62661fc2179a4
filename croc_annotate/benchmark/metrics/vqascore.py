"""`vqascore`: P("Yes") of a vision language model that is asked whether the image shows the text.

For any image-text-to-text model of `transformers` (Qwen2.5-VL, InternVL, Gemma 3, PaliGemma, LLaVA,
SmolVLM …). The published VQAScore model, CLIP-FlanT5, is the metric `clip-flant5`; scores with
another question, another answer word or another model are other metrics and get other
fingerprints.

The image stands in front of the text in a prompt, so it is read once for all texts: vision tower
and decoder run over the shared start of the prompts, and each text goes on from there.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from transformers import AutoModelForImageTextToText

from croc_annotate.benchmark.metric import (
    ImageInput,
    ImageNeed,
    MetricError,
    MetricFacts,
    MetricOptions,
    ScoreBatch,
    as_score,
    check_batch,
    check_options,
    nested,
    pixels_of,
)
from croc_annotate.benchmark.metrics import torch_support, vlm

if TYPE_CHECKING:
    from collections.abc import Sequence

MODEL = "Qwen/Qwen2.5-VL-7B-Instruct"
QUESTION = 'Does this figure show "{text}"? Please answer yes or no.'
ANSWER = "Yes"
# How far probabilities may be apart when an image is shared between its texts: rounding only.
SHARING_TOLERANCE = {"float32": 1e-4, "bfloat16": 0.03, "float16": 0.01}


@dataclass(frozen=True, slots=True)
class Job:
    """An image with its texts, at least one."""

    image: ImageInput
    texts: Sequence[str]


class VqaScore:
    """Options: `answer` (Yes), `prompt` (the question, with {text})."""

    needs: ImageNeed = "pixels"

    def __init__(self, *, options: MetricOptions) -> None:
        self._device = torch_support.pick_device(options.device)
        default = "float32" if self._device.type == "cpu" else "bfloat16"
        self._dtype = torch_support.pick_dtype(options.dtype, default=default)
        self._question = check_options(options, "vqascore", "answer", prompt=QUESTION)
        self._answer = options.extra.get("answer", ANSWER)
        self._checkpoint = torch_support.find_checkpoint(options, default=MODEL)
        config = json.loads(torch_support.fetch(self._checkpoint, "config.json").read_text("utf-8"))
        if config.get("model_type") == "clip_t5":
            raise MetricError(f"{self._checkpoint.source} is read by --metric clip-flant5.")
        self._processor = self._load_processor(str(config.get("model_type", "")))
        before, behind = self._frame()
        self._before, self._behind = before, behind
        self._token = vlm.answer_token(
            self._processor.tokenizer, before=behind or before, answer=self._answer
        )
        self._sharing: bool | None = None  # not yet tried
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
        jobs = [Job(image, own) for image, own in zip(images, texts, strict=True) if own]
        if not jobs:
            return ScoreBatch(scores=nested([], texts))
        if self._sharing is None:
            self._sharing = self._may_share(jobs[0])
        with torch_support.scoring():
            logits = self._shared(jobs) if self._sharing else self._plain(jobs)
            chances = torch.softmax(logits, dim=-1)[:, self._token].cpu()
        return ScoreBatch(scores=nested([as_score(value) for value in chances.tolist()], texts))

    def close(self) -> None:
        """Give the model's memory back."""
        self._loaded = None
        torch_support.release(self._device)

    def _may_share(self, job: Job) -> bool:
        """Try on two prompts whether this model can go on from a stored image.

        Nearly all can. One that cannot (its positions or masks need the whole prompt at once)
        gives other logits or an error, and is then asked pair by pair.
        """
        trial = [Job(job.image, [*job.texts, "a"][:2])]
        with torch_support.scoring():
            plain = self._plain(trial)
            try:
                shared = self._shared(trial)
            except (TypeError, ValueError, AttributeError, IndexError, RuntimeError):
                return False
        gap = torch.softmax(plain, dim=-1) - torch.softmax(shared, dim=-1)
        return float(gap.abs().max()) <= SHARING_TOLERANCE[self._dtype]

    def _plain(self, jobs: Sequence[Job]) -> torch.Tensor:
        """float32 [pairs, vocabulary]: every pair by itself, image included."""
        pairs = [(job.image, text) for job in jobs for text in job.texts]
        inputs = self._inputs([image for image, _ in pairs], [text for _, text in pairs])
        return vlm.next_token_logits(self._model(), inputs)

    def _shared(self, jobs: Sequence[Job]) -> torch.Tensor:
        """float32 [pairs, vocabulary]: each image and the start of its prompts once."""
        inputs = self._inputs([job.image for job in jobs], [job.texts[0] for job in jobs])
        tails = [self._tails(job) for job in jobs]
        lengths = inputs["attention_mask"].sum(dim=1).tolist()
        starts = [length - len(own[0]) for length, own in zip(lengths, tails, strict=True)]
        if len(set(starts)) > 1 or len({len(own) for own in tails}) > 1:
            # Images of different size, or not equally many texts: one by one.
            return torch.cat([self._shared([job]) for job in jobs])
        for row, (start, own) in enumerate(zip(starts, tails, strict=True)):
            if inputs["input_ids"][row, start : start + len(own[0])].tolist() != own[0]:
                raise ValueError("the processor changes more of the prompt than the image's place")
        # What has one entry a token is cut, the image's own arrays are not.
        tokens = inputs["input_ids"].shape
        prefix = {
            key: value[:, : starts[0]] if value.shape == tokens else value
            for key, value in inputs.items()
        }
        owner = [row for row, own in enumerate(tails) for _ in own]
        return vlm.logits_after_prefix(
            self._model(), prefix, [tail for own in tails for tail in own], owner
        )

    def _tails(self, job: Job) -> list[list[int]]:
        """The ids behind what all prompts of an image share; never a part of the image."""
        tokenizer = self._processor.tokenizer
        rows = tokenizer([self._prompt(text) for text in job.texts])["input_ids"]
        start = vlm.common_start(rows)
        image = getattr(self._processor, "image_token_id", None)
        if any(image in row[start:] for row in rows):
            raise ValueError("the image stands behind the text in this model's prompt")
        return [row[start:] for row in rows]

    def _inputs(self, images: list[ImageInput], texts: list[str]) -> dict[str, torch.Tensor]:
        inputs = self._processor(
            images=[[pixels_of(image)] for image in images],
            text=[self._prompt(text) for text in texts],
            padding=True,
            padding_side="right",
            return_tensors="pt",
        )
        inputs.pop("labels", None)  # some processors prepare for training
        dtype = self._model().dtype
        return {
            key: value.to(self._device, dtype if value.is_floating_point() else None)
            for key, value in inputs.items()
        }

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

    def _load_processor(self, model_type: str) -> Any:
        processor = torch_support.load_processor(self._checkpoint, model_type)
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
