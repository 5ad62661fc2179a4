"""Texts cut where they differ, for pages that mark the differing words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from croc_annotate.lib.textdiff import differing_spans

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True)
class Piece:
    """A stretch of a text, marked or not."""

    text: str
    marked: bool


def pieces(text: str, spans: Sequence[tuple[int, int]]) -> list[Piece]:
    """Cut the text at the spans; joined, the pieces are the text again."""
    found: list[Piece] = []
    done = 0
    for start, end in spans:
        found += [Piece(text[done:start], marked=False), Piece(text[start:end], marked=True)]
        done = end
    found.append(Piece(text[done:], marked=False))
    return [piece for piece in found if piece.text]


def marked_pair(a: str, b: str) -> tuple[list[Piece], list[Piece]]:
    """Both texts, their differing words marked."""
    spans_a, spans_b = differing_spans(a, b)
    return pieces(a, spans_a), pieces(b, spans_b)
