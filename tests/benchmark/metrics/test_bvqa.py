from __future__ import annotations

import re

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the gpu extra")

from croc_annotate.benchmark import registry
from croc_annotate.benchmark.metric import MetricError, MetricOptions, fingerprint
from croc_annotate.benchmark.metrics import bvqa
from tests.benchmark.metrics import tiny
from tests.benchmark.metrics.conftest import TEXTS, assert_same_at_any_batch_size

pytestmark = pytest.mark.torch

CHUNKER = "tests.benchmark.metrics.test_bvqa:chunks"


def chunks(text: str) -> list[str]:
    """Stands in for spaCy: what lies between the prepositions and verbs of the tests' texts."""
    parts = re.split(r"\b(?:on|with|without|of|left|bounces|sits|is)\b", text)
    return [part.strip() for part in parts if part.strip() not in {"", "!", "it"}]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny.blip_vqa(tmp_path_factory.mktemp("blip"))


def make(folder, **extra):
    settings = {"chunker": CHUNKER, "enc_token_id": str(tiny.blip_enc_token(folder)), **extra}
    return registry.create(
        "bvqa-hf", options=MetricOptions(model=str(folder), device="cpu", extra=settings)
    )


@pytest.fixture(scope="module")
def metric(folder):
    return make(folder)


def yes_share(folder, image, chunk, *, enc=None) -> float:
    """One question through encoder and decoder, nothing beside it."""
    from transformers import AutoImageProcessor, AutoTokenizer, BlipForQuestionAnswering

    model = BlipForQuestionAnswering.from_pretrained(folder).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    values = AutoImageProcessor.from_pretrained(folder, backend="pil")(
        images=[image.pixels], return_tensors="pt"
    )["pixel_values"]
    ids = tokenizer([f"{chunk}?"], return_tensors="pt")["input_ids"]
    ids[0, 0] = tiny.blip_enc_token(folder) if enc is None else enc
    start = torch.tensor([[model.decoder_start_token_id]])
    with torch.inference_mode():
        states = model.vision_model(pixel_values=values).last_hidden_state
        hidden = model.text_encoder(
            input_ids=ids, attention_mask=torch.ones_like(ids), encoder_hidden_states=states
        ).last_hidden_state
        logits = model.text_decoder(input_ids=start, encoder_hidden_states=hidden).logits[0, 0]
    yes, no = logits[tokenizer.convert_tokens_to_ids(["yes", "no"])].exp().tolist()
    return yes / (yes + no)


def test_the_score_is_the_product_over_the_chunks(metric, folder, inputs):
    for image in inputs[:3]:
        [[got]] = metric.score(images=[image], texts=[["Three red apples on a plate!"]]).scores
        wanted = round(yes_share(folder, image, "three red apples"), 4) * round(
            yes_share(folder, image, "a plate"), 4
        )
        assert got == pytest.approx(wanted, abs=2e-4)


def test_the_question_begins_with_enc(folder, inputs):
    """Trap 5: with [CLS] in its place another probability comes out."""
    from transformers import AutoTokenizer

    with_enc = yes_share(folder, inputs[0], "a plate")
    with_cls = yes_share(
        folder, inputs[0], "a plate", enc=AutoTokenizer.from_pretrained(folder).cls_token_id
    )
    assert with_enc != pytest.approx(with_cls, abs=1e-4)


def test_padding_never_reaches_the_decoder(metric, inputs):
    """Trap 5: a chunk beside a longer one scores as it does alone."""
    [[alone]] = metric.score(images=inputs[:1], texts=[["a plate"]]).scores
    [[beside, _]] = metric.score(
        images=inputs[:1], texts=[["a plate", "a large green circle and small red apples"]]
    ).scores
    assert alone == beside


def test_padded_together_the_decoder_would_see_the_padding(folder, metric, inputs):
    """Trap 5, the mistake itself: the class drops the cross-attention mask of a batch of one width."""
    from transformers import AutoTokenizer

    model = metric._model()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    batch = tokenizer(["a plate?", "a large green circle and small red apples?"], padding=True)
    ids = torch.tensor(batch["input_ids"])
    mask = torch.tensor(batch["attention_mask"])
    ids[:, 0] = tiny.blip_enc_token(folder)
    start = torch.full((2, 1), model.decoder_start_token_id)
    with torch.inference_mode():
        states = model.vision_model(pixel_values=torch.zeros(2, 3, 32, 32)).last_hidden_state
        hidden = model.text_encoder(
            input_ids=ids, attention_mask=mask, encoder_hidden_states=states
        ).last_hidden_state
        padded = model.text_decoder(input_ids=start, encoder_hidden_states=hidden).logits[0, 0]
        short = hidden[:1, : int(mask[0].sum())]
        clean = model.text_decoder(input_ids=start[:1], encoder_hidden_states=short).logits[0, 0]
    assert not torch.allclose(padded, clean, atol=1e-3)


