"""`bvqa-hf`: BLIP-VQA over the noun chunks of the text: the product of P(yes | "chunk?").

The published BVQA uses another checkpoint at 480 pixels and another library; this is its formula
on the checkpoint of `transformers` (384 pixels), hence the name: the numbers are not the published
ones. Chunks come from spaCy as published, at most eight, lower case, punctuation stripped; the
factors P(yes) / (P(yes) + P(no)) are rounded to four decimals; a text without a noun chunk has no
score. `--option chunker=package.module:function` takes another chunker (text → list of chunks).

The class's own `forward` gives no logits of the decoder, its question does not begin with [ENC],
and its decoder sees the padding of the question. So the parts are called one by one, [ENC] is
set, and questions are batched only with others of exactly the same number of tokens.
"""

from __future__ import annotations

import importlib
import math
import re
from collections import defaultdict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

import torch
from transformers import AutoTokenizer, BlipForQuestionAnswering

from croc_annotate.benchmark.metric import (
    ImageInput,
    ImageNeed,
    MetricError,
    MetricFacts,
    MetricOptions,
    ScoreBatch,
    check_batch,
    check_options,
    pixels_of,
    whole_number,
)
from croc_annotate.benchmark.metrics import torch_support
from croc_annotate.benchmark.metrics.image_preprocessing import (
    IMAGE_BACKEND,
    from_image_processor,
    prepared,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

MODEL = "Salesforce/blip-vqa-base"
SPACY_MODEL = "en_core_web_sm"
MOST_CHUNKS = 8
TEXT_TOKENS = 35
ENC = 30523
NO_CHUNK = "the text has no noun phrase"

Chunker = Callable[[str], "list[str]"]


class BlipVqa:
    """Options: `chunker` (spaCy), `enc_token_id` (30523, BLIP's)."""

    needs: ImageNeed = "pixels"

    def __init__(self, *, options: MetricOptions) -> None:
        check_options(options, "bvqa-hf", "chunker", "enc_token_id")
        self._device = torch_support.pick_device(options.device)
        self._dtype = torch_support.pick_dtype(options.dtype, default="float32")
        self._checkpoint = torch_support.find_checkpoint(options, default=MODEL)
        self._preprocessing = from_image_processor(
            torch_support.load_image_processor(self._checkpoint)
        )
        self._tokenizer = torch_support.load_part(AutoTokenizer, self._checkpoint)
        self._enc = whole_number(options, "enc_token_id", ENC)
        self._chunker, self._chunker_name = load_chunker(
            options.extra.get("chunker", f"spacy:{SPACY_MODEL}")
        )
        self._chunks: dict[str, list[str]] = {}
        self._loaded: Any = None

    def describe(self) -> MetricFacts:
        """The chunker is part of the metric: other chunks, other questions."""
        return MetricFacts(
            name="bvqa-hf",
            label="BVQA (transformers, 384 px)",
            model=self._checkpoint.source,
            revision=self._checkpoint.revision,
            prompt="{chunk}?",
            preprocessing=self._preprocessing.describe(),
            image_backend=IMAGE_BACKEND,
            dtype=self._dtype,
            settings={"chunker": self._chunker_name, "chunks": str(MOST_CHUNKS), "round": "4"},
            source="Huang et al. 2023, arXiv:2307.06350; Li et al. 2022, arXiv:2201.12086",
            parameters=torch_support.count_parameters(self._loaded) if self._loaded else None,
        )

    def prepare(self, *, image: ImageInput) -> ImageInput:
        """Resize in a decoding worker."""
        return prepared(image, self._preprocessing)

    def score(self, *, images: Sequence[ImageInput], texts: Sequence[Sequence[str]]) -> ScoreBatch:
        """The product over a text's chunks; equal questions on an image are asked once."""
        check_batch(images, texts)
        asked = dict.fromkeys(
            (index, chunk)
            for index, own in enumerate(texts)
            for text in own
            for chunk in self._chunks_of(text)
        )
        factors = self._factors(images, list(asked)) if asked else {}
        scores = [
            [self._product(factors, index, text) for text in own] for index, own in enumerate(texts)
        ]
        missing = any(value is None for row in scores for value in row)
        cut = {t for own in texts for t in own if any(map(self._too_long, self._chunks_of(t)))}
        return ScoreBatch(
            scores=scores, truncated=frozenset(cut), reasons=(NO_CHUNK,) if missing else ()
        )

    def close(self) -> None:
        """Give the model's memory back."""
        self._loaded = None
        torch_support.release(self._device)

    def _chunks_of(self, text: str) -> list[str]:
        if text not in self._chunks:
            found = [plain_question(chunk) for chunk in self._chunker(text)]
            self._chunks[text] = [chunk for chunk in found if chunk][:MOST_CHUNKS]
        return self._chunks[text]

    def _product(
        self, factors: dict[tuple[int, str], float], index: int, text: str
    ) -> float | None:
        chunks = self._chunks_of(text)
        if not chunks:
            return None
        return math.prod(factors[index, chunk] for chunk in chunks)

    def _factors(
        self, images: Sequence[ImageInput], asked: list[tuple[int, str]]
    ) -> dict[tuple[int, str], float]:
        """P(yes) / (P(yes) + P(no)) of each (image, chunk), rounded to four decimals."""
        array = self._preprocessing.array([pixels_of(image) for image in images])
        model = self._model()
        by_length: dict[int, list[tuple[int, str]]] = defaultdict(list)
        for job in asked:
            by_length[len(self._ids(job[1]))].append(job)
        found: dict[tuple[int, str], float] = {}
        with torch_support.scoring():
            values = torch.from_numpy(array).to(self._device, model.dtype)
            states = model.vision_model(pixel_values=values).last_hidden_state
            for jobs in by_length.values():
                yes = self._yes(model, states, jobs).tolist()
                found.update(zip(jobs, (round(value, 4) for value in yes), strict=True))
        return found

    def _yes(self, model: Any, states: torch.Tensor, jobs: list[tuple[int, str]]) -> torch.Tensor:
        """float32 [jobs]; all questions have the same number of tokens, so nothing is padded."""
        ids = torch.tensor([self._ids(chunk) for _, chunk in jobs], device=self._device)
        picture = states[torch.tensor([index for index, _ in jobs], device=self._device)]
        question = model.text_encoder(
            input_ids=ids,
            attention_mask=torch.ones_like(ids),
            encoder_hidden_states=picture,
            encoder_attention_mask=torch.ones(
                picture.shape[:2], dtype=torch.long, device=self._device
            ),
        ).last_hidden_state
        start = torch.full((len(jobs), 1), model.decoder_start_token_id, device=self._device)
        logits = model.text_decoder(
            input_ids=start,
            attention_mask=torch.ones_like(start),
            encoder_hidden_states=question,
            encoder_attention_mask=torch.ones_like(ids),
        ).logits[:, 0].float()  # fmt: skip
        yes, no = self._tokenizer.convert_tokens_to_ids(["yes", "no"])
        return torch.softmax(logits[:, [yes, no]], dim=1)[:, 0].cpu()

    def _ids(self, chunk: str) -> list[int]:
        ids = self._tokenizer(f"{chunk}?", truncation=True, max_length=TEXT_TOKENS)["input_ids"]
        return [self._enc, *ids[1:]]

    def _too_long(self, chunk: str) -> bool:
        return len(self._tokenizer(f"{chunk}?", verbose=False)["input_ids"]) > TEXT_TOKENS

    def _model(self) -> Any:
        if self._loaded is None:
            self._loaded = torch_support.load_model(
                BlipForQuestionAnswering,
                self._checkpoint,
                dtype=self._dtype,
                device=self._device,
            )
        return self._loaded


def plain_question(chunk: str) -> str:
    """Lower case, without the punctuation that the published preprocessing strips."""
    lowered = re.sub(r"([.!\"()*#:;~])", "", chunk.lower())
    return re.sub(r"\s+", " ", lowered).strip(" ?")


def load_chunker(name: str) -> tuple[Chunker, str]:
    """`spacy:MODEL` (a package's name or a folder), or `package.module:function`; and what it is.

    A spaCy model's version is named, not where it lies: another version, other chunks.
    """
    if name.startswith("spacy:"):
        return _spacy_chunker(name.removeprefix("spacy:"))
    module_name, _, attribute = name.partition(":")
    try:
        chunker = getattr(importlib.import_module(module_name), attribute, None)
    except ModuleNotFoundError as error:
        raise MetricError(f"There is no chunker {name!r}: {error}.") from error
    if not callable(chunker):
        raise MetricError(f"There is no chunker {name!r}.")
    return cast("Chunker", chunker), name


def _spacy_chunker(model: str) -> tuple[Chunker, str]:
    try:
        spacy = importlib.import_module("spacy")
    except ModuleNotFoundError as error:
        raise MetricError(
            f"bvqa-hf cuts texts with spaCy: pip install spacy, python -m spacy download {model}."
        ) from error
    try:
        pipeline = spacy.load(model)
    except OSError as error:
        raise MetricError(
            f"spaCy has no model {model!r}: python -m spacy download {model}."
        ) from error
    if "parser" not in pipeline.pipe_names:
        raise MetricError(f"spaCy's model {model!r} has no parser: it finds no noun phrases.")
    meta = pipeline.meta
    described = f"spacy:{meta['lang']}_{meta['name']}-{meta['version']}"
    return lambda text: [chunk.text for chunk in pipeline(text).noun_chunks], described
