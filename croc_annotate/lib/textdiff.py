"""Which words of two texts differ.

Words are compared, not letters: a person who reads "three" beside "thirteen" wants the whole
word marked. Scripts without spaces (Chinese, Japanese, Thai …) are compared sign by sign.
"""

from __future__ import annotations

import unicodedata
from difflib import SequenceMatcher
from typing import NamedTuple

Span = tuple[int, int]

# First and last code points of scripts that are written without spaces between words.
_UNSPACED = ((0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF), (0x2E80, 0x9FFF),
             (0xF900, 0xFAFF), (0xFF66, 0xFF9D), (0x20000, 0x3FFFF))  # fmt: skip
# They join what stands around them: emoji sequences, variation selectors, apostrophes, hyphens.
_GLUE = {"\u200c", "\u200d", "\ufe0e", "\ufe0f"}
_INNER = {"'", "’", "-", "‐", "‑"}


class _Token(NamedTuple):
    start: int
    end: int
    text: str


def _kind(char: str) -> str:
    """``space``, ``mark`` (belongs to the sign before it), ``word``, or ``sign`` (alone)."""
    if char.isspace():
        return "space"
    category = unicodedata.category(char)
    if category[0] == "M" or category == "Sk" or char in _GLUE:
        return "mark"
    if any(first <= ord(char) <= last for first, last in _UNSPACED):
        return "sign"
    return "word" if category[0] in "LN" else "sign"


def _joins(text: str, index: int, previous: str, kind: str) -> bool:
    """True if the character at ``index`` belongs to the token before it."""
    if kind == "mark":
        return previous != "space"
    if index and text[index - 1] == "\u200d":
        return True
    if previous != "word":
        return False
    if kind == "word":
        return True
    following = text[index + 1] if index + 1 < len(text) else " "
    return text[index] in _INNER and _kind(following) == "word"


def _tokens(text: str) -> list[_Token]:
    starts: list[int] = []
    ends: list[int] = []
    previous = "space"
    for index, char in enumerate(text):
        kind = _kind(char)
        if kind == "space":
            previous = kind
        elif starts and _joins(text, index, previous, kind):
            ends[-1] = index + 1
            # A mark or an inner apostrophe leaves the token what it was.
            previous = "word" if previous == "word" or kind == "word" else "sign"
        else:
            starts.append(index)
            ends.append(index + 1)
            previous = "sign" if kind == "mark" else kind
    return [_Token(start, end, text[start:end]) for start, end in zip(starts, ends, strict=True)]


def _merged(text: str, tokens: list[_Token]) -> list[Span]:
    """Spans of ``tokens``, neighbours with only white space between them joined."""
    spans: list[Span] = []
    for token in tokens:
        if spans and not text[spans[-1][1] : token.start].strip():
            spans[-1] = (spans[-1][0], token.end)
        else:
            spans.append((token.start, token.end))
    return spans


def differing_spans(a: str, b: str) -> tuple[list[Span], list[Span]]:
    """Where ``a`` and ``b`` differ: lists of (start, end) in code points, one for each text.

    A word that only one text has leaves the other's list without a span for it.
    """
    left, right = _tokens(a), _tokens(b)
    matcher = SequenceMatcher(
        None, [token.text for token in left], [token.text for token in right], autojunk=False
    )
    only_left: list[_Token] = []
    only_right: list[_Token] = []
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        if tag != "equal":
            only_left += left[i1:i2]
            only_right += right[j1:j2]
    return _merged(a, only_left), _merged(b, only_right)


def utf16_spans(text: str, spans: list[Span]) -> list[list[int]]:
    """``spans`` in UTF-16 code units, in which JavaScript counts: an emoji is two."""
    units = [0]
    for char in text:
        units.append(units[-1] + (2 if ord(char) > 0xFFFF else 1))
    return [[units[start], units[end]] for start, end in spans]


def text_direction(text: str) -> str:
    """``rtl`` or ``ltr`` by the first strong character; ``auto`` when there is none."""
    for char in text:
        bidi = unicodedata.bidirectional(char)
        if bidi in {"R", "AL"}:
            return "rtl"
        if bidi == "L":
            return "ltr"
    return "auto"
