"""The German interface: nothing is missing, nothing is broken, and pages come out in German."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import polib
import pytest
from django.conf import settings
from django.core.cache import cache
from django.test import Client
from django.urls import reverse

from tests import test_role_matrix as matrix
from tests.benchmark.world import public_leaderboard
from tests.factories import make_user

ROOT = Path(settings.BASE_DIR)
FOLDER = Path(settings.LOCALE_PATHS[0]) / "de" / "LC_MESSAGES"
PLACES = re.compile(r"%\(\w+\)[-+ #0]?[\d.]*[a-z]|%%|%[sdr](?!\w)|\{\w*\}|</?\w[^>]*>|&\w+;")
COLLECT = (
    *("makemessages", "-l", "de", "--no-location", "--no-wrap", "--no-obsolete"),
    *("--ignore", ".venv/*", "--ignore", "tests/*", "--ignore", "tools/*", "--ignore", ".cache/*"),
)
# Numbers that scripts read.
READ_BY_SCRIPTS = {"data-value", "value", "max", "min", "step", "width", "height"}
NUMBER = re.compile(r"[-−]?[\d.,]+$")
# No words of the interface: the title of the campaign here, the version of a missing guideline.
NAMES = {"Main", "none"}

world = matrix.world  # one of each thing that has an address


@pytest.fixture(scope="module")
def german() -> polib.POFile:
    return polib.pofile(str(FOLDER / "django.po"))


def shown(entry: polib.POEntry) -> list[str]:
    """What a message says in German: one text, or one for each number."""
    return list(entry.msgstr_plural.values()) if entry.msgid_plural else [entry.msgstr]


# --- the catalogue -------------------------------------------------------------------------------
@pytest.mark.skipif(shutil.which("xgettext") is None, reason="no gettext tools (xgettext) here")
def test_every_message_of_the_sources_is_translated(tmp_path):
    """Collected anew from a copy, the catalogue gains no message that has no German text."""
    for name in ("croc_annotate", "generation", "templates"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "manage.py", tmp_path)
    subprocess.run(
        [sys.executable, "manage.py", *COLLECT],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(tmp_path), "DEBUG": "1"},
        check=True,
        capture_output=True,
    )
    collected = polib.pofile(str(tmp_path / (FOLDER / "django.po").relative_to(ROOT)))
    missing = [entry.msgid for entry in collected if not entry.translated()]
    assert missing == [], f"run: manage.py {' '.join(COLLECT)}, translate, then compilemessages"


def test_no_message_is_empty_or_only_guessed(german):
    assert [e.msgid for e in german if e.fuzzy or not all(shown(e))] == []
    assert len(german) > 1000


def test_plural_messages_have_both_forms(german):
    plural = [e for e in german if e.msgid_plural]
    assert plural
    assert [e.msgid for e in plural if sorted(e.msgstr_plural) != [0, 1]] == []
    assert [e.msgid for e in plural if len(set(shown(e))) == 1] == []


def test_places_for_values_and_tags_are_kept(german):
    broken = [
        text
        for entry in german
        for text in shown(entry)
        if sorted(PLACES.findall(entry.msgid)) != sorted(PLACES.findall(text))
    ]
    assert broken == []


def test_no_text_can_end_the_attribute_it_stands_in(german):
    broken = [t for e in german for t in shown(e) if set('"<>') & (set(t) - set(e.msgid))]
    assert broken == []


def test_ends_of_messages_are_kept(german):
    """A colon, an ellipsis or a question mark at the end tells what follows it."""
    broken = [
        text
        for entry in german
        for text in shown(entry)
        if entry.msgid.endswith((":", "…", "?")) != text.endswith((":", "…", "?"))
    ]
    assert broken == []


def test_the_compiled_catalogue_is_the_written_one(german):
    compiled = polib.mofile(str(FOLDER / "django.mo"))
    assert {e.msgid: shown(e) for e in compiled} == {e.msgid: shown(e) for e in german}, (
        "run: manage.py compilemessages"
    )


@pytest.mark.parametrize(
    ("english", "word"),
    [
        (r"\bcandidates?\b", "Kandidat"),
        (r"\bcampaigns?\b", "Kampagne"),
        (r"\breleases?\b", "Veröffentlichung"),
        (r"\bcontrast pairs?\b", "Kontrastpaar"),
        (r"\bvotes?\b", "[Ss]timm"),
        (r"\bset aside\b", "[Bb]eiseite"),
        (r"\bdisputed\b", "[Ss]trittig"),
        (r"\bmetrics?\b", "Metrik"),
        (r"\bgenerators?\b", "Generator"),
        (r"\bguidelines?\b", "Anleitung"),
        (r"\bconsent\b", "Einwilligung"),
        (r"\bgold\b", "Gold"),
    ],
)
def test_one_thing_has_one_word(german, english, word):
    """A reader who meets two words looks for two things."""
    # Options of commands and places for values keep their names.
    said = {e.msgid: re.sub(r"--?[\w-]+|%\(\w+\)", "", e.msgid) for e in german}
    concerned = [e for e in german if re.search(english, said[e.msgid], re.IGNORECASE)]
    assert concerned
    other = [e.msgid for e in concerned if not re.search(word, shown(e)[0])]
    assert other == []


# --- the pages -----------------------------------------------------------------------------------
class Reader(HTMLParser):
    """The texts of a page with those of its attributes, and the attributes that scripts read."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.read: list[tuple[str, str]] = []
        self.language = ""
        self._inside = ""
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self._inside = tag
        named = {name: value or "" for name, value in attrs}
        if tag == "html":
            self.language = named.get("lang", "")
        self.read += [i for i in named.items() if i[0] in READ_BY_SCRIPTS and NUMBER.match(i[1])]
        for name, value in named.items():
            said = name in {"aria-label", "title", "placeholder", "alt"}
            if said or (name.startswith("data-") and " " in value):
                self.texts.append(" ".join(value.split()))

    def handle_data(self, data):
        if self._inside not in {"script", "style"} and data.strip():
            self.texts.append(" ".join(data.split()))


