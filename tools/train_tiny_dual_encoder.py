"""Train the tiny dual encoder that ships with `onnx-dual-encoder`, and measure it.

    python tools/train_tiny_dual_encoder.py [--pairs 12000] [--epochs 14] [--out FOLDER]

Draws sentence pairs of the scene grammar, draws one picture of each sentence, trains a small
image and a small text encoder by contrast within the batch (a sentence's contrast is always in
its batch), writes `image.onnx`, `text.onnx`, `tokenizer.json`, `dual_encoder.json` and
`accuracy.json`. The demo bank's sentences are held out. Needs the gpu extra, `onnx` and
`tokenizers`; takes some ten minutes on one CPU core. Same seed and same torch: same files.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
from collections import defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper
from PIL import Image
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers
from torch import nn

from generation.scenes.drawing import draw
from generation.scenes.grammar import parse
from tools.scene_sentences import sentence_pairs, vocabulary

SIDE = 96
DRAWN = 192  # pictures are drawn at twice the size and squashed, as real ones are
LENGTH = 24
WIDTH = 96
SEED = 20250511
MEAN = STD = 0.5
OUT = Path("croc_annotate/benchmark/metrics/tiny_dual_encoder")


class ImageEncoder(nn.Module):
    """96×96 → 6×6 feature maps → one vector; positions are kept to the end."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            *_block(3, 24, stride=2),
            *_block(24, 32, stride=1),
            *_block(32, 48, stride=2),
            *_block(48, 64, stride=2),
            *_block(64, 80, stride=2),
            nn.Conv2d(80, 20, 1),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(20 * 6 * 6, 128),
            nn.ReLU(),
            nn.Linear(128, WIDTH),
        )

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        """[n, 3, 96, 96] → [n, width], rows of length 1."""
        return nn.functional.normalize(self.layers(pixels), dim=1)


def _block(inside: int, outside: int, *, stride: int) -> list[nn.Module]:
    convolution = nn.Conv2d(inside, outside, 3, stride=stride, padding=1, bias=False)
    return [convolution, nn.BatchNorm2d(outside), nn.ReLU()]


class TextEncoder(nn.Module):
    """Word vectors, two convolutions over neighbours, the strongest answer of each channel."""

    def __init__(self, words: int) -> None:
        super().__init__()
        self.words = nn.Embedding(words, 64, padding_idx=0)
        self.near = nn.Conv1d(64, 128, 3, padding=1)
        self.far = nn.Conv1d(128, 128, 5, padding=2)
        self.out = nn.Sequential(nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, WIDTH))

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """int64 [n, 24] → [n, width], rows of length 1."""
        states = torch.relu(self.near(self.words(ids).transpose(1, 2)))
        wide = torch.relu(self.far(states))
        pooled = torch.cat([states.amax(dim=2), wide.amax(dim=2)], dim=1)
        return nn.functional.normalize(self.out(pooled), dim=1)


