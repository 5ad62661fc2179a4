"""The drawn scenes: a grammar whose pictures show what it says, and wrong ones that do not."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image
from scipy import ndimage, stats

from croc_annotate.prompts.bank import parse_bank
from croc_annotate.prompts.rules import CATEGORIES
from generation.pipeline import GeneratorSpec, Pipeline, RenderedImage, RenderFailure
from generation.pipelines.scenes import ScenesPipeline
from generation.render_settings import SettingsError, parse_settings
from generation.scenes import grammar, words
from generation.scenes.dice import Dice
from generation.scenes.drawing import COMPOSERS, draw
from generation.scenes.grammar import Scene, SceneError, agrees, parse, wrong
from generation.scenes.words import COLOURS

DEMO = parse_bank(Path(grammar.__file__).parent / "demo_bank.jsonl")


def pipeline(**given: object) -> ScenesPipeline:
    settings = parse_settings(given, defaults=ScenesPipeline.defaults)
    return ScenesPipeline(GeneratorSpec(slug="scenes", model_id="", settings=settings))


def blobs(image: Image.Image, colour: str) -> list[tuple[float, float, int]]:
    """Centre and size of each connected patch of a colour, the specks left out."""
    import numpy as np

    wanted = np.array(COLOURS[colour])
    mask = np.abs(np.asarray(image).astype(int) - wanted).sum(axis=2) < 12
    labels, count = ndimage.label(mask)
    sizes = ndimage.sum_labels(mask, labels, range(1, count + 1))
    centres = ndimage.center_of_mass(mask, labels, range(1, count + 1))
    return [(x, y, int(size)) for (y, x), size in zip(centres, sizes, strict=True) if size > 150]


# Grammar


def test_the_demo_bank_has_five_pairs_of_each_category_that_differ_in_the_focus_alone() -> None:
    counts = dict.fromkeys(CATEGORIES, 0)
    for row in DEMO:
        prompt, contrast = parse(row.prompt), parse(row.contrast)
        assert prompt.category == contrast.category == row.category
        slots = {*prompt.slots, *contrast.slots}
        assert {s for s in slots if prompt.get(s) != contrast.get(s)} == {prompt.focus}, row.slug
        if row.alt_contrast:
            assert parse(row.alt_contrast) == contrast
        counts[row.category] += 1
    assert counts == dict.fromkeys(CATEGORIES, 5)


@pytest.mark.parametrize(
    "text",
    [
        "A photo of a dog.",
        "",
        "three apples and two pears",
        "eleven red apples",
        "a red circle to the left of a red circle",
        "a hand with six fingers raised",
        "a house with nine windows",
    ],
)
def test_a_text_outside_the_grammar_is_refused_in_words(text: str) -> None:
    with pytest.raises(SceneError, match=r"do not know the sentence|must lie between|two colours"):
        parse(text)


def test_case_spacing_full_stop_and_synonyms_do_not_matter() -> None:
    assert parse("  Three RED  apples on a plate. ") == parse("three red apples on a plate")
    assert parse("a red box is bigger than an orange ball") == parse(
        "a red box that is larger than an orange ball"
    )
    assert parse("a lake without a boat") == parse("a calm empty lake")


@pytest.mark.parametrize("row", DEMO, ids=lambda row: row.slug)
def test_the_wrong_scene_never_says_the_same_and_comes_up_as_the_contrast(row) -> None:
    asked, other = parse(row.prompt), parse(row.contrast)
    drawn = [wrong(asked, Dice("wrong", i)) for i in range(60)]
    assert not any(agrees(asked, scene) for scene in drawn)
    assert all(scene.category == asked.category for scene in drawn)
    assert all(set(scene.slots) == set(asked.slots) for scene in drawn)
    if asked.focus not in ("action", "outline", "door"):  # there the choice is wide
        assert any(agrees(other, scene) for scene in drawn)


def test_every_word_of_the_grammar_can_be_drawn() -> None:
    for rule in grammar.RULES:
        assert rule.kind in COMPOSERS
        assert rule.category in CATEGORIES
    texts = [
        *(f"two {things} {place}" for things, place in zip(
            words.THINGS.values(), words.PLACES * 3, strict=False)),
        *(f"a {person} {action}" for person, action in zip(
            words.PEOPLE * 4, words.ACTIONS, strict=False)),
        *(f"a {person} with {state}" for person, states in zip(
            words.PEOPLE, words.BODY_STATES.values(), strict=False) for state in states),
        *(f"a {outline} {thing}" for outline in words.OUTLINES for thing in words.SHAPED_THINGS),
        *(f"a cup {support} a {furniture}"
          for support in words.SUPPORTS for furniture in words.FURNITURE),
        *(text for owner, present, absent in words.ABSENT.values()
          for text in (f"a {owner} with {present}", f"a {owner} without {present}", absent)),
        *(f"a red ball {relation} a blue box" for relation in words.RELATIONS),
        *(f"a red tree {comparison} than a blue tree" for comparison in words.COMPARISONS),
        *(f"a hand with {n} fingers raised" for n in ("one", "five")),
        *(f"a red car with its {lid} open" for lid in words.LIDS),
    ]  # fmt: skip
    for text in texts:
        assert draw(parse(text), 1, 64).size == (64, 64), text


def test_the_sentences_of_the_documentation_can_be_drawn() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "scenes.md").read_text()
    sentences = page.split("```scenes\n")[1].split("```")[0].splitlines()
    assert {parse(sentence).category for sentence in sentences} == set(CATEGORIES)


# Pictures


@pytest.mark.parametrize("seed", range(1, 9))
@pytest.mark.parametrize("n", [1, 2, 5, 9, 10])
def test_as_many_things_are_drawn_as_are_said_and_none_hides_another(n: int, seed: int) -> None:
    number = next(word for word, value in words.NUMBERS.items() if value == n)
    for text in (f"{number} purple circles on a plate", f"{number} red squares in the sky"):
        colour = "purple" if "purple" in text else "red"
        assert len(blobs(draw(parse(text), seed), colour)) == n, text


@pytest.mark.parametrize("seed", range(1, 9))
def test_relations_are_drawn_as_said(seed: int) -> None:
    for relation, axis, sign in (
        ("to the left of", 0, -1), ("to the right of", 0, 1), ("above", 1, -1), ("below", 1, 1),
    ):  # fmt: skip
        image = draw(parse(f"a red circle {relation} a blue square"), seed)
        red = max(blobs(image, "red"), key=lambda blob: blob[2])
        blue = max(blobs(image, "blue"), key=lambda blob: blob[2])
        assert sign * (red[axis] - blue[axis]) > 150, relation


@pytest.mark.parametrize("seed", range(1, 9))
def test_sizes_are_drawn_as_said(seed: int) -> None:
    for word, bigger in (("larger", True), ("smaller", False)):
        image = draw(parse(f"a red circle that is {word} than a blue circle"), seed)
        red, blue = blobs(image, "red")[0][2], blobs(image, "blue")[0][2]
        assert (red > 2 * blue) if bigger else (blue > 2 * red)


def test_the_same_text_and_seed_give_the_same_bytes_and_other_seeds_other_pictures() -> None:
    scene = parse("five yellow stars in the sky")
    assert draw(scene, 3).tobytes() == draw(parse("five yellow stars in the sky"), 3).tobytes()
    assert len({draw(scene, seed).tobytes() for seed in range(1, 21)}) == 20


def test_another_process_draws_the_same_bytes() -> None:
    program = (
        "import hashlib; from generation.scenes.grammar import parse;"
        " from generation.scenes.drawing import draw;"
        " print(hashlib.sha256(draw(parse('a man running'), 7).tobytes()).hexdigest())"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "1234"}
    command = [sys.executable, "-c", program]
    there = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    here = hashlib.sha256(draw(parse("a man running"), 7).tobytes()).hexdigest()
    assert there.stdout.strip() == here


# The pipeline


def test_it_is_a_pipeline_and_draws_what_was_asked_for() -> None:
    drawer = pipeline(width=64, height=64)
    assert isinstance(drawer, Pipeline)
    drawer.load()
    outcomes = list(drawer.render("a man running", [1, 2, 3]))
    assert [outcome.seed for outcome in outcomes] == [1, 2, 3]
    for outcome in outcomes:
        assert isinstance(outcome, RenderedImage)
        assert outcome.image is not None
        assert outcome.image.size == (64, 64)
        assert outcome.facts["renderer"] == "scenes"
        assert outcome.facts["error_rate"] == 0.3
    assert "drawn, not generated" in str(drawer.describe()["label"])


def test_an_image_does_not_depend_on_the_seeds_asked_with_it() -> None:
    drawer = pipeline(width=64, height=64)
    together = {o.seed: o.image.tobytes() for o in drawer.render("three red balls", [4, 5, 6])}
    (alone,) = drawer.render("three red balls", [5])
    assert together[5] == alone.image.tobytes()


def test_the_stated_truth_is_what_was_drawn() -> None:
    asked = parse("three red balls")
    seen = set()
    for outcome in pipeline(width=32, height=32).render("three red balls", range(1, 60)):
        facts = outcome.facts["drawn"]
        drawn = Scene(facts["kind"], facts["slots"], facts["focus"], asked.category)
        assert agrees(asked, drawn) == outcome.facts["truth"]
        seen.add(outcome.facts["truth"])
    assert seen == {True, False}


@pytest.mark.parametrize("rate", [0.0, 0.3, 1.0])
def test_the_error_rate_is_the_stated_one(rate: float) -> None:
    drawer = pipeline(width=16, height=16, error_rate=rate)
    truths = [
        outcome.facts["truth"]
        for text in ("two blue birds", "a bare tree", "a hand with three fingers raised")
        for outcome in drawer.render(text, range(1, 201))
    ]
    errors = truths.count(False)
    if rate in (0.0, 1.0):
        assert errors == rate * len(truths)
    else:
        assert stats.binomtest(errors, len(truths), rate).pvalue > 0.001


def test_a_text_outside_the_grammar_fails_each_seed_with_the_reason() -> None:
    outcomes = list(pipeline().render("a photo of a dog", [1, 2]))
    assert all(isinstance(outcome, RenderFailure) for outcome in outcomes)
    assert "do not know the sentence “a photo of a dog”" in outcomes[0].reason


def test_a_picture_that_is_not_square_is_refused() -> None:
    with pytest.raises(SettingsError, match="square"):
        pipeline(width=64, height=32)
