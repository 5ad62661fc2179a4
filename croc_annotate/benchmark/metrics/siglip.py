"""`siglip`: the cosine of SigLIP's or SigLIP 2's two embeddings.

The model's own logit is exp(scale)·cos + bias with two learned constants, so it ranks exactly like
the cosine; the sigmoid of it saturates and is not used. SigLIP was trained on texts padded to
64 tokens and reads the last position: texts must be padded to the full length, also single ones.
Both generations were trained on lower-case texts; only the first one's tokenizer sees to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from transformers import AutoConfig, AutoModel, AutoTokenizer

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

MODEL = "google/siglip2-so400m-patch14-384"


class SiglipScore(DualEncoderScoring):
    """Checkpoints of fixed resolution, loaded as SiglipModel (SigLIP 2 uses the same class)."""

    def __init__(self, *, options: MetricOptions) -> None:
        super().__init__()
        check_options(options, "siglip")
        self._device = torch_support.pick_device(options.device)
        self._dtype = torch_support.pick_dtype(options.dtype, default="float32")
        self._checkpoint = torch_support.find_checkpoint(options, default=MODEL)
        config = torch_support.load_part(AutoConfig, self._checkpoint)
        if config.model_type != "siglip":
            raise MetricError(
                f"{self._checkpoint.source} is a {config.model_type!r} model; siglip reads SigLIP and "
                "SigLIP 2 checkpoints of fixed resolution (not NaFlex)."
            )
        self._length = int(config.text_config.max_position_embeddings)
        self._preprocessing = from_image_processor(
            torch_support.load_image_processor(self._checkpoint)
        )
        self._tokenizer = torch_support.load_part(AutoTokenizer, self._checkpoint)
        self._loaded: torch.nn.Module | None = None

    def describe(self) -> MetricFacts:
        """The checkpoint decides all but the dtype."""
        return MetricFacts(
            name="siglip",
            label="SigLIP",
            model=self._checkpoint.source,
            revision=self._checkpoint.revision,
            prompt="{text}",
            preprocessing=self._preprocessing.describe(),
            image_backend=IMAGE_BACKEND,
            dtype=self._dtype,
            settings={"text_length": str(self._length), "text_case": "lower"},
            source="Zhai et al. 2023, arXiv:2303.15343; Tschannen et al. 2025, arXiv:2502.14786",
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
        """float32 [texts, width], rows of length 1; padded to the full length without a mask."""
        tokens = self._tokenizer(
            [text.lower() for text in texts],
            padding="max_length",
            truncation=True,
            max_length=self._length,
            return_tensors="pt",
        )
        model = self._model()
        with torch_support.scoring():
            ids = tokens["input_ids"].to(self._device)
            features = model.get_text_features(input_ids=ids).pooler_output
            return unit_rows(features.float().cpu().numpy())

    def similarity(self, *, images: np.ndarray, texts: np.ndarray) -> np.ndarray:
        """cos, float32 [images, texts]."""
        return np.asarray(images @ texts.T, dtype=np.float32)

    def truncated(self, *, texts: Sequence[str]) -> frozenset[str]:
        """Texts of more tokens than the text tower has positions."""
        lower = [text.lower() for text in texts]
        ids = self._tokenizer(lower, truncation=False, verbose=False)["input_ids"]
        return frozenset(t for t, own in zip(texts, ids, strict=True) if len(own) > self._length)

    def close(self) -> None:
        """Give the model's memory back."""
        self._loaded = None
        torch_support.release(self._device)

    def _model(self) -> torch.nn.Module:
        if self._loaded is None:
            self._loaded = torch_support.load_model(
                AutoModel, self._checkpoint, dtype=self._dtype, device=self._device
            )
        return self._loaded
