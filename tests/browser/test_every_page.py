"""Every page of every role: answers, fits its screen, breaks no policy, keeps to its budget of bytes,
asks no third party, and axe finds nothing serious or critical: light at 1280 px, dark at 360 px.

The pages are those of the role table: each GET address is one, or stands in ``APART`` with the
reason; `tests/test_role_matrix.py` fails for an address that has no line in the table.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

import pytest

from tests.browser.judging import until
from tests.browser.tour import Notes, Site, open_site
from tests.role_table import ROLES, lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# Marked, because pytest-django makes the test database only for marked tests.
pytestmark = [pytest.mark.browser, pytest.mark.django_db]

APART = {
    "accounts:csrf": "JSON",
    "accounts:oidc": "a redirect, where a sign-in elsewhere is set up (test_sign_in_elsewhere)",
    "accounts:oidc-callback": "the same",
    "accounts:oidc-logout": "the same",
    "operations:healthz": "for machines",
    "operations:readyz": "for machines",
    "operations:metrics": "for machines",
    "candidates:of_pair": "a fragment of candidates:detail",
    "candidates:original": "an image",
    "candidates:display": "an image",
    "candidates:preview": "an image",
    "prompts:export": "a file",
    "agreement:csv": "a file",
    "agreement:history": "a fragment of candidates:detail",
    "releases:freezes": "a fragment of releases:new",
    "releases:exports": "a fragment of releases:detail",
    "releases:download": "a file",
    "releases:image": "an image",
    "releases:citation": "a file",
    "benchmark:download": "a file",
    "benchmark:image": "an image",
    "generation:live": "a fragment of generation:status",
    "annotation:enter-study": "a redirect to the consent page (test_crowd_journey)",
}
# Bytes before images and fonts, as nginx sends them, on a first visit. Crowd workers load the
# judging page on phones; the heaviest of the others, the leaderboard, brings its charts.
JUDGING, OTHERS = 150_000, 180_000
DESKTOP, PHONE = (1280, "light"), (360, "dark")


def pages() -> dict[str, list[str]]:
    """The roles that see each page, the one that sees most of it first."""
    found = {}
    for name, (method, signs) in lines().items():
        if method == "GET" and name not in APART and "api" not in name.split(":")[0]:
            sees = [role for role, sign in zip(ROLES, signs, strict=True) if sign == "."]
            # An invitation's page is there for whoever has its link.
            found[name] = sees[::-1] or ["visitor"]
    return found


PAGES = pages()
MOST = [(name, roles[0]) for name, roles in PAGES.items()]
REST = [(role, name) for name, roles in PAGES.items() for role in roles[1:]]


@pytest.fixture(autouse=True)
def quick_and_separate() -> None:
    """The site of all these tests has settings of its own (instead of one folder for each test)."""


@pytest.fixture(autouse=True)
def same_in_any_order() -> None:
    """Its rows have their numbers, and its pages go on asking between the tests: a row on its way into
    a table is not seen by who sets the number of the next."""


@pytest.fixture(scope="module")
def site(django_db_setup, django_db_blocker, tmp_path_factory) -> Iterator[Site]:
    with open_site(tmp_path_factory.mktemp("media"), django_db_blocker) as made:
        yield made
    with django_db_blocker.unblock():
        from django.apps import apps

        migration = importlib.import_module("croc_annotate.prompts.migrations.0002_categories")
        migration.add_categories(apps, None)


@pytest.fixture(scope="module")
def tab(browser, site) -> Iterator[Callable[..., Notes]]:
    """A tab for a role, a width and a theme: made once, in a context of its own."""
    made: dict[tuple, Notes] = {}

    def get(role: str, width: int, scheme: str) -> Notes:
        key = (role, width, scheme)
        if key not in made:
            context = browser.new_context(
                viewport={"width": width, "height": 800}, color_scheme=scheme, reduced_motion="reduce"
            )  # fmt: skip
            context.add_cookies(site.cookies(role))
            made[key] = Notes(context.new_page(), site.base).listen()
        return made[key]

    yield get
    for notes in made.values():
        notes.page.goto("about:blank")
        notes.settle()  # what a page sends as it is left meets the site, not the emptied tables
        notes.page.context.close()


def visit(notes: Notes, site: Site, name: str) -> list[str]:
    """Open a page and say what is wrong but for axe."""
    budget = JUDGING if name == "annotation:judge" else OTHERS
    return look(notes, site.url(name), budget=budget)


def look(notes: Notes, url: str, *, status: int = 200, budget: int = OTHERS) -> list[str]:
    """Open an address and say what is wrong but for axe."""
    notes.page.goto("about:blank")
    notes.start()
    reply = notes.page.goto(url)
    faults = notes.settle() + notes.third_parties() + notes.failures(but=url)
    faults += [text for text in notes.said if status == 200 or f"status of {status}" not in text]
    if reply is None or reply.status != status:
        faults.append(f"answers {reply and reply.status}")
    if (weight := notes.weight()) > budget:
        faults.append(f"{weight:,} bytes before images; {budget:,} are allowed")
    wide, has = notes.page.evaluate("() => [document.documentElement.scrollWidth, innerWidth]")
    return faults + ([f"{wide} px wide at {has}"] if wide > has else [])


@pytest.mark.parametrize(("name", "role"), MOST)
def test_every_page_is_sound_for_who_sees_most_of_it(tab, site, name, role):
    faults = []
    for width, scheme in (DESKTOP, PHONE):
        notes = tab(role, width, scheme)
        faults += [f"{width} {scheme}: {fault}" for fault in visit(notes, site, name)]
        faults += [f"{width} {scheme}: {fault}" for fault in notes.axe()]
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize(
    ("what", "path", "status"),
    [
        ("a missing page", "/no-such-page/", 404),
        ("a page with a message", "/agreement/annotators/{pk}/set-aside/?campaign={slug}", 200),
    ],
)
def test_what_has_no_line_in_the_table_is_sound_too(tab, site, what, path, status):
    faults = []
    for width, scheme in (DESKTOP, PHONE):
        notes = tab("admin", width, scheme)
        faults += look(notes, site.base + path.format(**site.words["values"]), status=status)
        faults += notes.axe()
        if status == 200:
            assert notes.page.locator(".messages").count() == 1, what
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize("role", ROLES[:-1])
def test_every_page_is_sound_on_the_phones_of_other_roles(tab, site, role):
    wanted = [name for one, name in REST if one == role]
    notes = tab(role, *PHONE)
    faults = [f"{name}: {fault}" for name in wanted for fault in visit(notes, site, name)]
    assert not faults, "\n".join(faults)
    assert wanted


@pytest.mark.parametrize("name", sorted(APART))
def test_what_stands_apart_is_no_page(site, name):
    """Whoever adds a page here to be rid of its test meets this one."""
    from django.test import Client

    client = Client()
    client.cookies["sessionid"] = site.sessions["admin"]
    reply = client.get(site.url(name).removeprefix(site.base), follow=False)
    assert reply.status_code < 500
    is_page = "html" in reply.headers.get("content-type", "") and b"<html" in reply.getvalue()
    reply.close()
    assert not (is_page and reply.status_code == 200)


def test_no_page_is_forgotten():
    apart, table = set(APART), set(lines())
    assert apart <= table
    assert apart.isdisjoint(PAGES)
    api = {name for name in table if "api" in name.split(":")[0]}
    calls = {name for name, (method, _) in lines().items() if method == "POST"}
    assert set(PAGES) | apart | api | calls == table


def test_a_tab_notices_third_parties_errors_and_missing_files(tab, site):
    """The notes see what they are asked for: a planted page with one of each."""
    notes = tab("visitor", *DESKTOP)
    notes.page.goto(site.base + "/accounts/login/")
    notes.start()
    notes.page.evaluate(
        "() => { fetch('http://third.invalid/x').catch(() => {}); fetch('/no-such-file/');"
        " setTimeout(() => { throw new Error('planted') }); }"
    )
    until(notes.page, lambda: any("planted" in text for text in notes.said))
    until(notes.page, lambda: notes.failures(but=""))
    assert notes.settle() == []
    assert any("Content Security Policy" in text for text in notes.said) or notes.third_parties()
    assert notes.failures(but="") == [f"404 for {site.base}/no-such-file/"]
