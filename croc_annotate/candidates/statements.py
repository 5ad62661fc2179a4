"""The three statements that each image costs, as fixed texts.

A worker shares its interpreter with the thread that drives the device. Building and compiling
these as querysets takes it longer than PostgreSQL takes to answer them, so their text is fixed
and the server keeps their plans (`croc_annotate.lib.prepared`).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from django.utils import timezone

from croc_annotate.candidates.attempts import EARLIER
from croc_annotate.lib.prepared import database, numbered, prepares, statement_cursor

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from django.db.backends.utils import CursorWrapper

    from croc_annotate.candidates.storage import FileNames
    from croc_annotate.lib.imagefiles import ImageFacts

_ANNOUNCE = """
    UPDATE candidates_candidate SET image = %s, display = %s, preview = %s
    WHERE id = %s AND state <> 'rendered' AND image = ''
"""
_CLAIMED = " AND claimed_by = %s"
_OF_ITS_TEXT = """
    SELECT id, phash FROM candidates_candidate
    WHERE pair_id = %s AND side = %s AND state = 'rendered' AND phash IS NOT NULL AND id <> %s
    ORDER BY id
"""
_SETTLE = """
    UPDATE candidates_candidate SET
        state = 'rendered', sha256 = %s, phash = %s, width = %s, height = %s, provenance = %s,
        near_duplicate_of_id = %s, rendered_at = %s, error = '', claimed_by = '',
        claimed_until = NULL, attempts = attempts + COALESCE((earlier), 0)
    WHERE id = %s AND state <> 'rendered' AND image = %s
"""
# From the provenance as it was: see `croc_annotate.candidates.attempts`.
_EARLIER = {
    "postgresql": f"(provenance->>'{EARLIER}')::integer",
    "sqlite": f"json_extract(provenance, '$.{EARLIER}')",
}


def announce(pk: int, names: FileNames, claim: str) -> bool:
    """Write the coming files' names into a row that has none and, with a claim, is held by it."""
    values = [names.image, names.display, names.preview, pk]
    if claim:
        return _done(_ANNOUNCE + _CLAIMED, [*values, claim]) == 1
    return _done(_ANNOUNCE, values) == 1


def hashes_of_text(*, pair_id: int, side: str, but: int) -> Sequence[tuple[int, int]]:
    """Key and perceptual hash (as stored) of each image of a text, but one; the oldest first."""
    return list(_run(_OF_ITS_TEXT, [pair_id, side, but]).fetchall())


def settle(
    pk: int,
    names: FileNames,
    facts: ImageFacts,
    *,
    phash: int,
    provenance: Mapping[str, object],
    near_duplicate_of: int | None,
) -> bool:
    """Make a row rendered, if these are still the names that it announces."""
    now = database().ops.adapt_datetimefield_value(timezone.now())
    told = json.dumps(provenance)
    values = [facts.sha256, phash, facts.width, facts.height, told, near_duplicate_of, now]
    sql = _SETTLE.replace("(earlier)", _EARLIER[database().vendor])
    return _done(sql, [*values, pk, names.image]) == 1


def _done(sql: str, values: Sequence[Any]) -> int:
    return int(_run(sql, values).rowcount)


def _run(sql: str, values: Sequence[Any]) -> CursorWrapper:
    db = database()
    cursor = statement_cursor(db)
    cursor.execute(numbered(sql) if prepares(db) else sql, values)
    return cursor
