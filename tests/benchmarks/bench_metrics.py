"""Images per second of the metrics, beside the structure of the published evaluation.

Seconds are processor seconds of one thread, so that a busy machine does not enter. Models have their
real size and random weights: speed does not depend on what they know. The peer is the published
structure on the same model, processor and thread: every text by itself, and for each the image
opened, decoded and encoded again.
"""

from __future__ import annotations

import io
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from croc_annotate.benchmark import registry
from croc_annotate.benchmark.metric import ImageInput, Metric, MetricOptions
from croc_annotate.lib import imagefiles
from tests.benchmarks.frame import Row

TEXTS = ("three red apples on a wooden plate", "four red apples on a wooden plate")


def run(quick: bool) -> list[Row]:
    """`clipscore`, a small vision language model and the exported dual encoder, on one thread."""
    rows = [exported(200 if quick else 1000)]
    try:
        import torch
    except ModuleNotFoundError:
        return rows
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        name, images = ("ViT-B/32", 12) if quick else ("ViT-L/14", 6)
        rows += clipscore(Path(folder) / "clip", name, images)
        rows.append(small_vlm(Path(folder) / "vlm", 2 if quick else 4))
    return rows


def exported(count: int) -> Row:
    """The built-in model on PNG files of 512×512, decoding included."""
    files = [png(number, 512) for number in range(min(count, 50))]
    metric = registry.create("onnx-dual-encoder")
    took = timed(lambda: score_in_batches(metric, files * (count // len(files)), batch=32))
    decode = timed(lambda: [imagefiles.rgb(data) for data in files]) / len(files)
    note = f"decode included; decoding alone {1 / decode:.0f}/s"
    return Row("metric onnx-dual-encoder", count / took, unit="images/s", n=count, note=note)


def clipscore(folder: Path, name: str, count: int) -> list[Row]:
    """`clipscore` with two texts an image, 1024×1024 PNG, beside two ways to do the same."""
    from transformers import CLIPModel

    make_clip(folder, name)
    files = [png(number, 1024) for number in range(count)]
    metric = registry.create("clipscore", options=MetricOptions(model=str(folder), device="cpu"))
    metric._loaded = CLIPModel(clip_config(name)).eval()
    score_in_batches(metric, files[:1], batch=1)
    metric._texts.clear()
    # Without the cut at zero: random weights give negative cosines, which would all be equal.
    metric.similarity = lambda *, images, texts: 100 * (images @ texts.T)
    scores: dict[str, list[list[float]]] = {}
    ours = timed(lambda: scores.update(ours=score_in_batches(metric, files, batch=4)))
    peer = timed(lambda: scores.update(peer=published_clipscore(metric, files)))
    gap = float(np.abs(np.array(scores["ours"]) - np.array(scores["peer"])).max())
    package, note = torchmetrics_clipscore(metric, folder, files)
    rows = [
        (peer, f"peer: published structure; scores within {gap:.1g}"),
        *([(package, note)] if package else []),
    ]
    return [
        Row(
            f"metric clipscore {name}",
            count / ours,
            count / seconds,
            unit="images/s",
            ratio=seconds / ours,
            n=count,
            note=note,
        )
        for seconds, note in rows
    ]


def torchmetrics_clipscore(metric: Metric, folder: Path, files: list[bytes]) -> tuple[float, str]:
    """Seconds of the package most people use for CLIPScore, on the same weights; 0 without it.

    Its function takes as many images as texts, so an image with two texts goes in twice. It
    crops where the published evaluation squashes: its scores are others, its work is the same.
    """
    try:
        import torchmetrics
        from torchmetrics.functional.multimodal import clip_score
    except ModuleNotFoundError:
        return 0.0, ""
    import torch
    from transformers import CLIPProcessor

    model = _Pooled(metric._loaded)
    processor = CLIPProcessor.from_pretrained(folder)

    def score() -> None:
        for data in files:
            pixels = np.array(Image.open(io.BytesIO(data)).convert("RGB"))
            image = torch.from_numpy(pixels).permute(2, 0, 1)
            with torch.inference_mode():
                for text in TEXTS:  # one call a pair: it returns the mean of a batch
                    clip_score(image, text, model_name_or_path=lambda: (model, processor))

    return timed(score), f"peer: torchmetrics {torchmetrics.__version__}"


class _Pooled:
    """A CLIP model whose features are arrays, as before transformers 5: the package expects that."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self.config = model.config

    def to(self, _device: object) -> _Pooled:
        return self

    def get_image_features(self, *args: Any) -> Any:
        return self._model.get_image_features(*args).pooler_output

    def get_text_features(self, *args: Any) -> Any:
        return self._model.get_text_features(*args).pooler_output


def published_clipscore(metric: Metric, files: list[bytes]) -> list[list[float]]:
    """Every pair by itself: open, decode, squash, encode image and text, cosine."""
    import torch

    model, tokenizer, shape = metric._loaded, metric._tokenizer, metric._preprocessing
    rows = []
    for data in files:
        row = []
        for text in TEXTS:
            pixels = Image.open(io.BytesIO(data)).convert("RGB")
            values = torch.from_numpy(shape.array([pixels]))
            tokens = tokenizer([text], padding=True, truncation=True, return_tensors="pt")
            with torch.inference_mode():
                out = model(**tokens, pixel_values=values)
                cosine = torch.cosine_similarity(out.image_embeds, out.text_embeds)
            row.append(100 * float(cosine))
        rows.append(row)
    return rows


def small_vlm(folder: Path, count: int) -> Row:
    """`vqascore` on a LLaVA of some 0.4 B parameters (ViT-B/16 and a Qwen2-0.5B-sized decoder)."""
    metric = make_vlm(folder)
    files = [png(number, 1024) for number in range(count)]
    score_in_batches(metric, files[:1], batch=1)  # it tries once whether images can be shared
    scores: dict[str, list[list[float]]] = {}
    ours = timed(lambda: scores.update(ours=score_in_batches(metric, files, batch=count)))
    peer = timed(lambda: scores.update(peer=one_pair_at_a_time(metric, files)))
    gap = float(np.abs(np.array(scores["ours"]) - np.array(scores["peer"])).max())
    size = metric.describe().parameters or 0
    return Row(
        f"metric vqascore LLaVA {size / 1e9:.1f} B",
        count / ours,
        count / peer,
        unit="images/s",
        ratio=peer / ours,
        n=count,
        note=f"peer: published structure; scores within {gap:.1g}",
    )


def one_pair_at_a_time(metric: Metric, files: list[bytes]) -> list[list[float]]:
    """The published structure: each pair opens and encodes its image."""
    return [
        [metric.score(images=[opened(data)], texts=[[text]]).scores[0][0] for text in TEXTS]
        for data in files
    ]


def score_in_batches(metric: Metric, files: list[bytes], *, batch: int) -> list[list[float]]:
    """Each file opened once and scored against both texts."""
    scores: list[list[float]] = []
    for start in range(0, len(files), batch):
        images = [opened(data) for data in files[start : start + batch]]
        scores += metric.score(images=images, texts=[TEXTS] * len(images)).scores
    return scores


def opened(data: bytes) -> ImageInput:
    return ImageInput(sha256="", data=data, pixels=imagefiles.rgb(data))


def png(number: int, side: int) -> bytes:
    """A PNG with the weight of a photograph: smooth colours with some noise."""
    rng = np.random.default_rng(number)
    coarse = Image.fromarray(rng.integers(0, 256, (16, 16, 3), dtype=np.uint8))
    smooth = np.asarray(coarse.resize((side, side), Image.Resampling.BICUBIC), dtype=np.int16)
    noisy = smooth + rng.integers(-6, 7, smooth.shape, dtype=np.int16)
    buffer = io.BytesIO()
    Image.fromarray(noisy.clip(0, 255).astype(np.uint8)).save(buffer, "PNG")
    return buffer.getvalue()


def timed(call: Callable[[], object]) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


def clip_config(name: str) -> object:
    from transformers import CLIPConfig

    from tests.benchmark.metrics.tiny import CLIP_VOCABULARY

    large = name == "ViT-L/14"
    ends = {
        "bos_token_id": CLIP_VOCABULARY - 2,
        "eos_token_id": CLIP_VOCABULARY - 1,
        "pad_token_id": CLIP_VOCABULARY - 1,
    }
    text = {"hidden_size": 768, "intermediate_size": 3072, "num_attention_heads": 12}
    vision = {
        "hidden_size": 1024,
        "intermediate_size": 4096,
        "num_hidden_layers": 24,
        "num_attention_heads": 16,
        "patch_size": 14,
    }
    return CLIPConfig(
        text_config={**ends, **(text if large else {})},
        vision_config=vision if large else {},
        projection_dim=768 if large else 512,
    )


def make_clip(folder: Path, name: str) -> None:
    """Config, tokenizer and processor of real size; the weights stay in memory."""
    from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil

    from tests.benchmark.metrics.tiny import save_clip_tokenizer

    folder.mkdir(parents=True)
    clip_config(name).save_pretrained(folder)
    save_clip_tokenizer(folder)
    CLIPImageProcessorPil().save_pretrained(folder)


def make_vlm(folder: Path, *, large: bool = False) -> Metric:
    """A `vqascore` metric around a random LLaVA (large: 7 B, for a GPU)."""
    from transformers import (
        AutoTokenizer,
        CLIPVisionConfig,
        LlamaConfig,
        LlavaConfig,
        LlavaForConditionalGeneration,
        LlavaProcessor,
        Qwen2Config,
    )
    from transformers.models.llava.image_processing_pil_llava import LlavaImageProcessorPil

    from tests.benchmark.metrics.tiny import CHAT, save_piece_tokenizer

    folder.mkdir(parents=True)
    specials = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>"}
    save_piece_tokenizer(folder, specials=specials, extra=["<image>"])
    tokenizer = AutoTokenizer.from_pretrained(folder)
    side, patch = (336, 14) if large else (224, 16)
    vision = (
        CLIPVisionConfig(
            hidden_size=1024, intermediate_size=4096, num_hidden_layers=24,
            num_attention_heads=16, image_size=side, patch_size=patch,
        )
        if large
        else CLIPVisionConfig(image_size=side, patch_size=patch)
    )  # fmt: skip
    text = (
        LlamaConfig(vocab_size=32064, pad_token_id=2)
        if large
        else Qwen2Config(
            vocab_size=2000, hidden_size=896, intermediate_size=4864, num_hidden_layers=24,
            num_attention_heads=14, num_key_value_heads=2,
        )
    )  # fmt: skip
    config = LlavaConfig(
        vision_config=vision,
        text_config=text,
        image_token_id=tokenizer.convert_tokens_to_ids("<image>"),
    )
    config.save_pretrained(folder)
    LlavaProcessor(
        image_processor=LlavaImageProcessorPil(
            size={"shortest_edge": side}, crop_size={"height": side, "width": side}
        ),
        tokenizer=tokenizer,
        patch_size=patch,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
        chat_template=CHAT,
    ).save_pretrained(folder)
    options = MetricOptions(model=str(folder), device="cuda" if large else "cpu")
    metric = registry.create("vqascore", options=options)
    if large:
        import torch

        with torch.device("cuda"):
            model = LlavaForConditionalGeneration._from_config(config, dtype=torch.bfloat16)
    else:
        model = LlavaForConditionalGeneration(config)
    metric._loaded = model.eval()
    return metric


if __name__ == "__main__":
    from tests.benchmarks.frame import show

    print(show(run(quick=True)))
