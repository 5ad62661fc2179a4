"""`clipscore`: max(100·cos, 0) of CLIP's two embeddings (Hessel et al., 2021).

As published for the benchmark: CLIP ViT-L/14 in float32 on an image squashed to 224×224
(bilinear). `--option preprocessing=processor` takes the checkpoint's own resize and crop instead.
A text longer than 77 tokens is cut by the tokenizer, so that the end token, whose state is the
embedding, stays last; the published run lost it, which is the one difference to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from PIL import Image
from transformers import AutoTokenizer, CLIPModel

from croc_annotate.benchmark.metric import (
    ImageInput,
    MetricError,
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

MODEL = "openai/clip-vit-large-patch14"


class ClipScore(DualEncoderScoring):
    """CLIPScore with any CLIP checkpoint of `transformers`."""

    def __init__(self, *, options: MetricOptions) -> None:
        super().__init__()
        check_options(options, "clipscore", "preprocessing")
        self._device = torch_support.pick_device(options.device)
        self._dtype = torch_support.pick_dtype(options.dtype, default="float32")
        self._checkpoint = torch_support.find_checkpoint(options, default=MODEL)
        self._preprocessing = from_image_processor(
            torch_support.load_image_processor(self._checkpoint)
        )
        mode = options.extra.get("preprocessing", "squash")
        if mode == "squash":
            side = (self._preprocessing.crop or (self._preprocessing.height,))[0]
            self._preprocessing = self._preprocessing.squashed(
                side=side, resample=Image.Resampling.BILINEAR
            )
        elif mode != "processor":
            raise MetricError(f"preprocessing={mode!r} is unknown to clipscore: squash, processor.")
        self._loaded: CLIPModel | None = None
        self._tokenizer = torch_support.load_part(AutoTokenizer, self._checkpoint)

    def describe(self) -> MetricFacts:
        """The published settings unless an option changed them."""
        return MetricFacts(
            name="clipscore",
            label="CLIPScore",
            model=self._checkpoint.source,
            revision=self._checkpoint.revision,
            prompt="{text}",
            preprocessing=self._preprocessing.describe(),
            image_backend=IMAGE_BACKEND,
            dtype=self._dtype,
            source="Hessel et al. 2021, arXiv:2104.08718",
            parameters=torch_support.count_parameters(self._loaded) if self._loaded else None,
        )

    def prepare(self, *, image: ImageInput) -> ImageInput:
        """Resize in a decoding worker."""
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
        """float32 [texts, width], rows of length 1; always 77 tokens wide, so of one shape."""
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
        """max(100·cos, 0), float32 [images, texts]."""
        return np.asarray(np.maximum(100 * (images @ texts.T), 0), dtype=np.float32)

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
