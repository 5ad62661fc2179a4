"""A tiny English spaCy pipeline, trained in seconds: parts of speech and a dependency parse."""

from __future__ import annotations

import random
from pathlib import Path

# word/part of speech/head/dependency; "a red apple sits on a plate" and its like.
_NOUNS = ("apple", "ball", "plate", "dog", "cat", "table", "vase", "circle", "house", "car")
_ADJECTIVES = ("red", "green", "blue", "small", "large", "soccer")
_DETERMINERS = ("a", "the", "three", "four", "A", "Three", "two")
_VERBS = ("sits", "bounces", "stands", "lies")
_PREPOSITIONS = ("on", "with", "without", "in", "of")


def _sentence(rng: random.Random) -> tuple[list[str], list[str], list[int], list[str]]:
    """A noun phrase, perhaps a verb, and one or two prepositional phrases."""
    words: list[str] = []
    parts: list[str] = []
    heads: list[int] = []
    labels: list[str] = []

    def add(word: str, part: str, head: int, label: str) -> int:
        words.append(word)
        parts.append(part)
        heads.append(head)
        labels.append(label)
        return len(words) - 1

    def phrase(head: int, label: str) -> int:
        adjective = rng.random() < 0.6
        noun = len(words) + 1 + adjective
        determiner = rng.choice(_DETERMINERS)
        number = determiner.lower() in {"two", "three", "four"}
        add(determiner, "NUM" if number else "DET", noun, "nummod" if number else "det")
        if adjective:
            add(rng.choice(_ADJECTIVES), "ADJ", noun, "amod")
        return add(rng.choice(_NOUNS) + ("s" if number else ""), "NOUN", head, label)

    with_verb = rng.random() < 0.5
    if with_verb:
        noun = phrase(-1, "nsubj")
        root = add(rng.choice(_VERBS), "VERB", -1, "ROOT")
        heads[noun], heads[root] = root, root
    else:
        root = phrase(-1, "ROOT")
        heads[root] = root
    for _ in range(rng.randrange(0 if with_verb else 1, 3)):
        preposition = add(rng.choice(_PREPOSITIONS), "ADP", root, "prep")
        phrase(preposition, "pobj")
    return words, parts, heads, labels


def train(folder: Path, *, steps: int = 60) -> Path:
    """Write the pipeline into `folder`; `spacy.load` opens it like a published model."""
    import spacy
    from spacy.tokens import Doc
    from spacy.training import Example
    from spacy.util import fix_random_seed

    fix_random_seed(0)
    nlp = spacy.blank("en")
    nlp.meta["name"], nlp.meta["version"] = "tiny", "1.2.3"
    tok2vec = {
        "@architectures": "spacy.HashEmbedCNN.v2", "width": 48, "depth": 2, "embed_size": 500,
        "window_size": 1, "maxout_pieces": 2, "subword_features": True, "pretrained_vectors": None,
    }  # fmt: skip
    nlp.add_pipe("morphologizer", config={"model": {
        "@architectures": "spacy.Tagger.v2", "tok2vec": tok2vec}})  # fmt: skip
    nlp.add_pipe("parser", config={"model": {
        "@architectures": "spacy.TransitionBasedParser.v2", "state_type": "parser",
        "extra_state_tokens": False, "hidden_width": 32, "maxout_pieces": 2, "use_upper": True,
        "tok2vec": tok2vec}})  # fmt: skip
    rng = random.Random(0)
    examples = []
    for _ in range(120):
        words, parts, heads, labels = _sentence(rng)
        truth = Doc(nlp.vocab, words=words, pos=parts, heads=heads, deps=labels)
        examples.append(Example(nlp.make_doc(" ".join(words)), truth))
    optimizer = nlp.initialize(lambda: examples)
    for _ in range(steps):
        nlp.update(rng.sample(examples, 24), sgd=optimizer)
    nlp.to_disk(folder)
    return folder
