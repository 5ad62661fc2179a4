from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the gpu extra")

from croc_annotate.benchmark import registry
from croc_annotate.benchmark.metric import DualEncoder, MetricError, MetricOptions, Prepares
from tests.benchmark.metrics import tiny
from tests.benchmark.metrics.conftest import (
    TEXTS,
    as_input,
    assert_same_at_any_batch_size,
    picture,
    scores_in_batches,
)

pytestmark = pytest.mark.torch

KINDS = {"siglip": tiny.siglip, "alignscore": tiny.align, "pickscore": tiny.clip}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    return {name: build(tmp_path_factory.mktemp(name)) for name, build in KINDS.items()}


def make(name, folders):
    return registry.create(name, options=MetricOptions(model=str(folders[name]), device="cpu"))


def forward_pass(name, folder, image, text) -> tuple[float, torch.nn.Module]:
    """The model's own forward pass on one pair, prepared by the class's own image processor."""
    from transformers import AutoImageProcessor, AutoModel, AutoTokenizer

    model = AutoModel.from_pretrained(folder).eval()
    values = AutoImageProcessor.from_pretrained(folder, backend="pil")(
        images=[image.pixels], return_tensors="pt"
    )["pixel_values"]
    padding = {"padding": "max_length", "max_length": 16} if name == "siglip" else {}
    tokens = AutoTokenizer.from_pretrained(folder)([text], return_tensors="pt", **padding)
    given = {"input_ids": tokens["input_ids"]}
    if name != "siglip":
        given["attention_mask"] = tokens["attention_mask"]
    with torch.inference_mode():
        return float(model(**given, pixel_values=values).logits_per_image), model


@pytest.mark.parametrize("name", KINDS)
def test_the_score_is_the_models_own(name, folders, inputs):
    metric = make(name, folders)
    for image, text in zip(inputs[:3], TEXTS[:3], strict=True):
        [[got]] = metric.score(images=[image], texts=[[text]]).scores
        wanted, model = forward_pass(name, folders[name], image, text)
        if name == "siglip":  # ours is the cosine under the learned scale and bias
            wanted = (wanted - model.logit_bias.item()) / model.logit_scale.exp().item()
        assert got == pytest.approx(wanted, rel=1e-4, abs=1e-5)


@pytest.mark.field_case(39)
@pytest.mark.parametrize("name", KINDS)
def test_batch_size_and_order_change_no_winner(name, folders, inputs, texts):
    """Trap 11."""
    assert_same_at_any_batch_size(make(name, folders), inputs, texts)


@pytest.mark.parametrize("name", KINDS)
def test_two_runs_on_the_cpu_are_bit_equal(name, folders, inputs, texts):
    """Trap 13."""
    runs = [scores_in_batches(make(name, folders), inputs, texts, 4) for _ in range(2)]
    assert runs[0].tobytes() == runs[1].tobytes()


@pytest.mark.parametrize("name", KINDS)
def test_retrieval_and_preparing_ahead_give_the_same_scores(name, folders):
    metric = make(name, folders)
    image = as_input(picture(2, size=(90, 61)))
    assert isinstance(metric, DualEncoder)
    assert isinstance(metric, Prepares)
    scores = metric.score(images=[image], texts=[TEXTS]).scores
    assert metric.score(images=[metric.prepare(image=image)], texts=[TEXTS]).scores == scores
    product = metric.similarity(
        images=metric.embed_images(images=[image]), texts=metric.embed_texts(texts=TEXTS)
    )
    np.testing.assert_allclose(product, scores, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("name", "limit"), [("siglip", 16), ("alignscore", 32), ("pickscore", 77)])
def test_long_texts_are_cut_counted_and_do_not_stop_the_run(name, limit, folders, inputs):
    """Traps 2 and 3: ALIGN without truncation fails beyond its positions."""
    metric = make(name, folders)
    long = "red apples " * 200
    batch = metric.score(images=inputs[:1], texts=[[long, long + "green", TEXTS[0]]])
    assert batch.truncated == {long, long + "green"}
    assert batch.scores[0][0] == pytest.approx(batch.scores[0][1], abs=1e-5)
    short = "red " * (limit // 2)
    assert (short in metric.truncated(texts=[short])) is (name == "pickscore")  # bytes as tokens


def test_siglip_texts_are_padded_to_the_full_length(folders, inputs):
    """Trap 3: padded to the longest of the batch, SigLIP would read another position."""
    from transformers import AutoTokenizer

    metric = make("siglip", folders)
    alone = metric.embed_texts(texts=[TEXTS[0]])[0]
    beside = metric.embed_texts(texts=[TEXTS[0], TEXTS[4]])[0]
    np.testing.assert_allclose(alone, beside, atol=1e-6)
    ids = AutoTokenizer.from_pretrained(folders["siglip"])([TEXTS[0]], return_tensors="pt")
    with torch.inference_mode():
        raw = metric._model().get_text_features(input_ids=ids["input_ids"]).pooler_output[0]
    unpadded = (raw / raw.norm()).numpy()
    assert not np.allclose(unpadded, alone, atol=1e-3)


def test_siglip_reads_lower_case(folders):
    metric = make("siglip", folders)
    np.testing.assert_array_equal(
        metric.embed_texts(texts=["Three RED Apples"]),
        metric.embed_texts(texts=["three red apples"]),
    )


def test_siglip_refuses_another_kind_of_model(folders):
    with pytest.raises(MetricError, match="is a 'clip' model; siglip reads SigLIP"):
        registry.create("siglip", options=MetricOptions(model=str(folders["pickscore"])))


def test_pickscore_names_the_processor_it_took(folders):
    facts = make("pickscore", folders).describe()
    assert facts.settings["processor"] == str(folders["pickscore"])
    assert facts.settings["processor_revision"] == facts.revision


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("size", [(64, 64), (97, 41), (33, 120)])
def test_our_preprocessing_is_the_image_processors(name, size, folders):
    """Trap 9: one backend, and the numbers of the class that the checkpoint names."""
    from transformers import AutoImageProcessor

    from croc_annotate.benchmark.metrics.image_preprocessing import from_image_processor

    processor = AutoImageProcessor.from_pretrained(folders[name], backend="pil")
    image = picture(9, size=size)
    wanted = processor(images=[image], return_tensors="np")["pixel_values"]
    np.testing.assert_allclose(from_image_processor(processor).array([image]), wanted, atol=1e-5)