def main() -> None:
    """Draw, train, export, measure."""
    options = _arguments()
    torch.manual_seed(SEED)
    torch.set_num_threads(options.threads)
    torch.use_deterministic_algorithms(mode=True)
    started = time.monotonic()
    rows = Path("generation/scenes/demo_bank.jsonl").read_text("utf-8").splitlines()
    bank = [json.loads(row) for row in rows]
    held_out = frozenset(row[side] for row in bank for side in ("prompt", "contrast"))
    train = sentence_pairs(options.pairs, seed=SEED, avoid=held_out)
    test = sentence_pairs(1600, seed=SEED + 1, avoid=held_out)
    tokenizer = make_tokenizer()
    pictures = np.stack(
        [picture(text, index) for index, (_, *both) in enumerate(train) for text in both]
    )
    print(f"{len(pictures)} pictures drawn after {time.monotonic() - started:.0f} s", flush=True)
    ids = encode(tokenizer, [text for _, *both in train for text in both])
    image, text = fit(pictures, ids, tokenizer.get_vocab_size(), options, started)
    options.out.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(options.out / "tokenizer.json"))
    export_image(image, options.out / "image.onnx")
    export_text(text, options.out / "text.onnx")
    write_settings(options.out, len(pictures), options)
    demo = [(row["category"], row["prompt"], row["contrast"]) for row in bank]
    report = {
        "new drawings of random sentences": measure(options.out, test, seeds=range(-1, 0)),
        "held-out sentences of the demo bank": measure(options.out, demo, seeds=range(-10, 0)),
    }
    (options.out / "accuracy.json").write_text(json.dumps(report, indent=2) + "\n", "utf-8")
    print(json.dumps(report, indent=2))
    print(f"{options.out}: {len(pictures)} pictures, {time.monotonic() - started:.0f} s")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--pairs", type=int, default=12_000, help="sentence pairs to train on")
    parser.add_argument("--epochs", type=int, default=14)
    parser.add_argument("--batch", type=int, default=96, help="sentence pairs in a batch")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, default=OUT)
    return parser.parse_args()


def make_tokenizer() -> Tokenizer:
    """Whole words of the grammar in lower case; "an" is read as "a"; the rest is unknown."""
    words = ["[PAD]", "[UNK]", *vocabulary()]
    tokenizer = Tokenizer(models.WordLevel({w: i for i, w in enumerate(words)}, unk_token=words[1]))
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.NFC(), normalizers.Lowercase(), normalizers.Replace(Regex(r"\ban\b"), "a")]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Whitespace(), pre_tokenizers.Punctuation(behavior="removed")]
    )
    return tokenizer


def encode(tokenizer: Tokenizer, texts: list[str]) -> np.ndarray:
    """int64 [texts, 24], padded with 0."""
    rows = np.zeros((len(texts), LENGTH), dtype=np.int64)
    for row, one in zip(rows, tokenizer.encode_batch(texts), strict=True):
        kept = one.ids[:LENGTH]
        row[: len(kept)] = kept
    return rows


def picture(text: str, seed: int) -> np.ndarray:
    """uint8 [96, 96, 3]: the sentence, drawn truly."""
    drawn = draw(parse(text), _seed(text, seed), DRAWN)
    return np.asarray(drawn.resize((SIDE, SIDE), Image.Resampling.BILINEAR))


def _seed(text: str, seed: int) -> int:
    # Far from the seeds 1 … 50 that the demo renders.
    digest = hashlib.sha256(f"{seed}\x1f{text}".encode()).digest()
    return 1_000_000 + int.from_bytes(digest[:4], "big")


def fit(
    pictures: np.ndarray, ids: np.ndarray, words: int, options: argparse.Namespace, started: float
) -> tuple[ImageEncoder, TextEncoder]:
    """Contrast within the batch, both ways; a pair's two sentences are always together."""
    image, text = ImageEncoder(), TextEncoder(words)
    scale = nn.Parameter(torch.tensor(2.5))
    parameters = [*image.parameters(), *text.parameters(), scale]
    pairs = len(ids) // 2
    steps = options.epochs * (pairs // options.batch)
    optimiser = torch.optim.AdamW(parameters, lr=2e-3, weight_decay=0.02)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, max_lr=3e-3, total_steps=steps)
    order = np.random.default_rng(SEED)
    print(f"{sum(p.numel() for p in parameters)} parameters", flush=True)
    for epoch in range(options.epochs):
        losses = []
        shuffled = order.permutation(pairs)
        for start in range(0, pairs - options.batch + 1, options.batch):
            chosen = shuffled[start : start + options.batch]
            rows = np.concatenate([2 * chosen, 2 * chosen + 1])
            loss = _loss(image, text, scale, pictures[rows], ids[rows], order)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            schedule.step()
            losses.append(loss.item())
        spent = time.monotonic() - started
        print(f"epoch {epoch + 1}: loss {np.mean(losses):.3f}, {spent:.0f} s", flush=True)
    return image.eval(), text.eval()


