"""`pickscore`: exp(logit_scale)·cos of a CLIP ViT-H/14 trained on human preferences.

The weights and the processor are two models of the hub: the checkpoint `PickScore_v1` holds the
weights, the one that it was tuned from holds tokenizer and image processor. A local folder is
expected to hold both. PickScore was trained to choose the preferred image of a prompt, so looks
enter it beside alignment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from transformers import AutoTokenizer, CLIPModel

from croc_annotate.benchmark.metric import (
    ImageInput,
    MetricFacts,
    MetricOptions,
    check_options,
    pixels_of,
)
from croc_annotate.benchmark.metrics import torch_support
from croc_annotate.benchmark.metrics.dual_encoder import DualEncoderScoring, unit_rows
from croc_annotate.benchmark.metrics.image_preprocessing import (
    IMAGE_BACKEND,
    from_image_processor,
    prepared,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

MODEL = "yuvalkirstain/PickScore_v1"
PROCESSOR = "laion/CLIP-ViT-H-14-laion2B-s32B-b79K"


class PickScore(DualEncoderScoring):
    """PickScore v1, or any CLIP checkpoint scored by its own scale."""

    def __init__(self, *, options: MetricOptions) -> None:
        super().__init__()
        check_options(options, "pickscore", "processor")
        self._device = torch_support.pick_device(options.device)
        self._dtype = torch_support.pick_dtype(options.dtype, default="float32")
        self._checkpoint = torch_support.find_checkpoint(options, default=MODEL)
        self._processor = self._find_processor(options)
        self._preprocessing = from_image_processor(
            torch_support.load_image_processor(self._processor)
        )
        self._tokenizer = torch_support.load_part(AutoTokenizer, self._processor)
        self._loaded: CLIPModel | None = None

    def _find_processor(self, options: MetricOptions) -> torch_support.Checkpoint:
        chosen = options.extra.get("processor")
        if chosen is None and self._checkpoint.local:
            return self._checkpoint
        return torch_support.find_checkpoint(
            MetricOptions(model=chosen or PROCESSOR),
            default=PROCESSOR,
            file="preprocessor_config.json",
        )

    def describe(self) -> MetricFacts:
        """Weights and processor, each with its revision."""
        return MetricFacts(
            name="pickscore",
            label="PickScore",
            model=self._checkpoint.source,
            revision=self._checkpoint.revision,
            prompt="{text}",
            preprocessing=self._preprocessing.describe(),
            image_backend=IMAGE_BACKEND,
            dtype=self._dtype,
            settings={
                "processor": self._processor.source,
                "processor_revision": self._processor.revision,
            },
            source="Kirstain et al. 2023, arXiv:2305.01569",
            parameters=torch_support.count_parameters(self._loaded) if self._loaded else None,
        )

    def prepare(self, *, image: ImageInput) -> ImageInput:
        """Resize and crop in a decoding worker."""
        return prepared(image, self._preprocessing)

    def embed_images(self, *, images: Sequence[ImageInput]) -> np.ndarray:
        """float32 [images, width], rows of length 1."""
        array = self._preprocessing.array([pixels_of(image) for image in images])
        model = self._model()
        with torch_support.scoring():
            values = torch.from_numpy(array).to(self._device, model.dtype)
            features = model.get_image_features(pixel_values=values).pooler_output
            return unit_rows(features.float().cpu().numpy())

    def embed_texts(self, *, texts: Sequence[str]) -> np.ndarray:
        """float32 [texts, width], rows of length 1; 77 tokens, the end token kept."""
        model = self._model()
        tokens = self._tokenizer(
            list(texts),
            padding="max_length",
            truncation=True,
            max_length=self._length(),
            return_tensors="pt",
        ).to(self._device)
        with torch_support.scoring():
            features = model.get_text_features(
                input_ids=tokens["input_ids"], attention_mask=tokens["attention_mask"]
            ).pooler_output
            return unit_rows(features.float().cpu().numpy())

    def similarity(self, *, images: np.ndarray, texts: np.ndarray) -> np.ndarray:
        """exp(logit_scale)·cos, float32 [images, texts]."""
        scale = np.exp(np.float32(self._model().logit_scale.item()))
        return np.asarray(scale * (images @ texts.T), dtype=np.float32)

    def truncated(self, *, texts: Sequence[str]) -> frozenset[str]:
        """Texts of more than 77 tokens, start and end token counted."""
        ids = self._tokenizer(list(texts), truncation=False, verbose=False)["input_ids"]
        limit = self._length()
        return frozenset(t for t, own in zip(texts, ids, strict=True) if len(own) > limit)

    def close(self) -> None:
        """Give the model's memory back."""
        self._loaded = None
        torch_support.release(self._device)

    def _length(self) -> int:
        return int(self._model().config.text_config.max_position_embeddings)

    def _model(self) -> CLIPModel:
        if self._loaded is None:
            self._loaded = torch_support.load_model(
                CLIPModel, self._checkpoint, dtype=self._dtype, device=self._device
            )
        return self._loaded
