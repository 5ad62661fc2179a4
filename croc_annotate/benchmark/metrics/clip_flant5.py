"""`clip-flant5`: VQAScore as published, sqrt(P("Yes")·P(end | "Yes")) of CLIP-FlanT5.

The model is a T5 whose encoder reads 576 projected patch features of a CLIP ViT-L/14 (336 pixels,
second to last layer) in place of one image token. `transformers` has no class for it, so the few
lines that join the two stand here and load the published files: T5's own names, `mm_projector.0`
and `.2`, and the tower under `vision_tower.vision_tower`, or from its own checkpoint where the
files lack it.

The image is padded to a square with the mean colour. Image features are computed once for all
texts; the published code does it for each pair.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import torch
from PIL import Image
from transformers import (
    AutoTokenizer,
    CLIPVisionConfig,
    CLIPVisionModel,
    T5Config,
    T5ForConditionalGeneration,
)

from croc_annotate.benchmark.metric import (
    ImageInput,
    ImageNeed,
    MetricFacts,
    MetricOptions,
    ScoreBatch,
    as_score,
    check_batch,
    check_options,
    nested,
    pixels_of,
)
from croc_annotate.benchmark.metrics import torch_support
from croc_annotate.benchmark.metrics.checkpoint_files import read_weights, weight_names
from croc_annotate.benchmark.metrics.image_preprocessing import (
    IMAGE_BACKEND,
    Preprocessing,
    from_image_processor,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    import numpy as np

MODEL = "zhiqiulin/clip-flant5-xxl"
TOKENIZER = "google/flan-t5-xxl"
QUESTION = 'Does this figure show "{text}"? Please answer yes or no.'
ANSWER = "Yes"
SYSTEM = (
    "A chat between a curious user and an artificial intelligence assistant. The assistant gives "
    "helpful, detailed, and polite answers to the user's questions."
)
TOWER_PREFIX = "vision_tower.vision_tower."


class ClipFlanT5Model(torch.nn.Module):
    """T5 with a vision tower and a two-layer projector in front of its encoder."""

    def __init__(
        self, t5: T5ForConditionalGeneration, tower: CLIPVisionModel, *, select_layer: int
    ) -> None:
        super().__init__()
        self.t5 = t5
        self.tower = tower
        self.select_layer = select_layer
        width, wide = tower.config.hidden_size, t5.config.d_model
        self.projector = torch.nn.Sequential(
            torch.nn.Linear(width, wide), torch.nn.GELU(), torch.nn.Linear(wide, wide)
        )

    def image_features(self, pixels: torch.Tensor) -> torch.Tensor:
        """[images, patches, width of T5] from [images, 3, side, side]; the class token is left out."""
        states = self.tower(pixel_values=pixels, output_hidden_states=True).hidden_states
        return self.projector(states[self.select_layer][:, 1:])

    def answer_logits(
        self,
        features: torch.Tensor,
        before: torch.Tensor,
        behind: torch.Tensor,
        mask: torch.Tensor,
        answer: torch.Tensor,
    ) -> torch.Tensor:
        """float32 [pairs, tokens of the answer, vocabulary], each given the tokens before it.

        `before` [tokens] is common, `behind` [pairs, longest] is padded on the right by `mask`.
        """
        pairs = len(features)
        embed = self.t5.shared
        front = embed(before).expand(pairs, -1, -1)
        joined = torch.cat([front, features.to(front.dtype), embed(behind)], dim=1)
        seen = torch.ones(pairs, front.shape[1] + features.shape[1], dtype=mask.dtype)
        start = torch.full((1,), self.t5.config.decoder_start_token_id, device=answer.device)
        decoder = torch.cat([start, answer[:-1]]).expand(pairs, -1)
        return self.t5(
            inputs_embeds=joined,
            attention_mask=torch.cat([seen.to(mask.device), mask], dim=1),
            decoder_input_ids=decoder,
            use_cache=False,
        ).logits.float()


class ClipFlanT5:
    """Options: `tokenizer` (google/flan-t5-xxl for models of the hub), `prompt` with {text}."""

    needs: ImageNeed = "pixels"

    def __init__(self, *, options: MetricOptions) -> None:
        self._device = torch_support.pick_device(options.device)
        default = "float32" if self._device.type == "cpu" else "bfloat16"
        self._dtype = torch_support.pick_dtype(options.dtype, default=default)
        self._question = check_options(options, "clip-flant5", "tokenizer", prompt=QUESTION)
        self._checkpoint = torch_support.find_checkpoint(options, default=MODEL)
        self._config: dict[str, Any] = json.loads(
            torch_support.fetch(self._checkpoint, "config.json").read_text("utf-8")
        )
        self._tower = torch_support.find_checkpoint(
            MetricOptions(model=self._config.get("mm_vision_tower")),
            default="openai/clip-vit-large-patch14-336",
        )
        found = from_image_processor(torch_support.load_image_processor(self._tower))
        self._preprocessing = found
        chosen = options.extra.get("tokenizer")
        self._tokenizer_source = (
            self._checkpoint
            if chosen is None and self._checkpoint.local
            else torch_support.find_checkpoint(MetricOptions(model=chosen), default=TOKENIZER)
        )
        self._tokenizer = torch_support.load_part(AutoTokenizer, self._tokenizer_source)
        self._loaded: ClipFlanT5Model | None = None

    def describe(self) -> MetricFacts:
        """Three parts with a revision each: T5 and projector, vision tower, tokenizer."""
        return MetricFacts(
            name="clip-flant5",
            label="VQAScore (CLIP-FlanT5)",
            model=self._checkpoint.source,
            revision=self._checkpoint.revision,
            prompt=f"{SYSTEM} USER: <image>\n{self._question} ASSISTANT: ",
            preprocessing=f"pad to square with the mean, {self._preprocessing.describe()}",
            image_backend=IMAGE_BACKEND,
            dtype=self._dtype,
            settings={
                "answer": ANSWER,
                "tower": f"{self._tower.source}@{self._tower.revision}",
                "tokenizer": f"{self._tokenizer_source.source}@{self._tokenizer_source.revision}",
            },
            source="Lin et al. 2024, arXiv:2404.01291",
            parameters=torch_support.count_parameters(self._loaded) if self._loaded else None,
        )

    def score(self, *, images: Sequence[ImageInput], texts: Sequence[Sequence[str]]) -> ScoreBatch:
        """The geometric mean of the probabilities of the answer's two tokens, in float32."""
        check_batch(images, texts)
        owner = [index for index, own in enumerate(texts) for _ in own]
        if not owner:
            return ScoreBatch(scores=nested([], texts))
        array = pad_and_prepare([pixels_of(image) for image in images], self._preprocessing)
        behind = self._tokenizer(
            [f"\n{self._question.replace('{text}', t)} ASSISTANT: " for own in texts for t in own],
            padding=True,
            padding_side="right",
            return_tensors="pt",
        ).to(self._device)
        before = self._ids(f"{SYSTEM} USER: ")
        answer = self._ids(ANSWER)
        model = self._model()
        with torch_support.scoring():
            pixels = torch.from_numpy(array).to(self._device, model.tower.dtype)
            features = model.image_features(pixels)[torch.tensor(owner, device=self._device)]
            logits = model.answer_logits(
                features, before, behind["input_ids"], behind["attention_mask"], answer
            )
            picked = torch.log_softmax(logits, dim=-1).gather(
                2, answer.expand(len(owner), -1)[:, :, None]
            )
            scores = picked[:, :, 0].mean(dim=1).exp().cpu().tolist()
        return ScoreBatch(scores=nested([as_score(value) for value in scores], texts))

    def close(self) -> None:
        """Give the model's memory back."""
        self._loaded = None
        torch_support.release(self._device)

    def _ids(self, text: str) -> torch.Tensor:
        """With the end token behind each piece, as the model was trained (and as published)."""
        return torch.tensor(self._tokenizer(text)["input_ids"], device=self._device)

    def _model(self) -> ClipFlanT5Model:
        if self._loaded is None:
            with torch_support.loading(self._checkpoint):
                self._loaded = load_published(
                    self._config,
                    torch_support.folder_of(self._checkpoint),
                    torch_support.folder_of(self._tower),
                    checkpoint=self._checkpoint,
                    dtype=torch_support.DTYPES[self._dtype],
                    vocabulary=len(self._tokenizer),
                ).to(self._device)
            torch_support.exact_float32()
        return self._loaded


