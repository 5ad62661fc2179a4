from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the gpu extra")

from croc_annotate.benchmark import registry
from croc_annotate.benchmark.metric import MetricError, MetricOptions, fingerprint
from croc_annotate.benchmark.metrics import vlm, vqascore
from tests.benchmark.metrics import tiny
from tests.benchmark.metrics.conftest import (
    TEXTS,
    as_input,
    assert_same_at_any_batch_size,
    picture,
    scores_in_batches,
)

pytestmark = pytest.mark.torch


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny.llava(tmp_path_factory.mktemp("llava"))


def make(folder, **options):
    return registry.create(
        "vqascore", options=MetricOptions(model=str(folder), device="cpu", **options)
    )


@pytest.fixture(scope="module")
def metric(folder):
    return make(folder)


def by_hand(folder, image, text) -> float:
    """One pair without any padding: softmax over the vocabulary at the last position."""
    from transformers import AutoProcessor, LlavaForConditionalGeneration

    model = LlavaForConditionalGeneration.from_pretrained(folder).eval()
    processor = AutoProcessor.from_pretrained(folder)
    prompt = f'USER: <image>\nDoes this figure show "{text}"? Please answer yes or no. ASSISTANT:'
    inputs = processor(images=[image.pixels], text=[prompt], return_tensors="pt")
    yes = processor.tokenizer(" Yes", add_special_tokens=False)["input_ids"][0]
    with torch.inference_mode():
        logits = model(**inputs).logits[0, -1].float()
    return float(torch.softmax(logits, dim=-1)[yes])


def test_the_score_is_the_probability_of_yes_after_the_prompt(metric, folder, inputs):
    got = metric.score(images=inputs[:3], texts=[TEXTS[:2]] * 3).scores
    wanted = [[by_hand(folder, image, text) for text in TEXTS[:2]] for image in inputs[:3]]
    np.testing.assert_allclose(got, wanted, rtol=1e-4)


@pytest.mark.field_case(41)
def test_padding_does_not_reach_the_score(metric, inputs):
    """Trap 6: a short text beside a long one in a batch, and alone, scores the same."""
    short, long = "a cat", "a large green circle on a small red plate with two dogs and a blue car"
    [[alone]] = metric.score(images=inputs[:1], texts=[[short]]).scores
    [[beside, _]] = metric.score(images=inputs[:1], texts=[[short, long]]).scores
    assert beside == pytest.approx(alone, rel=1e-5)


@pytest.mark.field_case(41)
def test_right_padding_with_the_last_column_would_read_a_pad(metric, folder, inputs):
    """Trap 6, the mistake itself."""
    prompts = [metric._prompt("a cat"), metric._prompt(TEXTS[0] + " and two blue cars")]
    given = metric._processor(
        images=[[inputs[0].pixels]] * 2, text=prompts, padding=True, return_tensors="pt"
    )
    assert given["attention_mask"][0, -1] == 0, "the tokenizer was saved with left padding"
    with torch.inference_mode():
        wrong = metric._model()(**given).logits[:, -1].float()
        right = vlm.next_token_logits(metric._model(), dict(given))
    assert torch.allclose(wrong[1], right[1], atol=1e-5)
    assert not torch.allclose(wrong[0], right[0], atol=1e-2)


def test_the_last_real_token_is_found_on_either_side():
    """Trap 6."""
    mask = torch.tensor([[1, 1, 1, 0], [0, 1, 1, 1], [1, 1, 1, 1]])
    assert vlm.last_positions(mask).tolist() == [2, 3, 3]


@pytest.mark.field_case(41)
@pytest.mark.parametrize("side", ["left", "right"])
def test_the_side_saved_with_the_tokenizer_does_not_matter(side, metric, inputs, tmp_path):
    """Trap 6."""
    other = make(tiny.llava(tmp_path / side, padding_side=side))
    texts = [[TEXTS[0], "a cat"]] * 3
    np.testing.assert_allclose(
        other.score(images=inputs[:3], texts=texts).scores,
        metric.score(images=inputs[:3], texts=texts).scores,
        rtol=1e-6,
    )


def test_logits_come_from_a_forward_pass_and_not_from_generate(folder, inputs):
    """Trap 8: a repetition penalty in the checkpoint's generation settings changes nothing."""
    from transformers import GenerationConfig

    changed = make(folder)
    before = changed.score(images=inputs[:1], texts=[TEXTS]).scores
    changed._model().generation_config = GenerationConfig(repetition_penalty=5.0)
    assert changed.score(images=inputs[:1], texts=[TEXTS]).scores == before


@pytest.mark.field_case(39)
def test_batch_size_and_order_change_no_winner(metric, inputs, texts):
    """Trap 11."""
    assert_same_at_any_batch_size(metric, inputs, texts)


def test_two_runs_on_the_cpu_are_bit_equal(folder, inputs, texts):
    """Trap 13."""
    runs = [scores_in_batches(make(folder), inputs[:8], texts[:8], 4) for _ in range(2)]
    assert runs[0].tobytes() == runs[1].tobytes()


def test_an_image_goes_through_the_vision_tower_once_for_all_its_texts(folder, inputs):
    metric = make(folder)
    seen = []
    metric._model().model.vision_tower.embeddings.register_forward_hook(
        lambda module, args, out: seen.append(len(out))
    )
    metric.score(images=inputs[:1], texts=[["a"]])  # tries whether images can be shared
    seen.clear()
    metric.score(images=inputs[:3], texts=[TEXTS[:2]] * 3)
    assert sum(seen) == 3


