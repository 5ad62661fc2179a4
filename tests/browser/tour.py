"""One site with something on every page, and what a browser notices while it opens one."""

from __future__ import annotations

import contextlib
import gzip
import time
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from axe_playwright_python.sync_playwright import Axe
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.core.management import call_command
from django.test import Client, override_settings
from django.utils import timezone

from croc_annotate.annotation.invitations import create_invitation
from croc_annotate.candidates.models import Candidate
from tests.api.world import make_api_world
from tests.factories import png_bytes
from tests.test_role_matrix import address

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Page, Request, Response

# What nginx compresses (deploy/nginx/croc.conf.template), at its default level.
COMPRESSED = ("text/html", "text/css", "javascript", "json", "image/svg")
LEVEL = 1
IMAGES = {"image", "media", "font"}


@dataclass
class Site:
    """Where it answers, its people's sessions, and the words of its addresses."""

    base: str
    sessions: dict[str, str]
    words: dict[str, Any]

    def url(self, name: str) -> str:
        """The whole address of a page of the role table."""
        query = self.words["queries"].get(name) or self.words["queries"].get(name.split(":")[0])
        return self.base + address(self.words, name) + (f"?{query}" if query else "")

    def cookies(self, role: str) -> list[dict[str, str]]:
        """The cookies that sign a browser in; a visitor has none."""
        if role not in self.sessions:
            return []
        return [{"name": "sessionid", "value": self.sessions[role], "url": self.base}]


@contextlib.contextmanager
def open_site(folder: Path, unblocker: Any) -> Iterator[Site]:
    """A live site on a world that stays until the end, when all tables are emptied.

    (pytest-django's own ``live_server`` empties them after each test; a world takes seconds.)
    """
    from django.db import connection
    from pytest_django.live_server_helper import LiveServer

    from croc_annotate.celery import app

    own = override_settings(
        MEDIA_ROOT=folder, CELERY_TASK_ALWAYS_EAGER=True, AXES_ENABLED=False, RATE_LIMIT_SIGN_IN=0,
        RATE_LIMIT_VISITORS=0, RATE_LIMIT_PEOPLE=0, RATE_LIMIT_TOKENS=0,
    )  # fmt: skip
    app.conf.task_always_eager = True
    with own, unblocker.unblock():
        assert "test" in connection.settings_dict["NAME"], "these tables will be emptied"
        server = LiveServer("localhost")
        try:
            made = make_api_world()
            people = {role: session_of(user) for role, user in made.people.items()}
            yield Site(server.url, people, words_of(made))
        finally:
            server.stop()
            call_command("flush", interactive=False, verbosity=0)


def session_of(user: Any) -> str:
    client = Client()
    client.force_login(user)
    return client.cookies["sessionid"].value


def words_of(made: Any) -> dict[str, Any]:
    """A value for each word of an address, so that it leads to something."""
    item, release = made.judged.items[1], made.release
    shown = release.members.first().candidate
    draw_images()
    _, token = create_invitation(
        campaign=made.open, actor=made.people["admin"], expires_at=timezone.now() + timedelta(1)
    )
    values = {
        "slug": made.judged.campaign.slug, "key": item.key, "pk": made.judged.raters[0].pk,
        "pair": item.pair_id, "side": "prompt", "version": release.version, "kind": "annotators",
        "form": "csv", "name": "random", "token": token, "release_id": release.pk,
        "candidate_id": shown.pk,
    }  # fmt: skip
    open_one = {"slug": made.open.slug}
    judging = ("judge", "consent", "guideline", "end", "me")
    own = {
        **{f"annotation:{name}": open_one for name in judging},
        "candidates": {"key": shown.key, "pair": shown.pair_id},
        "prompts": {"slug": item.pair.slug},
        "releases": {"name": release.name, "version": release.version, "key": shown.key},
    }
    campaign = f"campaign={made.judged.campaign.slug}"
    queries = {
        "agreement": campaign,
        "agreement:set_aside": f"{campaign}&act=set_aside&reason=careless",
    }
    return {"values": values, "own": own, "queries": queries}


