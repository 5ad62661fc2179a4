"""What a judging page sends about an item, and what it is told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import uuid
    from datetime import datetime


@dataclass(frozen=True, slots=True)
class Answer:
    """What a judging page sends about one item."""

    client_key: uuid.UUID
    item_key: str
    verdict: str
    assignment: uuid.UUID | None = None
    active_ms: int | None = None
    mode: str = "focus"
    reason: str = ""
    remark: str = ""
    source: str = "web"
    answered_at: datetime | None = None


@dataclass(slots=True)
class Result:
    """What became of one answer: stored, duplicate, conflict or refused."""

    client_key: uuid.UUID
    status: str
    message: str = ""
    correct: bool | None = None
    explanation: str = ""
