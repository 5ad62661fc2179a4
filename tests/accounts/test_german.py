"""Everything that an annotator meets is there in German, and the compiled catalogue is the written one."""

from __future__ import annotations

import gettext
import re
from pathlib import Path

import pytest
from django.conf import settings
from django.urls import reverse

FOLDER = Path(settings.LOCALE_PATHS[0]) / "de" / "LC_MESSAGES"
TEMPLATES = Path(settings.BASE_DIR) / "templates"
PAGES = [
    TEMPLATES / "base.html",
    *TEMPLATES.glob("[45]*.html"),
    *(TEMPLATES / "accounts").glob("*.html"),
    *(TEMPLATES / "components").glob("*.html"),
    *(
        TEMPLATES / "annotation" / f"{name}.html"
        for name in (
            "campaigns",
            "consent",
            "end",
            "guideline",
            "join",
            "judge",
            "judge_dialogs",
            "judge_ends",
            "judge_words",
            "me",
            "stop",
        )
    ),
]
PLACES = re.compile(r"\{\w+\}|%\(\w+\)s")


def written() -> dict[str, str]:
    """The catalogue's source, by message."""
    text = (FOLDER / "django.po").read_text()
    pairs = re.findall(r'^msgid "(.+)"\nmsgstr "(.+)"$', text, re.MULTILINE)
    return {key.replace('\\"', '"'): value.replace('\\"', '"') for key, value in pairs}


def asked() -> set[str]:
    """What the templates ask to be translated, as Django looks it up."""
    found = set()
    for page in PAGES:
        for double, single in re.findall(
            r"""\{% translate (?:"([^"]*)"|'([^']*)')""", page.read_text()
        ):
            found.add((double or single).replace("%", "%%"))
    return found


def test_no_message_of_an_annotators_page_is_missing():
    assert asked() - set(written()) == set()


def test_places_for_values_are_kept():
    broken = {
        key
        for key, value in written().items()
        if sorted(PLACES.findall(key)) != sorted(PLACES.findall(value))
    }
    assert broken == set()


def test_no_translation_can_end_an_attribute():
    """Translations stand inside HTML attributes: a straight quotation mark would close them."""
    assert [value for value in written().values() if '"' in value or "<" in value] == []


def test_the_compiled_catalogue_is_the_written_one():
    with (FOLDER / "django.mo").open("rb") as file:
        compiled = gettext.GNUTranslations(file)
    different = {key for key, value in written().items() if compiled.gettext(key) != value}
    assert different == set(), "run: msgfmt -o django.mo django.po"


@pytest.mark.django_db
def test_a_browser_that_asks_for_german_gets_it(client):
    page = client.get(reverse("accounts:login"), headers={"accept-language": "de"})
    words = page.content.decode()
    assert '<html lang="de"' in words
    assert "Anmelden" in words
    assert 'lang="en"' in client.get(reverse("accounts:login")).content.decode()