def _loss(
    image: ImageEncoder,
    text: TextEncoder,
    scale: torch.Tensor,
    pictures: np.ndarray,
    ids: np.ndarray,
    order: np.random.Generator,
) -> torch.Tensor:
    pixels = torch.from_numpy(pictures.transpose(0, 3, 1, 2).astype(np.float32))
    pixels = (pixels / 255 - MEAN) / STD
    # Shift by up to four pixels and change the brightness a little: the only augmentation.
    # No mirror images: left and right are part of what is learnt.
    dy, dx = order.integers(-4, 5, 2).tolist()
    pixels = torch.roll(pixels, (dy, dx), (2, 3)) * float(order.uniform(0.9, 1.1))
    logits = scale.exp() * image(pixels) @ text(torch.from_numpy(ids)).T
    both = logits + _equal_texts(ids)
    half = len(ids) // 2
    target = torch.arange(len(ids))
    loss = nn.functional.cross_entropy(both, target) + nn.functional.cross_entropy(both.T, target)
    # The contrast once more by itself: each sentence against its own contrast only.
    other = (target + half) % len(ids)
    own = logits[target, target]
    hard = nn.functional.softplus(logits[target, other] - own)
    hard = hard + nn.functional.softplus(logits[other, target] - own)
    return loss / 2 + hard.mean()


def _equal_texts(ids: np.ndarray) -> torch.Tensor:
    """−inf where two rows of a batch say the same: they are no negatives of each other."""
    same = torch.from_numpy((ids[:, None, :] == ids[None, :, :]).all(axis=2))
    same.fill_diagonal_(fill_value=False)
    return torch.zeros(same.shape).masked_fill(same, float("-inf"))