def pad_and_prepare(images: Sequence[Image.Image], preprocessing: Preprocessing) -> np.ndarray:
    """float32 [images, 3, side, side]: padded to a square with the mean colour, then resized."""
    colour = tuple(int(value * 255) for value in preprocessing.mean)
    return preprocessing.array([_square(image, colour) for image in images])


def _square(image: Image.Image, colour: tuple[int, ...]) -> Image.Image:
    side = max(image.size)
    if image.width == image.height:
        return image
    canvas = Image.new("RGB", (side, side), colour)
    canvas.paste(image, ((side - image.width) // 2, (side - image.height) // 2))
    return canvas


def load_published(
    config: Mapping[str, Any],
    folder: Path,
    tower_folder: Path,
    *,
    checkpoint: torch_support.Checkpoint,
    dtype: torch.dtype,
    vocabulary: int,
) -> ClipFlanT5Model:
    """Build the model from the published files, each weight in its place or an error."""
    names = weight_names(folder)
    t5_names = [n for n in names if n.startswith(("shared.", "encoder.", "decoder.", "lm_head."))]
    t5_config = T5Config.from_dict({**config, "model_type": "t5"})
    t5, report = T5ForConditionalGeneration.from_pretrained(
        None,
        config=t5_config,
        state_dict=read_weights(folder, t5_names),
        dtype=dtype,
        output_loading_info=True,
    )
    torch_support.refuse_random_weights(report["missing_keys"], checkpoint, "CLIP-FlanT5")
    t5.resize_token_embeddings(max(vocabulary, t5.config.vocab_size))
    tower = _load_tower(names, folder, tower_folder, dtype)
    model = ClipFlanT5Model(t5, tower, select_layer=int(config.get("mm_vision_select_layer", -2)))
    wanted = [f"mm_projector.{part}" for part in ("0.weight", "0.bias", "2.weight", "2.bias")]
    torch_support.refuse_random_weights(set(wanted) - set(names), checkpoint, "CLIP-FlanT5")
    projector = read_weights(folder, wanted)
    model.projector.load_state_dict(
        {name.removeprefix("mm_projector."): value for name, value in projector.items()}
    )
    model.projector.to(dtype)
    return model.eval()


def _load_tower(
    names: Sequence[str], folder: Path, tower_folder: Path, dtype: torch.dtype
) -> CLIPVisionModel:
    inside = [name for name in names if name.startswith(TOWER_PREFIX)]
    if not inside:
        return CLIPVisionModel.from_pretrained(tower_folder, dtype=dtype)
    weights = {
        name.removeprefix(TOWER_PREFIX): value
        for name, value in read_weights(folder, inside).items()
    }
    config = CLIPVisionConfig.from_pretrained(tower_folder)
    return CLIPVisionModel.from_pretrained(None, config=config, state_dict=weights, dtype=dtype)
