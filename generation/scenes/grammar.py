"""Sentences to scenes and back: the grammar of what the renderer can draw.

A rule is a pattern with slots. Parsing fills the slots with canonical values; one slot is the
rule's *focus*, the visual property that a contrast pair changes and that an error gets wrong.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING

from generation.scenes import words

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from generation.scenes.dice import Dice

MAX_COUNT = 10


class SceneError(ValueError):
    """A text that the grammar does not cover."""


@dataclass(frozen=True)
class Scene:
    """What is to be drawn: a rule's name, its filled slots, and the slot under test."""

    kind: str
    slots: Mapping[str, str]
    focus: str
    category: str
    text: str = field(default="", compare=False)

    def __getitem__(self, slot: str) -> str:
        return self.slots[slot]

    def get(self, slot: str, default: str = "") -> str:
        """The slot's value, or the default where the sentence leaves it open."""
        return self.slots.get(slot, default)

    def with_focus(self, value: str) -> Scene:
        """The same scene with another value of the property under test."""
        return replace(self, slots={**self.slots, self.focus: value})

    def as_facts(self) -> dict[str, object]:
        """The scene as JSON values, for provenance."""
        return {"kind": self.kind, "focus": self.focus, "slots": dict(sorted(self.slots.items()))}


@dataclass(frozen=True)
class Rule:
    """One kind of scene: patterns (``{slot}`` or ``{slot:table}``), fixed slots, the focus."""

    kind: str
    category: str
    focus: str
    patterns: tuple[str, ...]
    fixed: Mapping[str, str] = field(default_factory=dict)


def _same(values: tuple[str, ...]) -> dict[str, str]:
    return {value: value for value in values}


TABLES: dict[str, Mapping[str, str]] = {
    "n": {word: str(number) for word, number in words.NUMBERS.items()},
    "colour": _same(tuple(words.COLOURS)),
    "thing": _same(tuple(words.THINGS)),
    "things": {word: one for one, many in words.THINGS.items() for word in (many, one)},
    "place": _same(words.PLACES),
    "relation": words.RELATIONS,
    "support": words.SUPPORTS,
    "furniture": _same(words.FURNITURE),
    "comparison": words.COMPARISONS,
    "outline": words.OUTLINES,
    "object": _same(words.SHAPED_THINGS),
    "person": _same(words.PEOPLE),
    "action": words.ACTIONS,
    "tail": words.TAILS,
    "roof": words.ROOFS,
    "door_state": words.DOOR_STATES,
    "lid": words.LIDS,
    **words.BODY_STATES,
}

_PLACE = "[ {place}]"


def _body_rules() -> Iterator[Rule]:
    for group in words.BODY_STATES:
        kind = "figure" if group in ("arms", "legs") else "face"
        pattern = f"a {{person}}[ in a {{colour}} shirt] with {{{group}}}"
        yield Rule(kind, "body_parts", group, (pattern + (_PLACE if kind == "figure" else ""),))


def _absence_rules() -> Iterator[Rule]:
    for thing, (owner, present, otherwise) in words.ABSENT.items():
        there = (f"a {owner} with {present}", f"there is a {owner} with {present}")
        slots = {"thing": thing, "presence": "yes"}
        yield Rule("absence", "negation", "presence", there, slots)
        named = present.removeprefix("a ")
        absent = (
            f"a {owner} without {present}",
            f"a {owner} with no {named}",
            f"a {owner} without any {named}",
            f"there is a {owner} without {present}",
            otherwise,
        )
        yield Rule("absence", "negation", "presence", absent, {"thing": thing, "presence": "no"})


