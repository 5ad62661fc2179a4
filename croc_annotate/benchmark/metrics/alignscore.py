"""`alignscore`: cosine over the learned temperature, of ALIGN's two embeddings.

Texts are cut at the text encoder's positions (512); the published run did not cut at all and
stopped with an error beyond that. The padding is masked, so texts may be padded to any length; all
are padded to a multiple of 64, the length at which the model was trained.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from transformers import AlignModel, AutoConfig, AutoTokenizer

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

MODEL = "kakaobrain/align-base"
PAD_TO = 64


class AlignScore(DualEncoderScoring):
    """ALIGN (EfficientNet and BERT) of `transformers`; its card states no licence."""

    def __init__(self, *, options: MetricOptions) -> None:
        super().__init__()
        check_options(options, "alignscore")
        self._device = torch_support.pick_device(options.device)
        self._dtype = torch_support.pick_dtype(options.dtype, default="float32")
        self._checkpoint = torch_support.find_checkpoint(options, default=MODEL)
        config = torch_support.load_part(AutoConfig, self._checkpoint)
        self._length = int(config.text_config.max_position_embeddings)
        self._preprocessing = from_image_processor(
            torch_support.load_image_processor(self._checkpoint)
        )
        self._tokenizer = torch_support.load_part(AutoTokenizer, self._checkpoint)
        self._loaded: AlignModel | None = None

    def describe(self) -> MetricFacts:
        """The checkpoint decides all but the dtype."""
        return MetricFacts(
            name="alignscore",
            label="AlignScore",
            model=self._checkpoint.source,
            revision=self._checkpoint.revision,
            prompt="{text}",
            preprocessing=self._preprocessing.describe(),
            image_backend=IMAGE_BACKEND,
            dtype=self._dtype,
            settings={"text_length": str(self._length), "pad_to": str(PAD_TO)},
            source="Jia et al. 2021, arXiv:2102.05918",
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
        """float32 [texts, width], rows of length 1."""
        tokens = self._tokenizer(
            list(texts),
            padding="longest",
            pad_to_multiple_of=min(PAD_TO, self._length),
            truncation=True,
            max_length=self._length,
            return_tensors="pt",
        ).to(self._device)
        model = self._model()
        with torch_support.scoring():
            states = model.get_text_features(
                input_ids=tokens["input_ids"], attention_mask=tokens["attention_mask"]
            )
            return unit_rows(states.pooler_output.float().cpu().numpy())

    def similarity(self, *, images: np.ndarray, texts: np.ndarray) -> np.ndarray:
        """cos / temperature, float32 [images, texts]."""
        temperature = np.float32(self._model().temperature.item())
        return np.asarray((images @ texts.T) / temperature, dtype=np.float32)

    def truncated(self, *, texts: Sequence[str]) -> frozenset[str]:
        """Texts of more tokens than the text encoder has positions."""
        ids = self._tokenizer(list(texts), truncation=False, verbose=False)["input_ids"]
        return frozenset(t for t, own in zip(texts, ids, strict=True) if len(own) > self._length)

    def close(self) -> None:
        """Give the model's memory back."""
        self._loaded = None
        torch_support.release(self._device)

    def _model(self) -> AlignModel:
        if self._loaded is None:
            self._loaded = torch_support.load_model(
                AlignModel, self._checkpoint, dtype=self._dtype, device=self._device
            )
        return self._loaded
