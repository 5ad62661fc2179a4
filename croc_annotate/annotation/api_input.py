"""Reading what a judging page sends: one bad answer never costs the others."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from typing import Any

from rest_framework.exceptions import ValidationError

from croc_annotate.annotation.answer_shapes import Answer
from croc_annotate.annotation.models import Mode, Verdict

MOST_ANSWERS = 50
MOST_ITEMS = 60


def read_count(data: Any, name: str = "n", *, least: int = 1) -> int:
    """How many items are wanted, ``least`` when it is left out."""
    count = data.get(name, least) if isinstance(data, dict) else None
    if not isinstance(count, int) or isinstance(count, bool) or not least <= count <= MOST_ITEMS:
        raise ValidationError({name: [f"Give a number from {least} to {MOST_ITEMS}."]})
    return count


def read_list(data: Any, name: str, most: int) -> list[Any]:
    """A list under ``name`` with at most ``most`` entries."""
    rows = data.get(name) if isinstance(data, dict) else None
    if not isinstance(rows, list) or len(rows) > most:
        raise ValidationError({name: [f"Give a list of at most {most}."]})
    return rows


def read_uuid(value: Any) -> uuid.UUID | None:
    """A UUID; None for anything else."""
    try:
        return uuid.UUID(value)
    except (ValueError, TypeError, AttributeError):
        return None


def read_uuids(data: Any, name: str, most: int) -> list[uuid.UUID]:
    """The UUIDs of a list; what is none is left out: it can name nothing of ours."""
    return [key for key in map(read_uuid, read_list(data, name, most)) if key is not None]


def read_text(data: Any, name: str, most: int = 1000) -> str:
    """A text, empty when it is left out, without NUL (PostgreSQL refuses it)."""
    value = data.get(name, "") if isinstance(data, dict) else ""
    return value.replace("\x00", "")[:most] if isinstance(value, str) else ""


def read_answer(raw: Any) -> Answer | str:
    """One answer, or the sentence that says what is wrong with it."""
    if not isinstance(raw, dict):
        return "An answer is an object."
    key = read_uuid(raw.get("client_key"))
    if key is None:
        return "client_key: give a UUID."
    if raw.get("verdict") not in Verdict.values:
        return "verdict: accept, reject or unsure."
    item = raw.get("item")
    if not isinstance(item, str) or not 0 < len(item) <= 32:
        return "item: give the key of the item that was on the screen."
    mode = raw.get("mode")
    return Answer(
        client_key=key,
        item_key=item.replace("\x00", ""),
        verdict=str(raw["verdict"]),
        assignment=read_uuid(raw.get("assignment")),
        active_ms=_milliseconds(raw.get("active_ms")),
        mode=str(mode) if mode in Mode.values else Mode.FOCUS,
        reason=read_text(raw, "reason", 40),
        remark=read_text(raw, "remark"),
        answered_at=_time(raw.get("answered_at")),
    )


def _milliseconds(value: Any) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e12:
        return None
    return round(value)


def _time(value: Any) -> datetime | None:
    try:
        time = datetime.fromisoformat(value)
    except (ValueError, TypeError):
        return None
    return time if time.tzinfo else time.replace(tzinfo=UTC)
