"""`blip2-itm`: the probability that image and text match, by BLIP-2's matching head.

softmax over the head's two logits, each the mean over the 32 query tokens; softmax once (the
class's documentation example applies it twice, which turns 1.0 into 0.731). The vision tower runs
once for an image; the Q-Former then reads each text beside it. The model's own `forward` would
encode the image again for every text, and with the processor it cuts the text by the number of
query tokens when the two are not built for each other: two texts then score alike, without an
error. Here the tokenizer is called directly and the parts of the model are called one by one.

float16 with the Q-Former kept in float32, as published; on the CPU float32 throughout.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from transformers import AutoTokenizer, Blip2ForImageTextRetrieval

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
from croc_annotate.benchmark.metrics.image_preprocessing import (
    IMAGE_BACKEND,
    from_image_processor,
    prepared,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

MODEL = "Salesforce/blip2-itm-vit-g"
TEXT_TOKENS = 35  # as published
MATCH = 1


class Blip2Itm:
    """BLIP-2 image–text matching. Its cosine (ITC) is another score and not computed here."""

    needs: ImageNeed = "pixels"

    def __init__(self, *, options: MetricOptions) -> None:
        check_options(options, "blip2-itm")
        self._device = torch_support.pick_device(options.device)
        default = "float16" if self._device.type == "cuda" else "float32"
        self._dtype = torch_support.pick_dtype(options.dtype, default=default)
        self._checkpoint = torch_support.find_checkpoint(options, default=MODEL)
        # Squashed whatever the processor's file says, as the published preprocessing does.
        found = from_image_processor(torch_support.load_image_processor(self._checkpoint))
        self._preprocessing = found.squashed(
            side=found.height or found.shortest_edge or 224, resample=found.resample
        )
        self._tokenizer = torch_support.load_part(AutoTokenizer, self._checkpoint)
        self._loaded: Blip2ForImageTextRetrieval | None = None

    def describe(self) -> MetricFacts:
        """The published settings; the dtype depends on the device."""
        return MetricFacts(
            name="blip2-itm",
            label="BLIP2-ITM",
            model=self._checkpoint.source,
            revision=self._checkpoint.revision,
            prompt="{text}",
            preprocessing=self._preprocessing.describe(),
            image_backend=IMAGE_BACKEND,
            dtype=self._dtype,
            settings={"text_length": str(TEXT_TOKENS), "qformer_dtype": "float32"},
            source="Li et al. 2023, arXiv:2301.12597",
            parameters=torch_support.count_parameters(self._loaded) if self._loaded else None,
        )

    def prepare(self, *, image: ImageInput) -> ImageInput:
        """Resize in a decoding worker."""
        return prepared(image, self._preprocessing)

    def score(self, *, images: Sequence[ImageInput], texts: Sequence[Sequence[str]]) -> ScoreBatch:
        """P(match) of each pair, in float32 from the logits on."""
        check_batch(images, texts)
        flat = [text for own in texts for text in own]
        if not flat:
            return ScoreBatch(scores=nested([], texts))
        owner = [index for index, own in enumerate(texts) for _ in own]
        array = self._preprocessing.array([pixels_of(image) for image in images])
        model = self._model()
        with torch_support.scoring():
            values = torch.from_numpy(array).to(self._device, model.vision_model.dtype)
            states = model.vision_model(pixel_values=values).last_hidden_state.float()
            logits = self._matching(model, states[torch.tensor(owner, device=self._device)], flat)
            chances = torch.softmax(logits.float(), dim=1)[:, MATCH].cpu()
        return ScoreBatch(
            scores=nested([as_score(value) for value in chances.tolist()], texts),
            truncated=self._truncated(flat),
        )

    def close(self) -> None:
        """Give the model's memory back."""
        self._loaded = None
        torch_support.release(self._device)

    def _matching(self, model: Any, states: torch.Tensor, texts: list[str]) -> torch.Tensor:
        """Logits [pairs, 2] of the matching head from image states [pairs, patches, width]."""
        tokens = self._tokenizer(
            texts,
            padding="max_length",
            truncation=True,
            max_length=TEXT_TOKENS,
            return_tensors="pt",
        ).to(self._device)
        queries = model.query_tokens.expand(len(texts), -1, -1)
        seen = torch.ones(queries.shape[:2], dtype=torch.long, device=self._device)
        output = model.qformer(
            query_embeds=model.embeddings(input_ids=tokens["input_ids"], query_embeds=queries),
            query_length=queries.shape[1],
            attention_mask=torch.cat([seen, tokens["attention_mask"]], dim=1),
            encoder_hidden_states=states,
            encoder_attention_mask=torch.ones(
                states.shape[:2], dtype=torch.long, device=self._device
            ),
        )
        read = output.last_hidden_state[:, : queries.shape[1], :]
        return model.itm_head(read).mean(dim=1)

    def _truncated(self, texts: list[str]) -> frozenset[str]:
        ids = self._tokenizer(texts, truncation=False, verbose=False)["input_ids"]
        return frozenset(t for t, own in zip(texts, ids, strict=True) if len(own) > TEXT_TOKENS)

    def _model(self) -> Blip2ForImageTextRetrieval:
        if self._loaded is None:
            model = torch_support.load_model(
                Blip2ForImageTextRetrieval,
                self._checkpoint,
                dtype=self._dtype,
                device=self._device,
            )
            for part in (model.embeddings, model.qformer, model.itm_head):
                part.float()
            model.query_tokens.data = model.query_tokens.data.float()
            self._loaded = model
        return self._loaded
