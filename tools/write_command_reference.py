"""Write docs/reference/commands.md from the commands' own help (``make docs`` runs it)."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "reference" / "commands.md"
DJANGO_OPTIONS = {
    "--version", "--verbosity", "--settings", "--pythonpath", "--traceback", "--no-color",
    "--force-color", "--skip-checks", "--help",
}  # fmt: skip


def option_rows(parser: argparse.ArgumentParser) -> list[str]:
    """One table row for each argument that is the command's own."""
    rows = []
    for action in parser._actions:
        names = action.option_strings or [action.metavar or action.dest]
        if set(names) & DJANGO_OPTIONS:
            continue
        shown = ", ".join(f"`{name}`" for name in map(str, names))
        if action.choices:
            shown += " " + " \\| ".join(f"`{choice}`" for choice in action.choices)
        text = parser._get_formatter()._expand_help(action) if action.help else ""
        text = " ".join(text.split()).replace("|", "\\|")
        rows.append(f"| {shown} | {text} |")
    return rows


def reference() -> str:
    """The whole page."""
    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "croc_annotate.settings")
    sys.path.insert(0, str(ROOT))
    django.setup()
    from django.core.management import get_commands, load_command_class

    ours = {
        name: app
        for name, app in sorted(get_commands().items())
        if isinstance(app, str) and app.startswith(("croc_annotate", "generation"))
    }
    parts = [
        "# Commands\n\n<!-- Written by tools/write_command_reference.py: edit the help texts. -->\n",
        "All run as `python manage.py NAME`. Exit code 0: done; 1: did not work, the reason is on "
        "stderr; 2: wrong call. With `--json`, stdout holds one JSON document and nothing else.\n",
    ]
    for name, app in ours.items():
        command = load_command_class(app, name)
        parser = command.create_parser("manage.py", name)
        manual = command.help.strip()
        shown = f"```text\n{manual}\n```" if "\n" in manual else manual
        parts.append(f"## {name}\n\n{shown}\n")
        rows = option_rows(parser)
        if rows:
            parts.append("| argument | meaning |\n|---|---|\n" + "\n".join(rows) + "\n")
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(reference(), encoding="utf-8")
    print(f"Written: {PAGE.relative_to(ROOT)}")
