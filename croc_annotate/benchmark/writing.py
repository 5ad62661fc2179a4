"""The leaderboard of a release in each format that it can be had in."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from croc_annotate.benchmark.board import board_json
from croc_annotate.benchmark.render import csv_text, latex, text

if TYPE_CHECKING:
    from croc_annotate.benchmark.board import Board
    from croc_annotate.releases.models import Release

CONTENT_TYPES: Final = {
    "csv": "text/csv; charset=utf-8",
    "json": "application/json",
    "latex": "application/x-tex; charset=utf-8",
    "png": "image/png",
    "pdf": "application/pdf",
}


NO_HUMAN: Final = "no vote on these images was kept out of their selection, or it is not scored yet"


def absent_rows(board: Board) -> dict[str, str]:
    """Reference rows that are not on the board, with the reason."""
    there = {entry.name for entry in board.entries}
    reasons = {"human": NO_HUMAN, "random": "run_benchmark --metric random was not run"}
    return {name: reason for name, reason in reasons.items() if name not in there}


def board_document(release: Release, board: Board) -> dict[str, object]:
    """The JSON document: the release, then the board."""
    return {
        "release": release.name,
        "version": release.version,
        "release_sha256": release.sha256,
        "withdrawn": release.is_withdrawn,
        "absent": absent_rows(board),
        **board_json(board),
    }


def write_board(release: Release, board: Board, form: str) -> bytes:
    """The board as table, csv, json, latex, png or pdf."""
    title = str(release)
    if form == "json":
        document = board_document(release, board)
        return json.dumps(document, ensure_ascii=False, allow_nan=False, indent=1).encode()
    if form in {"png", "pdf"}:
        from croc_annotate.benchmark import figures  # matplotlib takes a second to import

        return figures.draw(board, title=title, form=form)
    if form == "table":
        absent = [f"No {name} row: {reason}.\n" for name, reason in absent_rows(board).items()]
        return (text(board, title=title) + "".join(absent)).encode()
    writers = {"csv": csv_text, "latex": latex}
    return writers[form](board, title=title).encode()
