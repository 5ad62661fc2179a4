"""A site with something behind every address of the API."""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.core.management import call_command
from django.test import Client

from croc_annotate.accounts.tokens import create_token
from croc_annotate.annotation.models import Item
from croc_annotate.lib.hashing import sha256_bytes
from croc_annotate.releases.models import Release, ReleaseExport
from croc_annotate.releases.services import set_visibility
from tests.agreement.rows import judged_campaign
from tests.annotation.world import make_open_campaign
from tests.benchmark.world import small_release
from tests.factories import make_user

AT = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


@dataclass
class ApiWorld:
    """What the addresses need, by the names of their words."""

    judged: Any
    open: Any
    release: Release
    export: ReleaseExport
    people: dict[str, Any]
    tokens: dict[str, str] = field(default_factory=dict)

    @property
    def words(self) -> dict[str, list[Any]]:
        """Values that lead somewhere, for each word in an address."""
        return {
            "slug": [self.judged.campaign.slug, self.open.slug],
            "id": [self.judged.raters[0].pk, self.export.pk],
            "pk": [self.judged.raters[0].pk, self.export.pk],
            "key": [item.key for item in self.judged.items],
            "name": [self.release.name, "random", "human"],
            "version": [self.release.version],
        }


def make_api_world() -> ApiWorld:
    """A judged campaign, an open one, a public release with an export and a leaderboard."""
    judged = judged_campaign(
        ["aaa", "aar", "rrr", "aru", "rra"] * 4, slug="judged", title="Judged", min_distance=0, state="closed",
        categories=["counting", "action"] * 10,
    )  # fmt: skip
    release = small_release(name="croc", pairs=3)
    set_visibility(release=release, public=True)
    call_command("run_benchmark", "--metric", "random", "--release", "croc", stdout=io.StringIO())
    people = {role: make_user(role) for role in ("annotator", "reviewer", "admin")}
    world = ApiWorld(
        judged,
        make_open_campaign(pairs=20, category="spatial_relation"),
        release,
        make_export(release),
        people,
    )
    world.tokens = {
        "admin, read": create_token(user=people["admin"], name="r", scopes=["read"]),
        "admin, read and write": create_token(
            user=people["admin"], name="w", scopes=["read", "write"]
        ),
        "annotator, judge": create_token(user=people["annotator"], name="j", scopes=["judge"]),
    }
    return world


def make_export(release: Release) -> ReleaseExport:
    """A finished export whose archive is a few bytes."""
    data = b"not a real archive, but the bytes that were stored"
    name = default_storage.save("exports/test.tar", ContentFile(data))
    return ReleaseExport.objects.create(
        release=release, state="done", digest="d" * 64, options={"formats": ["crochum"]},
        file=name, size=len(data), sha256=sha256_bytes(data), created_at=AT, finished_at=AT,
    )  # fmt: skip


def client_of(world: ApiWorld, who: str) -> Client:
    """A client of one of the people, with one of the tokens, or of a visitor."""
    if who in world.tokens:
        return Client(headers={"Authorization": f"Bearer {world.tokens[who]}"})
    client = Client()
    if who != "visitor":
        client.force_login(world.people[who])
    return client


def body_of(reply: Any) -> bytes:
    """The bytes of an answer, streamed or not."""
    return b"".join(reply) if reply.streaming else reply.content


def disputed(world: ApiWorld) -> Item:
    """An item that people disagree about."""
    return world.judged.items[1]