def draw_images() -> None:
    """Files for the images that the world only names: a page must show all that it asks for."""
    data = png_bytes()
    for names in Candidate.objects.values_list("image", "display", "preview"):
        for name in names:
            if name and not default_storage.exists(name):
                default_storage.save(name, ContentFile(data))


@dataclass
class Notes:
    """What one tab asked for and complained about since the last ``start``."""

    page: Page
    base: str
    asked: list[Request] = field(default_factory=list)
    got: list[Response] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    waiting: set[Request] = field(default_factory=set)

    def listen(self) -> Notes:
        """Begin to take notes. The tab's cache is off: each page is weighed as a first visit."""
        session = self.page.context.new_cdp_session(self.page)
        session.send("Network.enable")
        session.send("Network.setCacheDisabled", {"cacheDisabled": True})
        self.page.on("request", self._asks)
        self.page.on("requestfinished", self._ends)
        self.page.on("requestfailed", self._ends)
        self.page.on("response", self._gets)
        self.page.on("pageerror", lambda error: self.said.append(f"script error: {error}"))
        self.page.on("console", self._hears)
        return self

    def _asks(self, request: Request) -> None:
        self.asked.append(request)
        self.waiting.add(request)

    def _gets(self, reply: Response) -> None:
        # The last answers to the page before may come after ``start``; their bodies are gone.
        if reply.request in self.asked:
            self.got.append(reply)

    def _ends(self, request: Request) -> None:
        self.waiting.discard(request)

    def _hears(self, message: Any) -> None:
        if "Content Security Policy" in message.text or message.type == "error":
            self.said.append(f"console: {message.text} ({message.location.get('url', '')})")

    def start(self) -> None:
        """Forget the page before."""
        for notes in (self.asked, self.got, self.said, self.waiting):
            notes.clear()

    def axe(self) -> list[str]:
        """Serious and critical findings of axe, with the place."""
        self.page.evaluate(Axe().axe_script)
        # What it passes is nobody's concern here, and long to list.
        found = self.page.evaluate("() => axe.run(document, {resultTypes: ['violations']})")
        return [
            f"{rule['id']}: {node['target']} {node.get('failureSummary', '')}"
            for rule in found["violations"]
            if rule["impact"] in {"serious", "critical"}
            for node in rule["nodes"]
        ]

    def settle(self, seconds: float = 60) -> list[str]:
        """Wait until nothing is under way for 60 ms; a fault that names it when it never ends."""
        end, quiet = time.monotonic() + seconds, 0
        while time.monotonic() < end:
            self.page.wait_for_timeout(30)
            quiet = 0 if self.waiting else quiet + 1
            if quiet >= 2:
                return []
        return [f"never ends: {one.url}" for one in self.waiting]

    def third_parties(self) -> list[str]:
        """Requests to other hosts, also those that failed."""
        own = (f"{self.base}/", "data:", "blob:")
        return [f"asks {one.url}" for one in self.asked if not one.url.startswith(own)]

    def failures(self, but: str) -> list[str]:
        """Answers that are errors; the page itself is judged by its caller."""
        return [f"{r.status} for {r.url}" for r in self.got if r.status >= 400 and r.url != but]

    def weight(self) -> int:
        """Bytes of all but images and fonts, compressed as nginx does."""
        return sum(
            sent_bytes(reply)
            for reply in self.got
            if reply.request.resource_type not in IMAGES and reply.status == 200
        )


def sent_bytes(reply: Response) -> int:
    """The size of a body on its way to the browser."""
    kind, body = reply.headers.get("content-type", ""), reply.body()
    return len(gzip.compress(body, LEVEL) if any(k in kind for k in COMPRESSED) else body)