RULES: tuple[Rule, ...] = (
    Rule("count", "counting", "n", (
        "{n}[ {colour}] {things}" + _PLACE,
        "there are {n}[ {colour}] {things}" + _PLACE,
        "there is {n}[ {colour}] {things}" + _PLACE,
    )),
    Rule("placed", "spatial_relation", "relation", (
        "a[ {colour}] {thing} {relation} a[ {colour2:colour}] {thing2:thing}" + _PLACE,
        "a[ {colour}] {thing} is {relation} a[ {colour2:colour}] {thing2:thing}" + _PLACE,
    )),
    Rule("supported", "spatial_relation", "support", (
        "a[ {colour}] {thing} {support} a[ {colour2:colour}] {furniture}",
        "a[ {colour}] {thing} is {support} a[ {colour2:colour}] {furniture}",
    )),
    Rule("compared", "size_relation", "comparison", (
        "a[ {colour}] {thing} {comparison} than a[ {colour2:colour}] {thing2:thing}" + _PLACE,
        "a[ {colour}] {thing} that is {comparison} than a[ {colour2:colour}] {thing2:thing}" + _PLACE,
        "a[ {colour}] {thing} is {comparison} than a[ {colour2:colour}] {thing2:thing}" + _PLACE,
    )),
    Rule("shaped", "shapes", "outline", (
        "a {outline}[ {colour}] {object}" + _PLACE,
        "a[ {colour}] {object} that is {outline}" + _PLACE,
    )),
    Rule("doing", "action", "action", (
        "a {person}[ in a {colour} shirt] {action}" + _PLACE,
        "a {person}[ in a {colour} shirt] is {action}" + _PLACE,
    )),
    *_body_rules(),
    Rule("cat", "body_parts", "tail", ("a[ {colour}] cat with its tail {tail}" + _PLACE,)),
    Rule("hand", "body_parts", "n", (
        "a hand with {n} fingers raised", "a hand with {n} finger raised",
        "a hand holding up {n} fingers", "a hand holding up {n} finger",
    )),
    *_absence_rules(),
    Rule("house", "things_parts", "door", ("a[ {colour}] house with a {door:colour} door",)),
    Rule("house", "things_parts", "door_state", ("a[ {colour}] house with {door_state} door",)),
    Rule("house", "things_parts", "roof", ("a[ {colour}] house with a {roof} roof",)),
    Rule("house", "things_parts", "roof_colour", (
        "a[ {colour}] house with a {roof_colour:colour} roof",
    )),
    Rule("house", "things_parts", "windows", (
        "a[ {colour}] house with {windows:n} windows", "a[ {colour}] house with {windows:n} window",
    )),
    Rule("car", "things_parts", "lid", ("a[ {colour}] car with its {lid} open",)),
    Rule("car", "things_parts", "wheels", ("a[ {colour}] car with {wheels:colour} wheels",)),
    Rule("boat", "things_parts", "sail", ("a[ {colour}] boat with a {sail:colour} sail",)),
    Rule("boat", "things_parts", "sails", (
        "a[ {colour}] boat with {sails:n} sails", "a[ {colour}] boat with {sails:n} sail",
    )),
    Rule("flower", "things_parts", "petals", ("a[ {colour}] flower with {petals:n} petals",)),
)  # fmt: skip

_LIMITS = {"windows": (1, 6), "sails": (1, 3), "petals": (4, 9), "n": (1, MAX_COUNT)}
_FINGERS = (1, 5)
_PAINT = ("red", "yellow", "green", "blue", "purple", "white")


def parse(text: str) -> Scene:
    """Return the scene that the sentence describes; raises SceneError outside the grammar."""
    sentence = _plain(text)
    for rule, regex, names in _compiled():
        match = regex.fullmatch(sentence)
        if match:
            scene = _scene(rule, names, match, text)
            _check(scene)
            return scene
    raise SceneError(
        f"The drawn scenes do not know the sentence “{text}”. They know counted, placed and "
        "compared things, outlines, people's actions, bodies, absent things, and parts of "
        "houses, cars, boats and flowers, e.g. “three red apples on a plate”."
    )


def wrong(scene: Scene, dice: Dice) -> Scene:
    """Return the scene with a wrong value of the property under test, drawn from ``dice``."""
    return scene.with_focus(_wrong_value(scene, dice))


