"""The two statements that each image costs, as fixed texts.

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

    from django.db.backends.base.base import BaseDatabaseWrapper
    from django.db.backends.utils import CursorWrapper

    from croc_annotate.candidates.models import Candidate
    from croc_annotate.candidates.storage import FileNames
    from croc_annotate.lib.imagefiles import ImageFacts

_ANNOUNCE = """
    UPDATE candidates_candidate SET image = %s, display = %s, preview = %s
    WHERE id = %s AND state <> 'rendered' AND image = ''
"""
_CLAIMED = " AND claimed_by = %s"
_SETTLE = """
    UPDATE candidates_candidate SET
        state = 'rendered', sha256 = %s, phash = %s, width = %s, height = %s, provenance = %s,
        rendered_at = %s, error = '', claimed_by = '', claimed_until = NULL,
        near_duplicate_of_id = (
            SELECT id FROM candidates_candidate
            WHERE pair_id = %s AND side = %s AND state = 'rendered' AND id <> %s AND (bits) <= %s
            ORDER BY id LIMIT 1
        ),
        attempts = attempts + COALESCE((earlier), 0)
    WHERE id = %s AND state <> 'rendered' AND image = %s
"""
# What the databases say in words of their own: in how many bits two hashes differ (unknown of an
# image without one), and what `croc_annotate.candidates.attempts` keeps in the provenance.
_WORDS = {
    "postgresql": {
        "(bits)": "bit_count((phash # %s)::bit(64))",
        "(earlier)": f"(provenance->>'{EARLIER}')::integer",
    },
    "sqlite": {
        "(bits)": "bits_apart(phash, %s)",
        "(earlier)": f"json_extract(provenance, '$.{EARLIER}')",
    },
}


def announce(pk: int, names: FileNames, claim: str) -> bool:
    """Write the coming files' names into a row that has none and, with a claim, is held by it."""
    values = [names.image, names.display, names.preview, pk]
    if claim:
        return _done(_ANNOUNCE + _CLAIMED, [*values, claim]) == 1
    return _done(_ANNOUNCE, values) == 1


def settle(
    candidate: Candidate,
    names: FileNames,
    facts: ImageFacts,
    *,
    phash: int,
    provenance: Mapping[str, object],
    near: int,
) -> bool:
    """Make a row rendered, if these are still the names that it announces.

    The first image of the same text that differs in at most ``near`` bits is noted.
    """
    sql = _SETTLE
    for mark, words in _WORDS[database().vendor].items():
        sql = sql.replace(mark, words)
    now = database().ops.adapt_datetimefield_value(timezone.now())
    values = [facts.sha256, phash, facts.width, facts.height, json.dumps(provenance), now]
    values += [candidate.pair_id, candidate.side, candidate.pk, phash, near]
    return _done(sql, [*values, candidate.pk, names.image]) == 1


def teach_sqlite(connection: BaseDatabaseWrapper, **_: object) -> None:
    """Give a new SQLite connection the function that PostgreSQL has as bit_count."""
    if connection.vendor == "sqlite":
        connection.connection.create_function("bits_apart", 2, _bits_apart, deterministic=True)


def _bits_apart(first: int | None, second: int | None) -> int | None:
    if first is None or second is None:
        return None
    return ((first ^ second) % 2**64).bit_count()


def _done(sql: str, values: Sequence[Any]) -> int:
    return int(_run(sql, values).rowcount)


def _run(sql: str, values: Sequence[Any]) -> CursorWrapper:
    db = database()
    cursor = statement_cursor(db)
    cursor.execute(numbered(sql) if prepares(db) else sql, values)
    return cursor
