"""`onnx-dual-encoder`: the cosine of two exported encoders, on onnxruntime, without torch.

By default the tiny model that ships beside this file: some 270,000 weights, trained by
`tools/train_tiny_dual_encoder.py` on drawn scenes. It shows what a metric's row looks like, with
strengths and blind spots that are real for that kind of picture, and says nothing about any other.

`--model FOLDER` takes any exported CLIP-like model in one of two layouts:

* `dual_encoder.json` (as the tiny model has it): names of the two files, image size, resample
  filter, mean and std, length and pad of the texts;
* an export of `transformers` models: `vision_model.onnx` and `text_model.onnx` (also under `onnx/`),
  `preprocessor_config.json` and `tokenizer.json`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import onnxruntime
from onnxruntime.capi import onnxruntime_pybind11_state as ort
from PIL import Image
from tokenizers import Tokenizer

from croc_annotate.benchmark.metric import (
    ImageInput,
    MetricError,
    MetricFacts,
    MetricMemoryError,
    MetricOptions,
    check_options,
    pixels_of,
    whole_number,
)
from croc_annotate.benchmark.metrics.dual_encoder import DualEncoderScoring, unit_rows
from croc_annotate.benchmark.metrics.image_preprocessing import (
    IMAGE_BACKEND,
    Preprocessing,
    prepared,
)
from croc_annotate.benchmark.metrics.model_folder import folder_digest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# What onnxruntime raises; its classes have no base of their own.
ORT_ERRORS = (
    ort.Fail,
    ort.InvalidArgument,
    ort.InvalidGraph,
    ort.InvalidProtobuf,
    ort.NoSuchFile,
    ort.NotImplemented,
    ort.RuntimeException,
)

BUILT_IN = Path(__file__).parent / "tiny_dual_encoder"
BUILT_IN_NAME = "built-in: tiny dual encoder for drawn scenes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """What a folder says of its two encoders."""

    image_file: Path
    text_file: Path
    preprocessing: Preprocessing
    text_length: int
    pad_id: int
    label: str


class OnnxDualEncoder(DualEncoderScoring):
    """Two ONNX sessions on the CPU, one thread each unless `--option threads=N`."""

    def __init__(self, *, options: MetricOptions) -> None:
        super().__init__()
        check_options(options, "onnx-dual-encoder", "threads")
        if options.dtype not in {None, "float32"}:
            raise MetricError("onnx-dual-encoder computes as the model was exported: no --dtype.")
        if options.device not in {None, "auto", "cpu"}:
            raise MetricError("onnx-dual-encoder runs on the CPU.")
        self._folder = Path(options.model).expanduser() if options.model else BUILT_IN
        if not self._folder.is_dir():
            raise MetricError(
                f"onnx-dual-encoder reads a folder, and there is none at {self._folder}."
            )
        self._layout = read_layout(self._folder)
        self._threads = whole_number(options, "threads", 1)
        self._tokenizer = _load_tokenizer(self._folder, self._layout)
        self._image = self._text = None
        self._revision = f"sha256:{folder_digest(self._folder)}"

    def describe(self) -> MetricFacts:
        """The folder's contents are the revision."""
        built_in = self._folder == BUILT_IN
        return MetricFacts(
            name="onnx-dual-encoder",
            label=self._layout.label,
            model=BUILT_IN_NAME if built_in else str(self._folder),
            revision=self._revision,
            prompt="{text}",
            preprocessing=self._layout.preprocessing.describe(),
            image_backend=IMAGE_BACKEND,
            dtype="as exported",
            settings={"text_length": str(self._layout.text_length)},
            source="tools/train_tiny_dual_encoder.py" if built_in else "",
        )

    def prepare(self, *, image: ImageInput) -> ImageInput:
        """Resize in a decoding worker."""
        return prepared(image, self._layout.preprocessing)

    def embed_images(self, *, images: Sequence[ImageInput]) -> np.ndarray:
        """float32 [images, width], rows of length 1."""
        if self._image is None:
            self._image = self._session(self._layout.image_file)
        array = self._layout.preprocessing.array([pixels_of(image) for image in images])
        return unit_rows(_run(self._image, {"pixel_values": array}, wanted="image_embeds"))

    def embed_texts(self, *, texts: Sequence[str]) -> np.ndarray:
        """float32 [texts, width], rows of length 1."""
        if self._text is None:
            self._text = self._session(self._layout.text_file)
        encoded = self._tokenizer.encode_batch([str(text) for text in texts])
        ids = np.array([one.ids for one in encoded], dtype=np.int64)
        mask = np.array([one.attention_mask for one in encoded], dtype=np.int64)
        given = {"input_ids": ids, "attention_mask": mask}
        return unit_rows(_run(self._text, given, wanted="text_embeds"))

    def similarity(self, *, images: np.ndarray, texts: np.ndarray) -> np.ndarray:
        """cos, float32 [images, texts]."""
        return np.asarray(images @ texts.T, dtype=np.float32)

    def truncated(self, *, texts: Sequence[str]) -> frozenset[str]:
        """Texts of more tokens than the text encoder reads."""
        encoded = self._tokenizer.encode_batch([str(text) for text in texts])
        return frozenset(t for t, own in zip(texts, encoded, strict=True) if own.overflowing)

    def close(self) -> None:
        """Give the sessions' memory back."""
        self._image = self._text = None

    def _session(self, path: Path) -> Any:
        settings = onnxruntime.SessionOptions()
        settings.intra_op_num_threads = self._threads
        settings.inter_op_num_threads = 1
        settings.log_severity_level = 3
        try:
            return onnxruntime.InferenceSession(
                str(path), settings, providers=["CPUExecutionProvider"]
            )
        except ORT_ERRORS as error:
            first = str(error).splitlines()[0][:240]
            raise MetricError(f"{path} is no model that onnxruntime can run: {first}") from error


