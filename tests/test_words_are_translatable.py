"""Every word that the site itself says can be said in another language.

Pages are rendered with each translated message between brackets: letters outside of brackets that
are neither data nor a name were written into a template, a form or a view as they are.
"""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest
from django import forms
from django.apps import apps
from django.conf import settings
from django.test import Client
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.module_loading import module_has_submodule
from django.utils.translation import trans_real

from croc_annotate.annotation.models import Assignment, Study
from tests import test_role_matrix as matrix
from tests import test_translations as pages
from tests.agreement.rows import START, judged_campaign
from tests.benchmark.world import public_leaderboard
from tests.factories import make_user

SCRIPTS = Path(settings.BASE_DIR) / "static" / "js"
ROOMS = [
    app for app in apps.get_app_configs() if app.name.startswith(("croc_annotate", "generation"))
]

world = matrix.world
admin = pages.admin
own_cache = pages.own_cache

BRACKETS = re.compile(r"⟦[^⟦⟧]*⟧")
WORD = re.compile(r"[^\W\d_]{2,}")
# Names, units, abbreviations that are the same in every language, and what a program reads.
SAME = {
    "CROC", "Annotate", "UTC", "CSV", "AC1", "AC", "SHA", "FLUX", "dev", "px", "min", "png", "jpeg",
    "webp", "original", "crochum", "imagefolder", "parquet", "sft", "webdataset", "cff", "CITATION",
    "English", "Deutsch", "Main", "AVG", "SVG", "PNG", "PDF", "JSON", "LaTeX", "Fake", "loss",
}  # fmt: skip
# A command, a citation, an address, a time zone, a file; a hash; what a run ran on.
PROGRAMS = re.compile(
    r"manage\.py .*|@misc\{.*|https?://\S+|(?:[A-Z]\w+)/[\w/ +-]+|\w+\.csv"
    r"|[0-9a-f]{16,64}…?|croc-annotate \d.*"
)
WRITTEN = (
    "annotation.Campaign", "prompts.ContrastPair", "prompts.Category", "accounts.User",
    "candidates.Generator", "candidates.Candidate", "benchmark.MetricRun", "releases.Release",
)  # fmt: skip


@pytest.fixture
def bracketed(monkeypatch):
    """Put between brackets what a catalogue gives; what it does not know stays as it is."""
    one, many = trans_real.DjangoTranslation.gettext, trans_real.DjangoTranslation.ngettext

    def gettext(self, message):
        known = message.strip() and self._catalog.get(message) is not None
        return f"⟦{one(self, message)}⟧" if known else message

    monkeypatch.setattr(trans_real.DjangoTranslation, "gettext", gettext)
    monkeypatch.setattr(
        trans_real.DjangoTranslation, "ngettext", lambda *values: f"⟦{many(*values)}⟧"
    )


def names() -> set[str]:
    """The words in what people wrote, what things are called and what a run says of itself."""
    found: set[str] = set()
    for label in WRITTEN:
        left = list(apps.get_model(label)._base_manager.values())
        while left:
            value = left.pop()
            if isinstance(value, dict):
                left += value.values()
            elif isinstance(value, list):
                left += value
            elif isinstance(value, str):
                found.update(WORD.findall(value))
    return found


def outside_of_brackets(text: str) -> str:
    """A text without its translated parts; those may stand in each other."""
    left, before = text, ""
    while left != before:
        left, before = BRACKETS.sub(" ", left), left
    return PROGRAMS.sub(" ", left)


def untranslated(client: Client, urls: list[str]) -> dict[str, str]:
    """Texts of pages with words that no catalogue knows, and the first page of each."""
    known, found = SAME | names(), {}
    for url in urls:
        page = pages.fetch(client, url, "de")
        for text in page.texts if page else ():
            if set(WORD.findall(outside_of_brackets(text))) - known:
                found.setdefault(text, url)
    return found


@pytest.mark.django_db
def test_every_word_of_every_page_comes_from_the_catalogue(world, admin, own_cache, bracketed):
    found = untranslated(admin, pages.pages_of(world))
    assert found == {}


@pytest.mark.django_db
def test_reviews_of_one_and_of_many_items_come_from_the_catalogue(admin, own_cache, bracketed):
    judged = judged_campaign(["aru", "aru", "aau"], title="Main", slug="main", mode="focus")
    reviewed = judged.items[0]
    for reason in ("image_broken", "text_unclear", "other"):
        Assignment.objects.create(
            item=reviewed, campaign=judged.campaign, annotator=make_user(), state="skipped",
            skip_reason=reason, created_at=START, expires_at=START, ended_at=START,
        )  # fmt: skip
    admin.post(reverse("agreement:reveal", args=[reviewed.key]))
    urls = [
        f"{reverse('agreement:review')}?campaign=main&item={reviewed.key}",
        f"{reverse('agreement:bulk')}?campaign=main",
        f"{reverse('agreement:images')}?campaign=main&posterior_from=0.5",
        reverse("agreement:history", args=[reviewed.candidate.key]),
    ]
    assert untranslated(admin, urls) == {}