def fetch(client: Client, url: str, language: str) -> Reader | None:
    """A page as a browser of that language gets it; None where the address gives no page."""
    reply = client.get(url, headers={"accept-language": language}, follow=True)
    content = reply.getvalue()  # to the end: a file that is sent is closed then
    if reply.status_code != 200 or "text/html" not in reply.headers["Content-Type"]:
        return None
    return Reader(content.decode())


def left_in_english(page: Reader, german: polib.POFile) -> set[str]:
    """The texts of a page for which a German one stands in the catalogue."""
    german_texts = {text.replace("%%", "%") for e in german for text in shown(e)}
    english = {e.msgid.replace("%%", "%") for e in german} - german_texts
    return english & set(page.texts) - NAMES


@pytest.fixture
def admin() -> Client:
    client = Client()
    client.force_login(make_user("admin"))
    return client


@pytest.fixture
def own_cache(settings):
    """A cache of this process: other test runs may empty a shared one."""
    settings.CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}
    cache.clear()


@pytest.mark.django_db
def test_the_log_in_page_speaks_german(client, german):
    page = fetch(client, reverse("accounts:login"), "de")
    assert page.language == "de"
    assert {"Anmelden", "Benutzername", "Passwort"} <= set(page.texts)
    assert left_in_english(page, german) == set()


@pytest.mark.django_db
def test_other_browsers_get_english(client):
    page = fetch(client, reverse("accounts:login"), "fr")
    assert page.language == "en"
    assert "Log in" in page.texts


@pytest.mark.django_db
def test_the_judging_page_and_its_scripts_words_are_german(world, admin, german):
    page = fetch(admin, reverse("annotation:judge", args=["main"]), "de")
    assert page.language == "de"
    buttons = {"Ja, annehmen", "Nein, ablehnen", "Nicht zu erkennen", "Auslassen…", "Melden…"}
    assert buttons <= {text.replace(" …", "…") for text in page.texts}
    # The words that scripts put in: data-… of judge_words.html.
    assert "Das nächste Bild wird geladen …" in page.texts
    assert left_in_english(page, german) == set()


@pytest.mark.django_db
def test_the_leaderboard_speaks_german(client, german, own_cache):
    public_leaderboard()
    page = fetch(client, reverse("benchmark:leaderboard"), "de")
    assert page.language == "de"
    assert {"Rangliste", "Text, vorwärts", "Bild, umgekehrt"} <= set(page.texts)
    assert left_in_english(page, german) == set()
    english = fetch(client, reverse("benchmark:leaderboard"), "en")
    assert page.read == english.read


def pages_of(world) -> list[str]:
    """The addresses that are called by GET, of every room."""
    called = [name for name, (method, _) in matrix.LINES.items() if method == "GET"]
    urls = [matrix.address(world, name) for name in called if name in matrix.NAMES]
    return [url for url in urls if "/api/" not in url and "logout" not in url]


@pytest.mark.django_db
def test_every_page_is_german_and_keeps_its_numbers_for_scripts(world, admin, german, own_cache):
    """A comma in data-value would sort a table by whole numbers only."""
    english_texts, other_numbers, seen = {}, [], 0
    for url in pages_of(world):
        page, plain = fetch(admin, url, "de"), fetch(admin, url, "en")
        if page is None or plain is None:
            continue
        seen += 1
        if left := left_in_english(page, german):
            english_texts[url] = left
        if page.read != plain.read:
            other_numbers.append((url, sorted(set(page.read) ^ set(plain.read))[:4]))
    assert seen > 25
    assert english_texts == {}
    assert other_numbers == []