def test_a_text_without_a_noun_phrase_has_no_score(metric, inputs):
    """Trap 5: not 1, which would win every comparison."""
    batch = metric.score(images=inputs[:1], texts=[["is it on!", "a plate"]])
    assert batch.scores[0][0] is None
    assert batch.scores[0][1] is not None
    assert batch.reasons == ("the text has no noun phrase",)


def test_texts_with_the_same_chunks_tie(metric, inputs):
    """Known of the formula: what a thing does is never asked."""
    [[one, other]] = metric.score(
        images=inputs[:1], texts=[["A soccer ball bounces", "A soccer ball sits"]]
    ).scores
    assert one == other


def test_at_most_eight_chunks_are_asked(metric):
    assert len(metric._chunks_of(" on ".join(["a red apple"] * 12))) == 8


@pytest.mark.field_case(39)
def test_batch_size_and_order_change_no_winner(metric, inputs, texts):
    """Trap 11; factors are rounded to four decimals, so nearly equal scores are equal or not."""
    assert_same_at_any_batch_size(metric, inputs, texts, tolerance=2e-4)


def test_an_image_and_a_question_are_encoded_once(folder, inputs):
    metric = make(folder)
    seen = {"images": 0, "questions": 0}
    model = metric._model()
    model.vision_model.register_forward_hook(
        lambda module, args, out: seen.update(images=seen["images"] + len(out[0]))
    )
    model.text_encoder.register_forward_hook(
        lambda module, args, out: seen.update(questions=seen["questions"] + len(out[0]))
    )
    metric.score(images=inputs[:2], texts=[TEXTS[:2]] * 2)  # both texts are "… on a plate"
    assert seen == {"images": 2, "questions": 2 * 3}


def test_two_runs_are_bit_equal(folder, inputs, texts):
    """Trap 13."""
    runs = [make(folder).score(images=inputs, texts=texts).scores for _ in range(2)]
    assert np.array(runs[0]).tobytes() == np.array(runs[1]).tobytes()


@pytest.mark.parametrize(
    ("chunker", "sentence"),
    [
        ("nowhere.at_all:chunks", "There is no chunker 'nowhere.at_all:chunks'"),
        ("json:nothing", "There is no chunker 'json:nothing'"),
    ],
)
def test_an_unknown_chunker_is_one_sentence(folder, chunker, sentence):
    with pytest.raises(MetricError, match=re.escape(sentence)):
        make(folder, chunker=chunker)


def test_spacy_is_named_where_it_or_its_model_is_missing():
    with pytest.raises(MetricError, match="python -m spacy download no_such_model"):
        bvqa.load_chunker("spacy:no_such_model")


@pytest.fixture(scope="module")
def spacy_model(tmp_path_factory):
    pytest.importorskip("spacy")
    from tests.benchmark.metrics.tiny_spacy import train

    return train(tmp_path_factory.mktemp("spacy"))


def test_spacy_cuts_the_text_as_published(folder, spacy_model, inputs):
    """A real pipeline with tagger and parser, loaded as a published one is."""
    metric = make(folder, chunker=f"spacy:{spacy_model}")
    assert metric._chunks_of("Three red apples on a plate") == ["three red apples", "a plate"]
    assert metric._chunks_of("a red apple on " + " on ".join(["a plate"] * 10)) == [
        "a red apple", *["a plate"] * 7,
    ]  # fmt: skip
    [[got, missing, bounces, sits]] = metric.score(
        images=inputs[:1],
        texts=[["Three red apples on a plate", "sits on", "a soccer ball bounces",
                "a soccer ball sits"]],
    ).scores  # fmt: skip
    wanted = round(yes_share(folder, inputs[0], "three red apples"), 4) * round(
        yes_share(folder, inputs[0], "a plate"), 4
    )
    assert got == pytest.approx(wanted, abs=2e-4)
    assert missing is None
    assert bounces == sits


def test_the_version_of_spacys_model_is_part_of_the_fingerprint(folder, spacy_model, tmp_path):
    described = make(folder, chunker=f"spacy:{spacy_model}").describe()
    assert described.settings["chunker"] == "spacy:en_tiny-1.2.3"
    import shutil

    moved = shutil.copytree(spacy_model, tmp_path / "elsewhere")
    assert fingerprint(make(folder, chunker=f"spacy:{moved}").describe()) == fingerprint(described)


def test_a_spacy_model_without_a_parser_is_one_sentence(folder, tmp_path):
    spacy = pytest.importorskip("spacy")
    spacy.blank("en").to_disk(tmp_path / "blank")
    with pytest.raises(MetricError, match="has no parser"):
        make(folder, chunker=f"spacy:{tmp_path / 'blank'}")


def test_questions_are_lower_case_and_without_punctuation():
    assert bvqa.plain_question('The "Red"  (old) Car;') == "the red old car"
