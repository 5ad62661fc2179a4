"""The bank at twelve times its size, and the scene renderer. Peers are limits: a page in 300 ms."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.benchmarks.frame import Row, seconds

PAGE_LIMIT = 0.3
TIMES = 12  # the size of CROCsyn against that of the benchmark


def run(quick: bool) -> list[Row]:
    """Loading, pages and the live check with 4,800 pairs; drawings per second on one core."""
    rows = [_drawing(80 if quick else 400)]
    with _database():
        bank = _bank(2 if quick else TIMES)
        rows += _loading(bank)
        rows += _pages(len(bank), repeat=3 if quick else 9)
    return rows


def _drawing(n: int) -> Row:
    from generation.scenes.drawing import draw
    from generation.scenes.grammar import parse

    scenes = [parse(text) for text in ("seven orange fish", "a man climbing a ladder")]

    def every() -> None:
        for seed in range(n // 2):
            for scene in scenes:
                draw(scene, seed)

    return Row("scenes drawn at 512 × 512", n / seconds(every, repeat=1), unit="images/s", n=n)


@contextmanager
def _database() -> Iterator[None]:
    """A database of its own, removed afterwards."""
    from django.conf import settings
    from django.db import connection

    name = connection.settings_dict["NAME"]
    connection.settings_dict.setdefault("TEST", {})["NAME"] = "bench_prompts"
    connection.creation.create_test_db(verbosity=0, autoclobber=True, serialize=False)
    settings.ALLOWED_HOSTS = ["testserver"]
    try:
        yield
    finally:
        connection.creation.destroy_test_db(name, verbosity=0)


def _bank(times: int) -> list[Any]:
    """The built-in bank, several times under other ids and with a number in each text."""
    import dataclasses

    from croc_annotate.prompts.bank import builtin_files, parse_bank

    rows = [row for file in builtin_files() for row in parse_bank(file)]
    return [
        dataclasses.replace(
            row,
            slug=f"{row.slug}_{k}",
            prompt=f"{row.prompt} ({k})",
            contrast=f"{row.contrast} ({k})",
        )
        for k in range(times)
        for row in rows
    ]


def _loading(bank: list[Any]) -> list[Row]:
    from croc_annotate.prompts.services import load_pairs

    first = seconds(lambda: load_pairs(rows=bank, bank="bench"), repeat=1)
    again = seconds(lambda: load_pairs(rows=bank, bank="bench"), repeat=3)
    return [
        Row("load a new bank", first, n=len(bank)),
        Row("load it again (nothing changes)", again, n=len(bank)),
    ]


def _pages(n: int, *, repeat: int) -> list[Row]:
    from django.test import Client

    from croc_annotate.accounts.models import User

    client = Client()
    client.force_login(User.objects.create_user("bench", password="x", role="admin"))
    draft = {
        "id": "shapes_x",
        "category": "shapes",
        "prompt": "a round mirror",
        "contrast": "a square mirror",
    }
    calls = {
        "page: list": lambda: client.get("/prompts/"),
        "page: search": lambda: client.get("/prompts/", {"q": "wooden table"}),
        "page: one pair": lambda: client.get("/prompts/p/shapes_7_1/"),
        "API: live check": lambda: client.post(
            "/api/v1/prompts/check", json.dumps(draft), content_type="application/json"
        ),
        "export as JSON Lines": lambda: b"".join(client.get("/prompts/export.jsonl")),
    }
    rows = []
    for name, call in calls.items():
        call()  # templates are compiled once
        took = seconds(call, repeat=repeat)
        rows.append(Row(name, took, PAGE_LIMIT, ratio=PAGE_LIMIT / took, n=n, note="peer: limit"))
    return rows