class Graph:
    """Nodes and float16 weights of an ONNX graph; weights are cast to float32 on loading."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []

    def add(self, kind: str, inputs: list[str], **attributes: object) -> str:
        """Add a node; returns the name of its one output."""
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [name], **attributes))
        return name

    def weight(self, value: torch.Tensor) -> str:
        """A weight stored in float16 and read as float32."""
        name = f"w{len(self.weights)}"
        array = value.detach().numpy().astype(np.float16)
        self.weights.append(numpy_helper.from_array(array, name))
        return self.add("Cast", [name], to=TensorProto.FLOAT)

    def save(self, path: Path, given: onnx.ValueInfoProto, output: str, name: str) -> None:
        """Write the model with one input and one output [n, width]."""
        self.nodes.append(helper.make_node("Identity", [output], [name]))
        result = helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", WIDTH])
        graph = helper.make_graph(self.nodes, path.stem, [given], [result], self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
        model.ir_version = 8
        onnx.checker.check_model(model, full_check=True)
        path.write_bytes(model.SerializeToString(deterministic=True))


def export_image(encoder: ImageEncoder, path: Path) -> None:
    """`pixel_values` [n, 3, 96, 96] → `image_embeds`; batch normalisation folded away."""
    graph = Graph()
    value = "pixel_values"
    layers = list(encoder.layers)
    for index, layer in enumerate(layers):
        if isinstance(layer, nn.Conv2d):
            weight, bias = _folded(layer, layers[index + 1])
            names = [value, graph.weight(weight), graph.weight(bias)]
            pads, strides = [layer.padding[0]] * 4, list(layer.stride)
            value = graph.add("Conv", names, pads=pads, strides=strides)
        elif isinstance(layer, nn.Linear):
            names = [value, graph.weight(layer.weight), graph.weight(layer.bias)]
            value = graph.add("Gemm", names, transB=1)
        elif isinstance(layer, nn.ReLU):
            value = graph.add("Relu", [value])
        elif isinstance(layer, nn.Flatten):
            value = graph.add("Flatten", [value], axis=1)
    value = graph.add("LpNormalization", [value], axis=1, p=2)
    given = helper.make_tensor_value_info("pixel_values", TensorProto.FLOAT, ["n", 3, SIDE, SIDE])
    graph.save(path, given, value, "image_embeds")


def _folded(layer: nn.Conv2d, behind: nn.Module) -> tuple[torch.Tensor, torch.Tensor]:
    if not isinstance(behind, nn.BatchNorm2d):
        return layer.weight, layer.bias
    factor = behind.weight / torch.sqrt(behind.running_var + behind.eps)
    return layer.weight * factor[:, None, None, None], behind.bias - behind.running_mean * factor


def export_text(encoder: TextEncoder, path: Path) -> None:
    """`input_ids` [n, 24] → `text_embeds`."""
    graph = Graph()
    words = graph.add("Gather", [graph.weight(encoder.words.weight), "input_ids"])
    value = graph.add("Transpose", [words], perm=[0, 2, 1])
    pooled = []
    for layer in (encoder.near, encoder.far):
        names = [value, graph.weight(layer.weight), graph.weight(layer.bias)]
        value = graph.add("Relu", [graph.add("Conv", names, pads=[layer.padding[0]] * 2)])
        pooled.append(graph.add("ReduceMax", [value], axes=[2], keepdims=0))
    value = graph.add("Concat", pooled, axis=1)
    for index in (0, 2):
        layer = encoder.out[index]
        names = [value, graph.weight(layer.weight), graph.weight(layer.bias)]
        value = graph.add("Gemm", names, transB=1)
        value = graph.add("Relu", [value]) if index == 0 else value
    value = graph.add("LpNormalization", [value], axis=1, p=2)
    given = helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["n", LENGTH])
    graph.save(path, given, value, "text_embeds")


def write_settings(out: Path, pictures: int, options: argparse.Namespace) -> None:
    """What `onnx-dual-encoder` reads: files, names, preprocessing, text length."""
    settings = {
        "label": "Tiny dual encoder (trained on drawn scenes)",
        "image": {
            "file": "image.onnx",
            "size": [SIDE, SIDE],
            "resample": "bilinear",
            "mean": [MEAN] * 3,
            "std": [STD] * 3,
        },
        "text": {"file": "text.onnx", "length": LENGTH, "pad_id": 0},
        "licence": "Apache-2.0",
        "training": {
            "script": "tools/train_tiny_dual_encoder.py",
            "pictures": pictures,
            "epochs": options.epochs,
            "seed": SEED,
        },
    }
    (out / "dual_encoder.json").write_text(json.dumps(settings, indent=2) + "\n", "utf-8")


def measure(
    out: Path, pairs: list[tuple[str, str, str]], *, seeds: range
) -> dict[str, dict[str, float]]:
    """Accuracy of the written files by category, in the four directions, on true drawings."""
    import onnxruntime

    sessions = {
        kind: onnxruntime.InferenceSession(str(out / f"{kind}.onnx")) for kind in ("image", "text")
    }
    tokenizer = Tokenizer.from_file(str(out / "tokenizer.json"))
    right: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for category, *both in pairs:
        texts = sessions["text"].run(None, {"input_ids": encode(tokenizer, both)})[0]
        for seed in seeds:
            pixels = np.stack([picture(text, seed) for text in both]).transpose(0, 3, 1, 2)
            given = ((pixels / 255 - MEAN) / STD).astype(np.float32)
            images = sessions["image"].run(None, {"pixel_values": given})[0]
            s = images @ texts.T
            right[category]["text_forward"].append(s[0, 0] > s[0, 1])
            right[category]["text_inverse"].append(s[1, 1] > s[1, 0])
            right[category]["image_forward"].append(s[0, 0] > s[1, 0])
            right[category]["image_inverse"].append(s[1, 1] > s[0, 1])
    return {
        category: {name: round(float(np.mean(values)), 3) for name, values in row.items()}
        | {"pairs": len(row["text_forward"]) // len(seeds)}
        for category, row in sorted(right.items())
    }


if __name__ == "__main__":
    main()
