"""Loading and running torch models: one sentence for everything that can go wrong.

Reached only from metric files, which the registry loads by dotted path.
"""

from __future__ import annotations

import warnings
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import huggingface_hub
import torch
from huggingface_hub.errors import (
    EntryNotFoundError,
    GatedRepoError,
    HfHubHTTPError,
    HFValidationError,
    LocalEntryNotFoundError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)
from safetensors import SafetensorError
from transformers.utils import logging as hf_logging

from croc_annotate.benchmark.metric import MetricError, MetricMemoryError, MetricOptions
from croc_annotate.benchmark.metrics.model_folder import folder_digest

if TYPE_CHECKING:
    from collections.abc import Iterator

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A model on the hub or in a folder; `revision` is a commit or a digest, never a branch."""

    source: str
    revision: str
    local: bool

    def where(self) -> dict[str, Any]:
        """The first arguments of every `from_pretrained`."""
        if self.local:
            return {"pretrained_model_name_or_path": self.source, "local_files_only": True}
        return {"pretrained_model_name_or_path": self.source, "revision": self.revision}


def find_checkpoint(
    options: MetricOptions, *, default: str, file: str = "config.json"
) -> Checkpoint:
    """Find the model that the options name; nothing but one small file is fetched."""
    source = options.model or default
    folder = Path(source).expanduser()
    if folder.is_dir():
        if options.revision:
            raise MetricError(f"{source} is a folder: a revision belongs to a model of the hub.")
        if not (folder / file).is_file():
            raise MetricError(f"The folder {source} holds no {file}: it is not a model's folder.")
        return Checkpoint(str(folder), f"sha256:{folder_digest(folder)}", local=True)
    if source.startswith((".", "/", "~")):
        raise MetricError(f"There is no folder {source}.")
    return Checkpoint(source, _hub_commit(source, options.revision, file), local=False)


def _hub_commit(source: str, revision: str | None, file: str) -> str:
    try:
        path = huggingface_hub.hf_hub_download(source, file, revision=revision)
    except GatedRepoError as error:
        raise MetricError(
            f"{source} is a gated model: accept its licence on its page, then set HF_TOKEN."
        ) from error
    except RevisionNotFoundError as error:
        raise MetricError(f"{source} has no revision {revision!r}.") from error
    except (RepositoryNotFoundError, HFValidationError) as error:
        raise MetricError(
            f"The model hub has no {source!r} (or it is private and HF_TOKEN is not set)."
        ) from error
    except LocalEntryNotFoundError as error:
        raise MetricError(
            f"{source} is not in the local cache and the model hub cannot be reached: fetch it "
            "on a machine with a connection, or give a folder with --model."
        ) from error
    except EntryNotFoundError as error:
        raise MetricError(f"{source} holds no {file}: it is not a model of this kind.") from error
    except (HfHubHTTPError, OSError) as error:
        raise MetricError(f"{source} could not be fetched: {one_line(error)}") from error
    return _commit_of(Path(path))


def _commit_of(path: Path) -> str:
    """The commit in a path of the hub's cache: …/snapshots/<commit>/config.json."""
    parts = path.parts
    return parts[parts.index("snapshots") + 1] if "snapshots" in parts else "unknown"


def fetch(checkpoint: Checkpoint, file: str) -> Path:
    """One file of the checkpoint, fetched if need be."""
    if checkpoint.local:
        path = Path(checkpoint.source) / file
        if not path.is_file():
            raise MetricError(f"The folder {checkpoint.source} holds no {file}.")
        return path
    try:
        found = huggingface_hub.hf_hub_download(
            checkpoint.source, file, revision=checkpoint.revision
        )
    except EntryNotFoundError as error:
        raise MetricError(f"{checkpoint.source} holds no {file}.") from error
    except (HfHubHTTPError, OSError) as error:
        raise MetricError(f"{checkpoint.source} could not be fetched: {one_line(error)}") from error
    return Path(found)


def folder_of(checkpoint: Checkpoint) -> Path:
    """All files of the checkpoint in one folder; those of the hub are fetched."""
    if checkpoint.local:
        return Path(checkpoint.source)
    try:
        return Path(
            huggingface_hub.snapshot_download(checkpoint.source, revision=checkpoint.revision)
        )
    except (HfHubHTTPError, OSError) as error:
        raise MetricError(f"{checkpoint.source} could not be fetched: {one_line(error)}") from error


def pick_device(wanted: str | None) -> torch.device:
    """The device named, or the best that is there."""
    if wanted is None or wanted == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    try:
        device = torch.device(wanted)
    except RuntimeError as error:
        raise MetricError(f"There is no device {wanted!r}: cpu, cuda, cuda:1 or mps.") from error
    if device.type == "cuda" and not torch.cuda.is_available():
        raise MetricError(f"Device {wanted!r} was asked for, but torch sees no CUDA device here.")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise MetricError(f"There are {torch.cuda.device_count()} CUDA devices, no {wanted!r}.")
    return device


