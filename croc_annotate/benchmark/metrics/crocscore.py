"""`crocscore`: P("Yes") − P("No") of Phi-4-multimodal, as fine-tuned for CROCScore or as released.

Two layouts of the same model are read by the native class of `transformers`, without remote code:

* the layout of the research code and of Microsoft's repository (`model_type` phi4mm): names are
  mapped, the vision adapter (LoRA) is merged into the weights it belongs to, the speech adapter and
  the audio encoder are left out, since no sound is ever scored;
* the native layout (`model_type` phi4_multimodal), with its adapter in `vision-lora/` if it has one.

Whatever weight is then still missing is named, and nothing is scored. The image is squashed to
1024×1024 (Lanczos) as published, which makes nine crops of 448 and one overview; they are cut here
with Pillow's and torch's own filters, so that torchvision is not needed. The softmax is taken in
float32; the published run took it in bfloat16, where a fifth of the scores tie. The image is read
once for all its texts.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from PIL import Image
from transformers import (
    Phi4MultimodalConfig,
    Phi4MultimodalForCausalLM,
    PreTrainedTokenizerFast,
)

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
    whole_number,
)
from croc_annotate.benchmark.metrics import torch_support, vlm
from croc_annotate.benchmark.metrics.checkpoint_files import read_weights, weight_names

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

MODEL = "nllg/crocscore"
QUESTION = "Does this image show the following content:'{text}'? Answer with Yes or No."
SIDE = 1024
MAX_CROPS = 36

# What a minimal audio encoder is built from before it is thrown away: it never runs.
_NO_AUDIO = {
    "hidden_size": 16,
    "intermediate_size": 16,
    "num_blocks": 1,
    "num_attention_heads": 1,
    "ext_pw_out_channel": 16,
    "depthwise_separable_out_channel": 16,
    "nemo_conv_channels": 16,
}

_IMAGE = "model.embed_tokens_extend.image_embed"
_RENAMED = {
    f"{_IMAGE}.img_projection.0.": f"{_IMAGE}.img_projection_up.",
    f"{_IMAGE}.img_projection.2.": f"{_IMAGE}.img_projection_down.",
    f"{_IMAGE}.glb_GN": f"{_IMAGE}.global_img_feature_extensor",
    f"{_IMAGE}.sub_GN": f"{_IMAGE}.sub_img_feature_extensor",
}


class CrocScore:
    """Options: `side` (1024) the square that images are squashed to; `prompt` with {text}."""

    needs: ImageNeed = "pixels"

    def __init__(self, *, options: MetricOptions) -> None:
        self._device = torch_support.pick_device(options.device)
        default = "float32" if self._device.type == "cpu" else "bfloat16"
        self._dtype = torch_support.pick_dtype(options.dtype, default=default)
        self._question = check_options(options, "crocscore", "side", prompt=QUESTION)
        self._side = whole_number(options, "side", SIDE)
        self._checkpoint = torch_support.find_checkpoint(options, default=MODEL)
        published: dict[str, Any] = json.loads(
            torch_support.fetch(self._checkpoint, "config.json").read_text("utf-8")
        )
        if published.get("model_type") not in {"phi4mm", "phi4_multimodal"}:
            raise MetricError(
                f"{self._checkpoint.source} is a {published.get('model_type')!r} model; crocscore "
                "reads Phi-4-multimodal (phi4mm or phi4_multimodal)."
            )
        self._published = published
        # Not AutoTokenizer: it stumbles over the foreign configuration of the phi4mm layout.
        self._tokenizer = torch_support.load_part(PreTrainedTokenizerFast, self._checkpoint)
        self._loaded: Any = None

    def describe(self) -> MetricFacts:
        """The published settings; the softmax in float32 is part of the code version."""
        return MetricFacts(
            name="crocscore",
            label="CROCScore",
            model=self._checkpoint.source,
            revision=self._checkpoint.revision,
            prompt=f"<|user|><|image_1|>{self._question}<|end|><|assistant|>",
            preprocessing=f"squash {self._side}x{self._side} lanczos, dynamic_hd {MAX_CROPS}",
            image_backend="pil and torch",
            dtype=self._dtype,
            settings={"softmax": "float32"},
            source="arXiv:2505.11314",
            parameters=torch_support.count_parameters(self._loaded) if self._loaded else None,
        )

    def prepare(self, *, image: ImageInput) -> ImageInput:
        """Squash in a decoding worker."""
        if image.pixels is None:
            return image
        return replace(image, data=None, pixels=squash(image.pixels, self._side))

    def score(self, *, images: Sequence[ImageInput], texts: Sequence[Sequence[str]]) -> ScoreBatch:
        """P("Yes") − P("No") at the position after the prompt, in −1 … 1."""
        check_batch(images, texts)
        owner = [index for index, own in enumerate(texts) for _ in own]
        if not owner:
            return ScoreBatch(scores=nested([], texts))
        model = self._model()
        vision = model.config.vision_config
        crops = torch.stack(
            [cut_crops(squash(pixels_of(i), self._side), vision.crop_size) for i in images]
        )
        whole = int(vision.crop_size * math.isqrt(crops.shape[1] - 1))
        front, tails = self._tokens([t for own in texts for t in own], model, whole)
        patches = vision.crop_size // vision.patch_size
        with torch_support.scoring():
            ids = torch.tensor(front, device=self._device).expand(len(images), -1)
            prefix = {
                "input_ids": ids,
                "attention_mask": torch.ones_like(ids),
                "image_pixel_values": crops.to(self._device, model.dtype),
                "image_sizes": torch.full((len(images), 2), whole, device=self._device),
                "image_attention_mask": torch.ones(
                    (len(images), crops.shape[1], patches, patches), device=self._device
                ),
            }
            logits = vlm.logits_after_prefix(model, prefix, tails, owner)
            chances = torch.softmax(logits, dim=-1)
            yes, no = self._answers()
            scores = (chances[:, yes] - chances[:, no]).cpu().tolist()
        return ScoreBatch(scores=nested([as_score(value) for value in scores], texts))

    def close(self) -> None:
        """Give the model's memory back."""
        self._loaded = None
        torch_support.release(self._device)

    def _answers(self) -> tuple[int, int]:
        yes, no = (
            vlm.answer_token(self._tokenizer, before="<|assistant|>", answer=word)
            for word in ("Yes", "No")
        )
        return yes, no

    def _tokens(
        self, texts: Sequence[str], model: Any, whole: int
    ) -> tuple[list[int], list[list[int]]]:
        """The common front of all prompts, image included, and each text's own rest."""
        vision = model.config.vision_config
        picture = [vision.image_token_id] * image_tokens(whole, vision.crop_size, vision.patch_size)
        front = [*self._ids("<|user|>"), *picture]
        tails = [
            self._ids(f"{self._question.replace('{text}', text)}<|end|><|assistant|>")
            for text in texts
        ]
        longest = len(front) + max(len(tail) for tail in tails)
        limit = model.config.original_max_position_embeddings
        if limit is not None and longest > limit:
            # LongRoPE takes its factors from the longest row: one long text would change the
            # scores of its neighbours. So nothing beyond the switch is scored.
            raise MetricError(
                f"A text of {longest} tokens with its image goes beyond {limit} positions, where "
                "Phi-4 changes its position encoding; shorten it."
            )
        return front, tails

    def _ids(self, text: str) -> list[int]:
        return list(self._tokenizer(text, add_special_tokens=False)["input_ids"])

    def _model(self) -> Any:
        if self._loaded is None:
            with torch_support.loading(self._checkpoint):
                self._loaded = load_phi4(
                    self._published, self._checkpoint, dtype=torch_support.DTYPES[self._dtype]
                ).to(self._device)
            torch_support.exact_float32()
        return self._loaded


