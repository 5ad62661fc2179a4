"""What the documentation says is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.core.management import get_commands, load_command_class

ROOT = Path(__file__).resolve().parents[1]
PAGES = [*sorted((ROOT / "docs").rglob("*.md")), *sorted(ROOT.glob("*.md"))]
OURS = {
    name: app
    for name, app in get_commands().items()
    if isinstance(app, str) and app.startswith(("croc_annotate", "generation"))
}


def names(pages: list[Path]) -> list[str]:
    return [str(page.relative_to(ROOT)) for page in pages]


def test_every_setting_is_explained():
    source = (ROOT / "croc_annotate" / "settings.py").read_text()
    read = set(re.findall(r"env\.\w+\(\s*\"([A-Z0-9_]+)\"", source))
    explained = set(re.findall(r"`([A-Z0-9_]+)`", (ROOT / "docs/operations.md").read_text()))
    assert read - explained == set()


@pytest.mark.parametrize("page", PAGES, ids=names(PAGES))
def test_links_lead_somewhere(page: Path):
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    targets = [t.split("#")[0] for t in re.findall(r"\]\(([^)\s]+)\)", text)]
    local = [t for t in targets if t and not t.startswith(("http:", "https:", "mailto:"))]
    assert [t for t in local if not (page.parent / t).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=names(PAGES))
def test_commands_in_the_text_exist_with_their_options(page: Path):
    text = page.read_text().replace("\\\n", " ")
    for name, rest in re.findall(r"manage\.py ([a-z_]+)([^\n`&|;#]*)", text):
        assert name in get_commands(), f"{page.name}: manage.py {name}"
        if name not in OURS:
            continue
        parser = load_command_class(OURS[name], name).create_parser("manage.py", name)
        known = {option for action in parser._actions for option in action.option_strings}
        for option in re.findall(r"(?<!\S)(--[a-z-]+)", rest):
            assert option in known, f"{page.name}: {name} {option}"


def test_make_targets_in_the_text_exist():
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z-]+):", makefile, flags=re.MULTILINE))
    for page in PAGES:
        used = set(re.findall(r"`make ([a-z-]+)", page.read_text()))
        assert used <= targets, page


def test_every_command_of_ours_has_a_manual():
    for name, app in OURS.items():
        command = load_command_class(app, name)
        assert len(command.help) > 60, f"{name}: its --help is no manual"


def test_nothing_names_the_folder_beside_the_checkout():
    import subprocess

    found = subprocess.run(
        ["git", "grep", "-l", r"\.\./shared"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.split()
    assert [name for name in found if not name.startswith("tests/")] == []


def test_the_command_reference_is_what_the_commands_say():
    import sys

    sys.path.insert(0, str(ROOT / "tools"))
    try:
        from write_command_reference import PAGE, reference
    finally:
        sys.path.pop(0)
    assert PAGE.read_text() == reference(), "run `make docs`"