def pick_dtype(wanted: str | None, *, default: str) -> str:
    """The name of a floating-point type that we know."""
    name = wanted or default
    if name not in DTYPES:
        raise MetricError(f"There is no dtype {name!r}: one of {', '.join(DTYPES)}.")
    return name


def load_model(
    model_class: Any, checkpoint: Checkpoint, *, dtype: str, device: torch.device, **extra: Any
) -> Any:
    """Load weights for scoring; a checkpoint that leaves parts of the model random is refused."""
    hf_logging.disable_progress_bar()  # a bar of its own inside the command's bar
    with loading(checkpoint):
        model, report = model_class.from_pretrained(
            **checkpoint.where(), **extra, dtype=DTYPES[dtype], output_loading_info=True
        )
        refuse_random_weights(report["missing_keys"], checkpoint, model_class.__name__)
        exact_float32()
        return model.to(device).eval()


def refuse_random_weights(missing: Any, checkpoint: Checkpoint, kind: str) -> None:
    """Weights that the checkpoint lacks would be random numbers, and so would the scores."""
    names = sorted(missing)
    if names:
        raise MetricError(
            f"{checkpoint.source} is not a checkpoint of {kind}: it lacks {len(names)} weights, "
            f"the first is {names[0]}."
        )


def load_part(part_class: Any, checkpoint: Checkpoint, **extra: Any) -> Any:
    """Load a tokenizer, an image processor or a config that lies beside the weights."""
    with loading(checkpoint):
        return part_class.from_pretrained(**checkpoint.where(), **extra)


def load_image_processor(checkpoint: Checkpoint) -> Any:
    """The image processor in its Pillow form, whatever else is installed."""
    from transformers import AutoImageProcessor

    return load_part(AutoImageProcessor, checkpoint, backend="pil")


def load_processor(checkpoint: Checkpoint, model_type: str) -> Any:
    """The processor of images and texts, without the part for videos where it has one.

    No metric shows a video, and that part alone needs a package of its own (torchvision): with it
    Qwen2.5-VL, InternVL, SmolVLM and others could not be loaded at all.
    """
    from transformers import AutoProcessor
    from transformers.models.auto import processing_auto

    name = processing_auto.PROCESSOR_MAPPING_NAMES.get(model_type)
    own = processing_auto.processor_class_from_name(name) if name else None
    if own is None or "video_processor" not in own.get_attributes():
        return load_part(AutoProcessor, checkpoint)
    return load_part(without_video(own), checkpoint)


def without_video(own: Any) -> Any:
    """A processor class of `transformers` that takes no part for videos; else the same."""

    def get_attributes(cls: Any) -> list[str]:
        return [name for name in super(without, cls).get_attributes() if name != "video_processor"]

    parts = {"video_processor": None, "get_attributes": classmethod(get_attributes)}
    without: Any = type(own.__name__, (own,), parts)
    return without


@contextmanager
def loading(checkpoint: Checkpoint) -> Iterator[None]:
    """Turn what a loader raises into one sentence."""
    try:
        yield
    except torch.OutOfMemoryError as error:
        raise MetricError(
            f"{checkpoint.source} does not fit into the memory of the device; "
            "try --dtype bfloat16 or another device."
        ) from error
    except ImportError as error:
        raise MetricError(f"{checkpoint.source} needs more: {one_line(error)}") from error
    except (
        OSError,
        LookupError,
        AttributeError,
        ValueError,
        RuntimeError,
        SafetensorError,
    ) as error:
        raise MetricError(f"{checkpoint.source} cannot be loaded: {one_line(error)}") from error


@contextmanager
def scoring() -> Iterator[None]:
    """Inference only; running out of memory becomes an error that asks for a smaller batch."""
    try:
        with torch.inference_mode():
            yield
    except torch.OutOfMemoryError as error:
        torch.cuda.empty_cache()
        raise MetricMemoryError("The batch does not fit into the memory of the device.") from error
    except MemoryError as error:
        raise MetricMemoryError("The batch does not fit into memory.") from error
    except RuntimeError as error:
        if "can't allocate memory" not in str(error):
            raise
        raise MetricMemoryError("The batch does not fit into memory.") from error


def exact_float32() -> None:
    """float32 means float32: TF32 would keep ten bits of it in the convolutions."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch renames these switches from version to version
        torch.backends.cudnn.allow_tf32 = False
        torch.backends.cuda.matmul.allow_tf32 = False


def count_parameters(model: torch.nn.Module) -> int:
    """How many numbers the model holds."""
    return sum(parameter.numel() for parameter in model.parameters())


def one_line(error: BaseException) -> str:
    """The first sentence or so of an error, without line breaks."""
    text = " ".join(str(error).split())
    return text if len(text) <= 240 else f"{text[:240]}…"


def release(device: torch.device) -> None:
    """Give cached memory back to the device."""
    if device.type == "cuda":
        torch.cuda.empty_cache()
