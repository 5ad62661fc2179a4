"""What failed elsewhere is tested here: every case has a test that bears its number."""

from __future__ import annotations

import ast
from pathlib import Path

CASES = 49


def marked_cases() -> dict[int, list[str]]:
    """Numbers in ``field_case(…)`` marks, with the files that hold them."""
    found: dict[int, list[str]] = {}
    for path in sorted(Path(__file__).parent.rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr == "field_case"
            ):
                for argument in node.args:
                    if isinstance(argument, ast.Constant) and isinstance(argument.value, int):
                        found.setdefault(argument.value, []).append(path.name)
    return found


def test_no_case_is_without_a_test():
    found = marked_cases()
    assert [n for n in range(1, CASES + 1) if n not in found] == []
    assert set(found) <= set(range(1, CASES + 1))