def read_layout(folder: Path) -> Layout:
    """Read either layout; a MetricError names what is missing."""
    described = folder / "dual_encoder.json"
    if described.is_file():
        return _own_layout(folder, _read_json(described))
    exported = folder / "preprocessor_config.json"
    if exported.is_file():
        return _exported_layout(folder, _read_json(exported))
    raise MetricError(f"{folder} holds neither dual_encoder.json nor preprocessor_config.json.")


def _own_layout(folder: Path, settings: Mapping[str, Any]) -> Layout:
    try:
        image, text = settings["image"], settings["text"]
        height, width = image["size"]
        return Layout(
            image_file=_existing(folder, image["file"]),
            text_file=_existing(folder, text["file"]),
            preprocessing=Preprocessing(
                height=int(height),
                width=int(width),
                resample=Image.Resampling[str(image["resample"]).upper()],
                mean=tuple(image["mean"]),
                std=tuple(image["std"]),
            ),
            text_length=int(text["length"]),
            pad_id=int(text["pad_id"]),
            label=str(settings.get("label", folder.name)),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise MetricError(f"{folder / 'dual_encoder.json'} lacks or misstates {error}.") from error


def _exported_layout(folder: Path, settings: Mapping[str, Any]) -> Layout:
    size = settings.get("size", 224)
    size = {"shortest_edge": size} if isinstance(size, int) else size
    crop = settings.get("crop_size")
    crop = {"height": crop, "width": crop} if isinstance(crop, int) else crop
    crop = crop if settings.get("do_center_crop", crop is not None) else None
    shortest = size.get("shortest_edge")
    return Layout(
        image_file=_existing(folder, "vision_model.onnx", "onnx/vision_model.onnx"),
        text_file=_existing(folder, "text_model.onnx", "onnx/text_model.onnx"),
        preprocessing=Preprocessing(
            height=int(size.get("height") or 0),
            width=int(size.get("width") or 0),
            shortest_edge=int(shortest) if shortest else None,
            crop=(int(crop["height"]), int(crop["width"])) if crop else None,
            resample=Image.Resampling(int(settings.get("resample", Image.Resampling.BICUBIC))),
            scale=float(settings.get("rescale_factor", 1 / 255)),
            mean=tuple(settings.get("image_mean", (0.0, 0.0, 0.0))),
            std=tuple(settings.get("image_std", (1.0, 1.0, 1.0))),
        ),
        text_length=_stated_length(folder),
        pad_id=-1,
        label=folder.name,
    )


def _stated_length(folder: Path) -> int:
    path = folder / "tokenizer_config.json"
    stated = _read_json(path).get("model_max_length") if path.is_file() else None
    if not isinstance(stated, int | float) or not 0 < stated < 10_000:
        return 77  # CLIP's
    return int(stated)


def _existing(folder: Path, *names: str) -> Path:
    for name in names:
        if (folder / name).is_file():
            return folder / name
    raise MetricError(f"{folder} holds no {' or '.join(names)}.")


def _read_json(path: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(path.read_text("utf-8")))
    except ValueError as error:
        raise MetricError(f"{path} is no JSON: {error}.") from error


def _load_tokenizer(folder: Path, layout: Layout) -> Any:
    tokenizer = Tokenizer.from_file(str(_existing(folder, "tokenizer.json")))
    padding = tokenizer.padding or {}
    tokenizer.enable_truncation(layout.text_length)  # keeps the special tokens of the template
    tokenizer.enable_padding(
        length=layout.text_length,
        pad_id=layout.pad_id if layout.pad_id >= 0 else int(padding.get("pad_id", 0)),
        pad_token=padding.get("pad_token", "[PAD]"),
    )
    return tokenizer


def _run(session: Any, given: Mapping[str, np.ndarray], *, wanted: str) -> np.ndarray:
    """The wanted output of a session, fed with what it asks for (its first output otherwise)."""
    asked = [node.name for node in session.get_inputs()]
    missing = [name for name in asked if name not in given]
    if missing:
        raise MetricError(f"The exported model asks for {missing[0]!r}, which no encoder gets.")
    names = [node.name for node in session.get_outputs()]
    output = wanted if wanted in names else names[0]
    try:
        [result] = session.run([output], {name: given[name] for name in asked})
    except MemoryError as error:
        raise MetricMemoryError("The batch does not fit into memory.") from error
    except ORT_ERRORS as error:
        first = str(error).splitlines()[0][:240]
        raise MetricError(f"The exported model failed: {first}") from error
    return np.asarray(result, dtype=np.float32)