def agrees(scene: Scene, drawn: Scene) -> bool:
    """Say whether a picture of ``drawn`` shows what ``scene`` says (they are of one pair)."""
    return scene.kind == drawn.kind and scene.slots == drawn.slots


def shows(facts: Mapping[str, object], text: str) -> bool:
    """Say whether a picture with these facts (``Scene.as_facts``) shows what a sentence says."""
    asked = parse(text).as_facts()
    return asked["kind"] == facts["kind"] and asked["slots"] == facts["slots"]


def _plain(text: str) -> str:
    lowered = text.casefold().strip().rstrip(".!").strip()
    return re.sub(r"\ban\b", "a", re.sub(r"\s+", " ", lowered))


@cache
def _compiled() -> list[tuple[Rule, re.Pattern[str], dict[str, str]]]:
    return [(rule, *_regex(_plain(pattern))) for rule in RULES for pattern in rule.patterns]


def _regex(pattern: str) -> tuple[re.Pattern[str], dict[str, str]]:
    """Turn a pattern into a regular expression and its slots' tables; [ ] is optional."""
    tables: dict[str, str] = {}
    parts: list[str] = []
    for token in re.split(r"(\{[^}]*\}|\[|\])", pattern):
        if token.startswith("{"):
            name, _, table = token[1:-1].partition(":")
            tables[name] = table or name
            options = sorted((_plain(word) for word in TABLES[tables[name]]), key=len, reverse=True)
            parts.append(f"(?P<{name}>{'|'.join(map(re.escape, options))})")
        else:
            parts.append({"[": "(?:", "]": ")?"}.get(token, re.escape(token)))
    return re.compile("".join(parts)), tables


def _scene(rule: Rule, tables: dict[str, str], match: re.Match[str], text: str) -> Scene:
    slots = dict(rule.fixed)
    for name, table in tables.items():
        word = match.group(name)
        if word is not None:
            slots[name] = {_plain(key): value for key, value in TABLES[table].items()}[word]
    return Scene(rule.kind, slots, rule.focus, rule.category, text)


def _check(scene: Scene) -> None:
    for slot, (low, high) in _LIMITS.items():
        if slot in scene.slots:
            low, high = _FINGERS if scene.kind == "hand" else (low, high)
            if not low <= int(scene[slot]) <= high:
                raise SceneError(f"“{scene.text}”: {slot} must lie between {low} and {high}")
    same_look = scene.get("colour") == scene.get("colour2")
    if scene.get("thing2") and scene["thing"] == scene["thing2"] and same_look:
        raise SceneError(f"“{scene.text}” names the same thing twice; give them two colours")


def _wrong_value(scene: Scene, dice: Dice) -> str:
    value = scene[scene.focus]
    if value.isdigit():
        return _wrong_number(scene, int(value), dice)
    if scene.focus in ("relation", "support", "comparison"):
        return dice.choice(words.CONFUSIONS[value])
    special: dict[str, Callable[[], tuple[str, ...]]] = {
        "presence": lambda: ("yes", "no"),
        "door": lambda: _other_paint(scene),
        "roof_colour": lambda: _other_paint(scene),
        "wheels": lambda: _other_paint(scene),
        "sail": lambda: _other_paint(scene),
    }
    options = special.get(scene.focus, lambda: tuple(dict.fromkeys(TABLES[scene.focus].values())))()
    return dice.choice([option for option in options if option != value])


def _other_paint(scene: Scene) -> tuple[str, ...]:
    return tuple(colour for colour in _PAINT if colour != scene.get("colour"))


def _wrong_number(scene: Scene, number: int, dice: Dice) -> str:
    low, high = _FINGERS if scene.kind == "hand" else _LIMITS[scene.focus]
    near = [n for n in (number - 1, number + 1) if low <= n <= high]
    far = [n for n in (number - 2, number + 2) if low <= n <= high]
    return str(dice.choice(far if far and dice.unit() < 0.3 else near))
