from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from croc_annotate.benchmark import registry
from croc_annotate.benchmark.metric import DualEncoder, MetricError, MetricOptions, Prepares
from croc_annotate.benchmark.metrics.onnx_dual_encoder import BUILT_IN
from tests.benchmark.metrics.conftest import (
    TEXTS,
    as_input,
    assert_same_at_any_batch_size,
    picture,
    scores_in_batches,
)


@pytest.fixture(scope="module")
def metric():
    return registry.create("onnx-dual-encoder")


def make(folder, **options):
    return registry.create("onnx-dual-encoder", options=MetricOptions(model=str(folder), **options))


def test_it_runs_without_torch():
    code = (
        "import sys; from croc_annotate.benchmark import registry;"
        "registry.create('onnx-dual-encoder').describe();"
        "print(sorted({'torch', 'transformers', 'huggingface_hub'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_built_in_model_weighs_less_than_a_megabyte():
    assert sum(path.stat().st_size for path in BUILT_IN.iterdir()) < 1_000_000


@pytest.mark.field_case(39)
def test_batch_size_and_order_change_no_winner(metric, inputs, texts):
    """Trap 11."""
    assert_same_at_any_batch_size(metric, inputs, texts)


def test_two_runs_are_bit_equal(inputs, texts):
    """Trap 13."""
    runs = [
        scores_in_batches(registry.create("onnx-dual-encoder"), inputs, texts, 4) for _ in range(2)
    ]
    assert runs[0].tobytes() == runs[1].tobytes()


def test_retrieval_and_preparing_ahead_give_the_same_scores(metric):
    image = as_input(picture(2, size=(140, 61)))
    assert isinstance(metric, DualEncoder)
    assert isinstance(metric, Prepares)
    scores = metric.score(images=[image], texts=[TEXTS]).scores
    ahead = metric.prepare(image=image)
    assert ahead.pixels.size == (96, 96)
    assert metric.score(images=[ahead], texts=[TEXTS]).scores == scores
    product = metric.similarity(
        images=metric.embed_images(images=[image]), texts=metric.embed_texts(texts=TEXTS)
    )
    np.testing.assert_allclose(product, scores, atol=1e-6)


def test_long_texts_are_cut_and_counted(metric, inputs):
    long = "red apples " * 40
    batch = metric.score(images=inputs[:1], texts=[[long, TEXTS[0]]])
    assert batch.truncated == {long}


def test_it_has_learnt_the_demo_s_properties_and_is_worst_at_counting(metric):
    """On drawings of the size that the demo draws, of sentences that it was not trained on."""
    from generation.scenes.drawing import draw
    from generation.scenes.grammar import parse

    bank = Path(__file__).parents[3] / "generation" / "scenes" / "demo_bank.jsonl"
    right: dict[str, list[bool]] = {}
    for row in map(json.loads, bank.read_text("utf-8").splitlines()):
        pair = [row["prompt"], row["contrast"]]
        images = [as_input(draw(parse(text), 1, 512)) for text in pair]
        s = np.array(metric.score(images=images, texts=[pair] * 2).scores)
        won = [s[0, 0] > s[0, 1], s[1, 1] > s[1, 0], s[0, 0] > s[1, 0], s[1, 1] > s[0, 1]]
        right.setdefault(row["category"], []).extend(won)
    accuracy = {category: np.mean(values) for category, values in right.items()}
    assert np.mean(list(accuracy.values())) > 0.85
    assert min(accuracy, key=accuracy.get) == "counting"


def test_its_stated_accuracy_names_all_eight_categories():
    report = json.loads((BUILT_IN / "accuracy.json").read_text())
    for table in report.values():
        assert sorted(table) == [
            "action", "body_parts", "counting", "negation", "shapes", "size_relation",
            "spatial_relation", "things_parts",
        ]  # fmt: skip


def accuracy_table() -> str:
    """accuracy.json as the table of the documentation."""
    report = json.loads((BUILT_IN / "accuracy.json").read_text())
    directions = ("text_forward", "text_inverse", "image_forward", "image_inverse")
    lines = ["| category | drawings of | text → | ← text | image → | ← image |", "|---" * 6 + "|"]
    for title, table in report.items():
        for category, row in table.items():
            values = " | ".join(f"{row[name]:.2f}" for name in directions)
            lines.append(f"| `{category}` | {title}, {row['pairs']} pairs | {values} |")
    return "\n".join(lines)


def test_the_documentation_states_the_accuracy_of_the_files():
    page = (Path(__file__).parents[3] / "docs" / "adding-a-metric.md").read_text("utf-8")
    assert accuracy_table() in page


def test_the_facts_name_the_files_by_content(metric, tmp_path):
    facts = metric.describe()
    assert facts.model.startswith("built-in")
    copy = shutil.copytree(BUILT_IN, tmp_path / "copy")
    assert make(copy).describe().revision == facts.revision
    data = bytearray((copy / "text.onnx").read_bytes())
    data[-1] ^= 1
    (copy / "text.onnx").write_bytes(bytes(data))
    assert make(copy).describe().revision != facts.revision


@pytest.mark.torch
def test_an_export_of_a_clip_model_scores_like_the_model(tmp_path, inputs):
    torch = pytest.importorskip("torch", reason="needs the gpu extra")
    import warnings

    from transformers import CLIPModel

    from tests.benchmark.metrics import tiny

    folder = tiny.clip(tmp_path / "clip")
    model = CLIPModel.from_pretrained(folder, attn_implementation="eager").eval()
    model.requires_grad_(requires_grad=False)

    class Image(torch.nn.Module):
        def forward(self, pixel_values):
            return model.get_image_features(pixel_values=pixel_values).pooler_output

    class Text(torch.nn.Module):
        def forward(self, input_ids, attention_mask):
            hidden = model.text_model(input_ids=input_ids, attention_mask=attention_mask)
            return model.text_projection(hidden.pooler_output)

    ids = torch.ones(2, 77, dtype=torch.int64) * 513
    given = {
        "vision_model": (Image(), (torch.zeros(2, 3, 32, 32),), ["pixel_values"], "image_embeds"),
        "text_model": (Text(), (ids, ids), ["input_ids", "attention_mask"], "text_embeds"),
    }
    (folder / "onnx").mkdir()
    for name, (module, example, inside, outside) in given.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.onnx.export(
                module, example, folder / "onnx" / f"{name}.onnx", dynamo=False,
                input_names=inside, output_names=[outside],
                dynamic_axes={key: {0: "n"} for key in [*inside, outside]},
            )  # fmt: skip
    ours = registry.create(
        "clipscore",
        options=MetricOptions(
            model=str(folder), device="cpu", extra={"preprocessing": "processor"}
        ),
    )
    exported = make(folder)
    np.testing.assert_allclose(
        exported.embed_images(images=inputs[:4]), ours.embed_images(images=inputs[:4]), atol=1e-4
    )
    np.testing.assert_allclose(
        exported.embed_texts(texts=TEXTS), ours.embed_texts(texts=TEXTS), atol=1e-4
    )


@pytest.mark.parametrize(
    ("break_it", "sentence"),
    [
        (lambda f: (f / "dual_encoder.json").unlink(), "holds neither dual_encoder.json nor"),
        (lambda f: (f / "image.onnx").unlink(), "holds no image.onnx"),
        (lambda f: (f / "tokenizer.json").unlink(), "holds no tokenizer.json"),
        (lambda f: (f / "image.onnx").write_bytes(b"nothing"), "is no model that onnxruntime"),
        (lambda f: (f / "dual_encoder.json").write_text("{"), "is no JSON"),
        (lambda f: (f / "dual_encoder.json").write_text("{}"), "lacks or misstates 'image'"),
    ],
)
def test_a_broken_folder_is_one_sentence(tmp_path, break_it, sentence):
    folder = shutil.copytree(BUILT_IN, tmp_path / "model")
    break_it(folder)
    with pytest.raises(MetricError, match=sentence) as caught:
        make(folder).score(images=[as_input(picture(1))], texts=[["a"]])
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"dtype": "float16"}, "computes as the model was exported"),
        ({"device": "cuda"}, "runs on the CPU"),
    ],
)
def test_options_that_it_does_not_have_are_refused(options, sentence):
    with pytest.raises(MetricError, match=sentence):
        make(BUILT_IN, **options)


def test_a_missing_folder_is_one_sentence():
    with pytest.raises(MetricError, match="there is none at /nowhere"):
        make("/nowhere")
