"""Fifteen traps of metrics are known; each has a test whose words begin with its number."""

from __future__ import annotations

import ast
import re
from pathlib import Path

TRAPS = range(1, 16)


def named() -> dict[int, list[str]]:
    """Number → the tests (or modules of tests) whose docstring begins with "Trap N"."""
    found: dict[int, list[str]] = {}
    for path in sorted(Path(__file__).parent.rglob("test_*.py")):
        tree = ast.parse(path.read_text())
        nodes = [tree, *(n for n in tree.body if isinstance(n, ast.FunctionDef))]
        for node in nodes:
            name = getattr(node, "name", path.stem)
            words = re.match(r"Traps? (\d+)(?: and (\d+))?", ast.get_docstring(node) or "")
            if words and name.startswith("test_"):
                for number in filter(None, words.groups()):
                    found.setdefault(int(number), []).append(f"{path.name}: {name}")
    return found


def test_no_trap_is_without_a_test():
    found = named()
    assert [n for n in TRAPS if n not in found] == []
    assert set(found) <= set(TRAPS)
