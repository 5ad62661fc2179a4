"""Random sentence pairs of the scene grammar, for training and measuring the tiny metric."""

from __future__ import annotations

import re
from itertools import cycle
from random import Random
from typing import TYPE_CHECKING

from generation.scenes.grammar import RULES, TABLES, Rule, SceneError, parse, wrong
from generation.scenes.words import NUMBERS

if TYPE_CHECKING:
    from collections.abc import Iterator

_TOKENS = re.compile(r"(\{[^}]*\}|\[[^\]]*\])")


class UnusableError(Exception):
    """A draw of words that makes no sentence; the caller draws again."""


def sentence_pairs(count: int, *, seed: int, avoid: frozenset[str]) -> list[tuple[str, str, str]]:
    """`count` triples (category, sentence, contrast), the categories in turn, none in `avoid`.

    Some categories have few sentences: triples may repeat, to be drawn anew each time.
    """
    found: list[tuple[str, str, str]] = []
    dice = Random(seed)  # noqa: S311 - sentences, not secrets
    for category, one, other in _draws(dice):
        if one not in avoid and other not in avoid:
            found.append((category, one, other))
        if len(found) == count:
            break
    return found


def vocabulary() -> list[str]:
    """All words that a sentence of the grammar can hold, sorted."""
    texts = [pattern for rule in RULES for pattern in rule.patterns]
    texts += [word for table in TABLES.values() for word in table]
    return sorted(
        set(re.findall(r"[a-z0-9]+", " ".join(re.sub(_TOKENS, _inner, t) for t in texts)))
    )


def _inner(match: re.Match[str]) -> str:
    # An optional group has words of its own around its slots.
    return re.sub(r"\{[^}]*\}|\[|\]", " ", match.group(0))


def _draws(dice: Random) -> Iterator[tuple[str, str, str]]:
    by_category: dict[str, list[Rule]] = {}
    for rule in RULES:
        by_category.setdefault(rule.category, []).append(rule)
    for category in cycle(sorted(by_category)):
        yield category, *_some_pair(by_category[category], dice)


def _some_pair(rules: list[Rule], dice: Random) -> tuple[str, str]:
    while True:
        try:
            return _pair(dice.choice(rules), dice)
        except (UnusableError, SceneError):
            continue


def _pair(rule: Rule, dice: Random) -> tuple[str, str]:
    if rule.focus in rule.fixed:
        return _twins(rule, dice)
    shape = _choose_groups(dice.choice(rule.patterns), dice)
    filled = {slot: dice.choice(_options(slot)) for slot in re.findall(r"\{[^}]*\}", shape)}
    focus = next(slot for slot in filled if slot[1:-1].partition(":")[0] == rule.focus)
    one = _write(shape, filled)
    scene = parse(one)
    # The contrast as the renderer errs: the near numbers and the opposite relations come first.
    value = wrong(scene, _Die(dice)).slots[rule.focus]
    words = [word for word in _options(focus) if TABLES[focus[1:-1].split(":")[-1]][word] == value]
    if not words:
        raise UnusableError(focus)
    other = _write(shape, {**filled, focus: dice.choice(words)})
    parse(other)
    return one, other


def _twins(rule: Rule, dice: Random) -> tuple[str, str]:
    others = [
        twin
        for twin in RULES
        if twin.fixed.get("thing") == rule.fixed["thing"]
        and twin.kind == rule.kind
        and twin.fixed[rule.focus] != rule.fixed[rule.focus]
    ]
    one, other = dice.choice(rule.patterns), dice.choice(dice.choice(others).patterns)
    parse(one)
    parse(other)
    return one, other


def _choose_groups(pattern: str, dice: Random) -> str:
    return re.sub(r"\[([^\]]*)\]", lambda m: m.group(1) if dice.random() < 0.6 else "", pattern)


def _options(slot: str) -> list[str]:
    table = slot[1:-1].split(":")[-1]
    return sorted(TABLES[table])


def _write(shape: str, filled: dict[str, str]) -> str:
    text = shape
    for slot, word in filled.items():
        text = text.replace(slot, word, 1)
    _check_number(text, shape, filled)
    return text


def _check_number(text: str, shape: str, filled: dict[str, str]) -> None:
    """One apple, two apples: the grammar reads both either way, people do not write them."""
    things, number = filled.get("{things}"), filled.get("{n}")
    if things is not None and number is not None:
        single = NUMBERS[number] == 1
        if single != (TABLES["things"][things] == things) and things != "fish":
            raise UnusableError(text)
        if single == shape.startswith("there are"):
            raise UnusableError(text)


class _Die:
    """The two draws that the grammar asks of its own dice, from a plain generator."""

    def __init__(self, dice: Random) -> None:
        self._dice = dice

    def unit(self) -> float:
        return self._dice.random()

    def choice(self, options: tuple[str, ...]) -> str:
        return self._dice.choice(list(options))
