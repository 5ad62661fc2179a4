"""Which words are marked."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from croc_annotate.lib.textdiff import differing_spans, text_direction, utf16_spans


def marked(a: str, b: str) -> tuple[list[str], list[str]]:
    left, right = differing_spans(a, b)
    return [a[s:e] for s, e in left], [b[s:e] for s, e in right]


@pytest.mark.parametrize(
    ("a", "b", "left", "right"),
    [
        ("three red apples", "four red apples", ["three"], ["four"]),
        ("a table with a vase", "a table without a vase", ["with"], ["without"]),
        ("a cat left of a dog", "a dog left of a cat", ["cat", "dog"], ["dog", "cat"]),
        ("a big red ball.", "a ball.", ["big red"], []),
        ("thirteen cats", "three cats", ["thirteen"], ["three"]),
        ("the dog's bone", "the dogs bone", ["dog's"], ["dogs"]),
        ("“two” cats, here", "“six” cats, here", ["two"], ["six"]),
        ("same", "same", [], []),
        ("", "new", [], ["new"]),
        ("一只猫在桌子上", "两只猫在桌子上", ["一"], ["两"]),
        ("שלוש חתולות על", "ארבע חתולות על", ["שלוש"], ["ארבע"]),
        ("तीन सेब मेज़ पर", "चार सेब मेज़ पर", ["तीन"], ["चार"]),
        ("a 👍🏽 sign", "a 👎🏽 sign", ["👍🏽"], ["👎🏽"]),
        ("a 👨‍👩‍👧 here", "a 👨‍👩‍👦 here", ["👨‍👩‍👧"], ["👨‍👩‍👦"]),
        ("a cafe\u0301 here", "a bar here", ["cafe\u0301"], ["bar"]),
        ("a well-known man", "a well-paid man", ["well-known"], ["well-paid"]),
    ],
)
def test_whole_words_are_marked(a, b, left, right):
    assert marked(a, b) == (left, right)


@given(st.text(max_size=40), st.text(max_size=40))
def test_spans_are_inside_ordered_and_what_is_left_is_equal(a, b):
    for text, spans in zip((a, b), differing_spans(a, b), strict=True):
        ends = [0]
        for start, end in spans:
            assert ends[-1] <= start < end <= len(text)
            ends.append(end)

    def rest(text, spans):
        for start, end in reversed(spans):
            text = text[:start] + text[end:]
        return text.split()

    left, right = differing_spans(a, b)
    assert "".join(rest(a, left)) == "".join(rest(b, right))


@given(st.text(max_size=40), st.text(max_size=40))
def test_units_of_javascript(a, b):
    spans, _ = differing_spans(a, b)
    raw = a.encode("utf-16-le", "surrogatepass")
    for (start, end), (first, last) in zip(spans, utf16_spans(a, spans), strict=True):
        cut = raw[2 * first : 2 * last].decode("utf-16-le", "surrogatepass")
        assert cut == a[start:end]


@pytest.mark.parametrize(
    ("text", "direction"),
    [("three cats", "ltr"), ("שלוש", "rtl"), ("3 قطط", "rtl"), ("123 …", "auto"), ("", "auto")],
)
def test_direction(text, direction):
    assert text_direction(text) == direction
