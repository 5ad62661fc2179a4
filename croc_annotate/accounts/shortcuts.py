"""The keys of the judging page: what can be done, by which key, and which tables of keys are valid."""

from __future__ import annotations

from typing import Final

DEFAULTS: Final[dict[str, str]] = {
    "accept": "j",
    "reject": "f",
    "unsure": "space",
    "undo": "z",
    "skip": "s",
    "flag": "r",
    "guide": "g",
    "zoom_in": "+",
    "zoom_out": "-",
    "zoom_reset": "0",
    "keys": "k",
}
# Keys that a browser, a dialog or the page itself needs.
RESERVED: Final = frozenset({"tab", "enter", "escape", "shift", "control", "alt", "meta"})
NAMED: Final = frozenset(
    {"space", "backspace", "delete", "arrowleft", "arrowright", "arrowup", "arrowdown"}
)


def normalise_key(key: str) -> str:
    """One spelling for a key: lower case, ``space`` for the space bar."""
    return "space" if key == " " else key.strip().lower()


def shortcut_problems(shortcuts: dict[str, str]) -> list[str]:
    """Reasons why a table of keys cannot be used, in words; empty when it can."""
    problems = [f"There is no action “{name}”." for name in shortcuts if name not in DEFAULTS]
    taken: dict[str, str] = {}
    for action, key in {**DEFAULTS, **shortcuts}.items():
        if key in RESERVED or not (len(key) == 1 or key in NAMED):
            problems.append(f"“{key}” cannot be a shortcut.")
        elif key in taken:
            problems.append(f"“{key}” is used twice: {taken[key]} and {action}.")
        taken[key] = action
    return problems


def merged_shortcuts(saved: dict[str, str]) -> dict[str, str]:
    """The keys in force: the defaults with a person's own changes; defaults alone if those clash."""
    changes = {name: key for name, key in saved.items() if name in DEFAULTS}
    return dict(DEFAULTS) if shortcut_problems(changes) else {**DEFAULTS, **changes}
