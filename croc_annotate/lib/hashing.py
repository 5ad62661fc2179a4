"""Hashes that name bytes, texts and people: SHA-256 throughout."""

from __future__ import annotations

import hashlib
import hmac
import json
from typing import Any

# Made once: making it takes as long as writing a short row with it.
_CANONICAL = json.JSONEncoder(
    sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False
)


def sha256_bytes(data: bytes) -> str:
    """SHA-256 of ``data`` as 64 hex digits."""
    return hashlib.sha256(data).hexdigest()


def sha256_text(text: str) -> str:
    """SHA-256 of the UTF-8 bytes of ``text``, exactly as written (no normalisation)."""
    return sha256_bytes(text.encode("utf-8"))


def canonical_json(value: Any) -> str:
    """JSON with sorted keys and no free choice of white space, so that equal values hash equally.

    Raises ``ValueError`` on NaN and infinities: they are not JSON.
    """
    return _CANONICAL.encode(value)


def keyed_pseudonym(key: bytes, value: str, *, prefix: str = "a") -> str:
    """A stable name for ``value`` that nobody without ``key`` can link back (HMAC-SHA-256, 64 bits)."""
    digest = hmac.new(key, value.encode("utf-8"), hashlib.sha256).hexdigest()
    return f"{prefix}{digest[:16]}"


def stable_unit(*parts: object) -> float:
    """A number in [0, 1) fixed by ``parts``, equal on every machine and Python version."""
    text = "\x1f".join(str(part) for part in parts)
    number = int.from_bytes(hashlib.sha256(text.encode("utf-8")).digest()[:8], "big")
    return (number >> 11) / (1 << 53)