def test_sharing_the_image_between_texts_changes_no_score(metric, inputs):
    jobs = [vqascore.Job(image, TEXTS[: 2 + number % 3]) for number, image in enumerate(inputs[:6])]
    assert metric._may_share(jobs[0])
    with torch.inference_mode():
        plain = torch.softmax(metric._plain(jobs), dim=-1)
        shared = torch.softmax(metric._shared(jobs), dim=-1)
    torch.testing.assert_close(shared, plain, rtol=1e-4, atol=1e-6)


def test_a_model_that_cannot_go_on_from_an_image_is_asked_pair_by_pair(folder, metric, inputs):
    stubborn = make(folder)
    model = stubborn._model()
    plain_forward = model.forward

    def forgetful(*args, cache=None, **given):
        """Its positions start anew whatever stands in the cache."""
        if cache is not None:
            width = given["input_ids"].shape[1]
            given["position_ids"] = torch.arange(width)[None].expand(len(given["input_ids"]), -1)
        return plain_forward(*args, cache=cache, **given)

    model.forward = forgetful
    texts = [TEXTS] * 2
    got = stubborn.score(images=inputs[:2], texts=texts).scores
    assert stubborn._sharing is False
    np.testing.assert_allclose(got, metric.score(images=inputs[:2], texts=texts).scores, rtol=1e-4)


def test_softmax_is_taken_in_float32_where_bfloat16_would_tie():
    """Trap 7: logit gaps of 6.5, 7, 8 and 10 are all 1.0 in bfloat16."""
    logits = torch.tensor([[gap, 0.0] for gap in (6.5, 7.0, 8.0, 10.0)])
    rough = torch.softmax(logits.bfloat16(), dim=-1)[:, 0]
    fine = torch.softmax(logits.bfloat16().float(), dim=-1)[:, 0]
    assert len(set(rough.tolist())) == 1
    assert len(set(fine.tolist())) == 4


def test_half_precision_models_are_scored_from_float32_logits(folder, inputs):
    """Trap 7."""
    metric = make(folder, dtype="bfloat16")
    given = metric._processor(
        images=[[inputs[0].pixels]], text=[metric._prompt("a cat")], return_tensors="pt"
    )
    given = {k: v.bfloat16() if v.is_floating_point() else v for k, v in given.items()}
    with torch.inference_mode():
        assert vlm.next_token_logits(metric._model(), given).dtype is torch.float32
    [scores] = metric.score(images=inputs[:1], texts=[TEXTS]).scores
    assert any(value != torch.tensor(value).bfloat16().float().item() for value in scores)


def test_question_answer_word_and_frame_are_in_the_fingerprint(folder, metric):
    lower = make(folder, extra={"answer": "yes"})
    asked = make(folder, prompt='Does the image show "{text}"? Please answer Yes or No.')
    prints = {fingerprint(one.describe()) for one in (metric, lower, asked)}
    assert len(prints) == 3
    assert metric.describe().prompt == (
        'USER: <image>\nDoes this figure show "{text}"? Please answer yes or no. ASSISTANT:'
    )


def test_braces_and_quotes_in_a_text_stay_as_they_are(metric):
    assert '"a {red} "cup" {0}"' in metric._prompt('a {red} "cup" {0}')


def test_many_texts_on_one_image_are_scored_in_passes(metric, inputs):
    [scores] = metric.score(images=inputs[:1], texts=[TEXTS]).scores
    alone = [metric.score(images=inputs[:1], texts=[[t]]).scores[0][0] for t in TEXTS]
    np.testing.assert_allclose(scores, alone, rtol=1e-5)


def test_a_wide_image_is_scored(metric):
    assert metric.score(images=[as_input(picture(1, size=(200, 40)))], texts=[["a"]]).scores


def test_the_answers_token_follows_the_end_of_the_prompt(folder):
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    spaced = tokenizer(" Yes", add_special_tokens=False)["input_ids"][0]
    plain = tokenizer("Yes", add_special_tokens=False)["input_ids"][0]
    assert vlm.answer_token(tokenizer, before="ASSISTANT:", answer="Yes") == spaced
    assert vlm.answer_token(tokenizer, before="assistant\n", answer="Yes") == plain


def test_a_prompt_without_a_place_for_the_text_is_refused(folder):
    with pytest.raises(MetricError, match=r"needs \{text\}"):
        make(folder, prompt="Is it good?")


def test_a_model_without_images_is_one_sentence(tmp_path):
    folder = tiny.clip(tmp_path / "clip")
    with pytest.raises(MetricError) as caught:
        make(folder).score(images=[as_input(picture(1))], texts=[["a"]])
    assert "\n" not in str(caught.value)


@pytest.mark.field_case(39)
@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")  # transformers'
def test_a_model_whose_image_looks_at_the_text_is_not_shared_and_scores_as_alone(
    tmp_path, inputs, texts
):
    """Trap 11 for PaliGemma: the trial notices, and every pair is asked by itself."""
    metric = make(tiny.paligemma(tmp_path / "paligemma"))
    assert_same_at_any_batch_size(metric, inputs[:6], texts[:6])
    assert metric._sharing is False