def squash(image: Image.Image, side: int) -> Image.Image:
    """A square of this side; unchanged if it is one already."""
    return image.resize((side, side), resample=Image.Resampling.LANCZOS)


def cut_crops(image: Image.Image, crop: int) -> torch.Tensor:
    """float32 [1 + crops, 3, crop, crop] in −1 … 1: the overview, then the crops row by row.

    A square image is enlarged (bilinear) to a whole number of crops; the overview is the enlarged
    image reduced by the bicubic filter without antialiasing, as the released preprocessing does.
    """
    across = min(math.ceil(image.width / crop), math.isqrt(MAX_CROPS))
    whole = across * crop
    pixels = torch.from_numpy(np.array(image, dtype=np.float32)).permute(2, 0, 1)[None]
    enlarged = torch.nn.functional.interpolate(
        pixels, size=(whole, whole), mode="bilinear", antialias=True, align_corners=False
    )
    normal = enlarged.round().clamp(0, 255) / 127.5 - 1
    overview = torch.nn.functional.interpolate(
        normal, size=(crop, crop), mode="bicubic", antialias=False, align_corners=False
    )
    parts = normal.reshape(3, across, crop, across, crop).permute(1, 3, 0, 2, 4)
    return torch.cat([overview, parts.reshape(-1, 3, crop, crop)])


