"""Reading JSON that somebody else wrote: whatever is wrong with it is one kind of error."""

from __future__ import annotations

import json
from typing import Any


class NotJsonError(ValueError):
    """The text is no JSON that can be trusted; the message says why, in a few words."""


def parse_json(text: str | bytes, *, nan: bool = False) -> Any:
    """The value of a JSON text.

    Raises NotJsonError for what is not UTF-8 or not JSON, for a key that an object has twice (the
    parser would keep the last one, silently), for nesting that no file of ours has, for whole
    numbers of thousands of digits, and for NaN and Infinity unless ``nan`` allows them.
    """
    try:
        return json.loads(
            text, object_pairs_hook=_unique, parse_constant=None if nan else _constant
        )
    except json.JSONDecodeError as error:
        raise NotJsonError(f"line {error.lineno}, column {error.colno}: {error.msg}") from error
    except UnicodeDecodeError as error:
        raise NotJsonError(f"not UTF-8 at byte {error.start}") from error
    except RecursionError as error:
        raise NotJsonError("nested too deeply") from error
    except NotJsonError:
        raise
    except ValueError as error:
        raise NotJsonError("a number has too many digits") from error


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise NotJsonError(f"the key {twice[:80]!r} stands twice in one object")
    return found


def _constant(name: str) -> Any:
    raise NotJsonError(f"{name} is no JSON number")