@pytest.mark.django_db
def test_the_leaderboard_comes_from_the_catalogue(client, own_cache, bracketed):
    public_leaderboard()
    urls = [reverse("benchmark:leaderboard"), reverse("benchmark:metric", args=["fake"])]
    assert untranslated(client, urls) == {}


def own_forms() -> list[type[forms.BaseForm]]:
    for app in ROOMS:
        for name in ("forms", "crowd_views"):
            if module_has_submodule(app.module, name):
                import_module(f"{app.name}.{name}")
    found, left = [], [forms.BaseForm]
    while left:
        left += (subclasses := left.pop().__subclasses__())
        found += subclasses
    return [form for form in found if form.__module__.startswith("croc_annotate")]


def test_labels_and_choices_of_forms_are_translated_when_they_are_shown():
    """A label that Django makes from a field's name, or one that was translated at import, is English."""
    wrong, seen = [], 0
    for form in own_forms():
        for name, field in getattr(form, "base_fields", {}).items():
            if isinstance(field.widget, forms.HiddenInput):
                continue
            seen += 1
            said = [field.label, *([field.help_text] if field.help_text else [])]
            if isinstance(field, forms.ChoiceField) and not isinstance(
                field, forms.ModelChoiceField
            ):
                said += [label for _, label in field.choices if label and not _is_name(label)]
            wrong += [
                (form.__name__, name, str(text)) for text in said if not isinstance(text, Promise)
            ]
    assert seen > 40
    assert wrong == []


def _is_name(label: object) -> bool:
    """No word of ours: a name, or a group of such (time zones)."""
    return isinstance(label, str) and (set(WORD.findall(label)) <= SAME or "/" in label)


def test_scripts_take_their_sentences_from_the_page():
    """A sentence in a script is only there for a page that gives no words."""
    sentence = re.compile(r"""(.{0,4})(["'`])([A-Z][a-z]+(?: [a-z{$][^"'`]*)+)\2""")
    wrong = [
        (path.name, found[3])
        for path in sorted(SCRIPTS.rglob("*.js"))
        for found in sentence.finditer(re.sub(r"(?m)^\s*(//|\*|/\*).*$", "", path.read_text()))
        if not found[1].endswith("|| ")
    ]
    assert wrong == []


@pytest.mark.django_db
def test_a_crowd_worker_whose_link_fails_reads_german(client):
    ids = {"PROLIFIC_PID": "p1", "STUDY_ID": "unknown", "SESSION_ID": "s1"}
    page = client.get(reverse("annotation:enter-study"), ids, headers={"accept-language": "de"})
    assert page.status_code == 403
    assert not Study.objects.exists()
    words = page.content.decode()
    assert "Diese Studie ist hier nicht bekannt." in words
    assert "This" not in words


@pytest.mark.django_db
def test_what_refuses_an_act_of_a_reviewer_is_german(admin):
    judged = judged_campaign(["aru"], slug="main")
    url = reverse("agreement:decide", args=[judged.items[0].key])
    values = {"verdict": "accept", "reason": "other"}
    page = admin.post(url, values, headers={"accept-language": "de"}, follow=True)
    assert "Bei „anderes“ gehört eine Notiz dazu" in page.content.decode()


@pytest.mark.django_db
def test_the_banks_rules_speak_german_in_the_form_and_while_typing(admin):
    german = {"accept-language": "de"}
    draft = {"category": "counting", "prompt": "one \x07 bell", "contrast": "nan"}
    page = admin.post(reverse("prompts:new"), {**draft, "slug": "counting_x"}, headers=german)
    checked = admin.post(
        "/api/v1/prompts/check", {**draft, "id": "counting_x"},
        content_type="application/json", headers=german,
    ).json()  # fmt: skip
    said = " ".join(problem["message"] for problem in checked["problems"])
    for words in ("hat ein Steuerzeichen (U+0007) an Stelle 5", "das Tabellen als fehlenden Wert"):
        assert words in said
        assert words in page.content.decode()


@pytest.mark.django_db
def test_a_freeze_is_refused_in_german(admin):
    judged = judged_campaign(["aa"], slug="main", min_judgements=2)
    values = {"campaign": judged.campaign.pk, "name": "a name", "version": "1.0.0"}
    page = admin.post(reverse("releases:new"), values, headers={"accept-language": "de"})
    assert "ist kein Name für eine Veröffentlichung" in page.content.decode()