def image_tokens(whole: int, crop: int, patch: int) -> int:
    """Tokens of one image: crops and overview after 2×2 pooling, a line end each, one separator."""
    side = math.ceil(crop // patch / 2)
    across = whole // crop
    crops = (across * side) ** 2 + across * side
    return crops + 1 + side**2 + side


def load_phi4(
    published: Mapping[str, Any], checkpoint: torch_support.Checkpoint, *, dtype: torch.dtype
) -> Any:
    """The native model with every weight of the vision path in place, or a MetricError."""
    folder = torch_support.folder_of(checkpoint)
    names = weight_names(folder)
    if published["model_type"] == "phi4mm":
        config = native_config(published)
        adapter = published.get("vision_lora") or {}
        state = published_state(folder, names, adapter)
    else:
        config = Phi4MultimodalConfig.from_dict(dict(published))
        state = native_state(folder, names)
    config.audio_config = type(config.audio_config)(**_NO_AUDIO)
    model, report = Phi4MultimodalForCausalLM.from_pretrained(
        None, config=config, state_dict=state, dtype=dtype, output_loading_info=True
    )
    missing = [name for name in report["missing_keys"] if ".audio_embed." not in name]
    torch_support.refuse_random_weights(missing, checkpoint, "Phi-4-multimodal")
    model.model.embed_tokens_extend.audio_embed = torch.nn.Identity()
    return model.eval()


def native_config(published: Mapping[str, Any]) -> Phi4MultimodalConfig:
    """The native configuration from a phi4mm one; `img_processor` may change the vision tower."""
    left_out = {
        "_name_or_path", "architectures", "auto_map", "vision_lora", "speech_lora", "model_type",
        "transformers_version", "_attn_implementation", "embd_layer", "audio_processor",
        "img_processor", "torch_dtype", "dtype",
    }  # fmt: skip
    kept = {key: value for key, value in published.items() if key not in left_out}
    layer = (published.get("embd_layer") or {}).get("image_embd_layer") or {}
    vision = {"crop_size": layer.get("crop_size", 448), **(published.get("img_processor") or {})}
    return Phi4MultimodalConfig(**kept, vision_config=vision)


def published_state(
    folder: Path, names: Sequence[str], adapter: Mapping[str, Any]
) -> dict[str, torch.Tensor]:
    """Weights of a phi4mm checkpoint under native names, the vision adapter merged."""
    plain = [name for name in names if ".lora_" not in name and ".audio_embed." not in name]
    pairs = [name for name in names if re.search(r"\.lora_[AB]\.vision\.weight$", name)]
    lora = read_weights(folder, pairs)
    state: dict[str, torch.Tensor] = {}
    for name, value in read_weights(folder, plain).items():
        stem = name.removesuffix(".base_layer.weight")
        down, up = (lora.get(f"{stem}.lora_{part}.vision.weight") for part in "AB")
        if stem != name and down is not None and up is not None:
            value = merged(value, down, up, scale=adapter_scale(adapter, down))
        state[native_name(name)] = value
    return state


def native_state(folder: Path, names: Sequence[str]) -> dict[str, torch.Tensor]:
    """Weights of a native checkpoint, with the adapter in `vision-lora/` merged if it is there."""
    state = read_weights(folder, [name for name in names if ".audio_embed." not in name])
    adapter_folder = folder / "vision-lora"
    if not adapter_folder.is_dir():
        return state
    settings = json.loads((adapter_folder / "adapter_config.json").read_text("utf-8"))
    lora = read_weights(adapter_folder, weight_names(adapter_folder))
    for name, down in lora.items():
        if ".lora_A." not in name:
            continue
        target = re.sub(r"^base_model\.model\.", "", name.replace(".lora_A.", "."))
        if target not in state:
            raise MetricError(
                f"The adapter in {adapter_folder} changes {target}, which is not there."
            )
        up = lora[name.replace(".lora_A.", ".lora_B.")]
        state[target] = merged(state[target], down, up, scale=adapter_scale(settings, down))
    return state


def native_name(name: str) -> str:
    """The native class's name of a weight of the phi4mm layout."""
    name = name.replace(".base_layer.", ".")
    for old, new in _RENAMED.items():
        if name.startswith(old):
            return new + name[len(old) :]
    return name


def adapter_scale(settings: Mapping[str, Any], down: torch.Tensor) -> float:
    """alpha / rank of a LoRA adapter; the rank is that of its weights."""
    alpha = settings.get("lora_alpha")
    if alpha is None:
        raise MetricError("The checkpoint has a vision adapter but does not state its lora_alpha.")
    return float(alpha) / int(down.shape[0])


def merged(
    weight: torch.Tensor, down: torch.Tensor, up: torch.Tensor, *, scale: float
) -> torch.Tensor:
    """W + scale·B·A, added in float32 and stored in W's own type."""
    return (weight.float() + scale * (up.float() @ down.float())).to(weight.dtype)
