"""The sentences that the tiny dual encoder is trained on."""

from __future__ import annotations

from generation.scenes.grammar import agrees, parse
from tools.scene_sentences import sentence_pairs, vocabulary

PAIRS = sentence_pairs(400, seed=3, avoid=frozenset())


def test_both_sentences_can_be_drawn_and_differ_in_the_property_alone():
    for category, one, other in PAIRS:
        scene, contrast = parse(one), parse(other)
        assert scene.category == contrast.category == category
        assert not agrees(scene, contrast)
        changed = {
            slot
            for slot in {*scene.slots, *contrast.slots}
            if scene.get(slot) != contrast.get(slot)
        }
        assert changed == {scene.focus}, (one, other)


def test_the_categories_take_turns():
    assert len({category for category, _, _ in PAIRS[:8]}) == 8
    assert PAIRS[0][0] == PAIRS[8][0]


def test_the_same_seed_gives_the_same_pairs_and_held_out_sentences_stay_out():
    assert sentence_pairs(40, seed=3, avoid=frozenset()) == PAIRS[:40]
    held_out = frozenset({PAIRS[0][1], PAIRS[1][2]})
    texts = {text for _, *both in sentence_pairs(400, seed=3, avoid=held_out) for text in both}
    assert not held_out & texts


def test_every_word_is_in_the_vocabulary():
    words = set(vocabulary())
    for _, *both in PAIRS:
        for text in both:
            assert {word.strip(".,") for word in text.replace("-", " ").split()} <= words, text
