"""Records the examples of the API's description from real answers.

Run it by name (`python -m pytest tests/api/record_examples.py`) after a change of what an
endpoint takes or gives; it writes ``croc_annotate/api_examples.json``.
"""

from __future__ import annotations

import json
import uuid

import pytest

from croc_annotate.api_description import EXAMPLES
from tests.api.world import body_of, client_of, make_api_world

pytestmark = pytest.mark.django_db
MOST_ROWS = 2
HOST = {"SERVER_NAME": "localhost"}


def short(value, key=""):
    """The same document with short lists and few entries of large tables."""
    if isinstance(value, list):
        return [short(entry) for entry in value[:MOST_ROWS]]
    if isinstance(value, dict):
        kept = list(value.items())
        if len(kept) > 8 and all(isinstance(v, dict | list) for v in value.values()):
            kept = kept[:MOST_ROWS]
        return {name: short(entry, name) for name, entry in kept}
    if key == "csrf":
        return "a-fresh-token"
    return value


def calls(world):
    """Operation → method, address, what is sent."""
    judged, person = "/api/v1/campaigns/judged", world.judged.raters[0].pk
    item, release = world.judged.items[1].key, "/api/v1/releases/croc/1.0.0"
    statistics = {
        f"campaigns_{name}_retrieve": ("get", f"{judged}/{name}/", {})
        for name in ("overview", "pairs", "rules", "annotators")
    }
    return statistics | {
        "campaigns": ("get", "/api/v1/campaigns/", {"page_size": 2}),
        "campaigns_agreement_retrieve": ("get", f"{judged}/agreement/", {"by": "category"}),
        "campaign_annotator": ("get", f"{judged}/annotators/{person}/", {}),
        "campaigns_annotators_effect_retrieve": (
            "get",
            f"{judged}/annotators/{person}/effect/",
            {},
        ),
        "campaigns_consensus_retrieve": ("get", f"{judged}/consensus/", {"state": "disputed"}),
        "campaigns_review_decision_create": (
            "post",
            f"{judged}/review/{item}/decision/",
            {"verdict": "accept", "reason": "clear", "note": "Four apples, one half hidden."},
        ),
        "leaderboard_retrieve": ("get", "/api/v1/leaderboard/", {"release": "croc"}),
        "leaderboard_metric": ("get", "/api/v1/leaderboard/random/", {"release": "croc"}),
        "leaderboard_releases_retrieve": ("get", "/api/v1/leaderboard/releases/", {}),
        "prompts_list": ("get", "/api/v1/prompts/", {"category": "counting", "page_size": 2}),
        "prompts_check_create": (
            "post",
            "/api/v1/prompts/check",
            {
                "id": "counting_900",
                "category": "counting",
                "prompt": "three red apples",
                "contrast": "four red apples",
                "property": "number",
            },
        ),
        "releases": ("get", "/api/v1/releases/", {}),
        "release": ("get", f"{release}/", {}),
    }


def judging_calls(client, base):
    """The judging API in the order of a session; each needs what came before."""

    def post(name, data):
        reply = client.post(f"{base}/{name}", data, content_type="application/json")
        assert reply.status_code == 200, (name, reply.content)
        return data, reply.json()

    yield "judging_session", {}, client.get(f"{base}/session").json()
    sent, claim = post("claim", {"n": 3})
    yield "judging_claim", sent, claim
    first, second, third = claim["items"]
    key = str(uuid.UUID(int=0x1D0C0DE))
    answer = {
        "client_key": key, "item": first["item"], "assignment": first["assignment"],
        "verdict": "accept", "active_ms": 2300, "mode": "focus",
        "answered_at": "2026-03-02T09:30:00Z",
    }  # fmt: skip
    yield "judging_answers", *post("answers", {"answers": [answer]})
    yield (
        "judging_skip",
        *post("skip", {"assignment": second["assignment"], "reason": "text_unclear"}),
    )
    flag = {"client_key": str(uuid.UUID(int=2)), "item": third["item"], "kind": "broken_image"}
    yield "judging_flag", *post("flag", flag)
    yield "judging_release", *post("release", {"assignments": [third["assignment"]]})
    yield "judging_history", {}, client.get(f"{base}/history").json()
    yield "judging_reconcile", *post("reconcile", {"client_keys": [key]})


def test_record():
    world = make_api_world()
    found = {"schema_retrieve": {"response": {"openapi": "3.1.0", "paths": {}}}}
    found["release_archive"] = {
        "parameters": {"name": "croc", "version": "1.0.0", "id": 1},
        "response": "(a tar archive)",
    }
    admin = client_of(world, "admin")
    for operation, (method, address, sent) in calls(world).items():
        more = {"content_type": "application/json"} if method == "post" else {}
        reply = getattr(admin, method)(address, sent, **HOST, **more)
        assert reply.status_code == 200, (operation, reply.content)
        body = json.loads(body_of(reply))
        part = {"request": sent} if method == "post" else {"parameters": sent}
        found[operation] = {**part, "response": short(body)}
    judge = client_of(world, "annotator")
    for operation, sent, body in judging_calls(judge, f"/api/v1/campaigns/{world.open.slug}"):
        found[operation] = {**({"request": sent} if sent else {}), "response": short(body)}
    for operation, example in found.items():
        words = {"slug": "judged", "name": "croc", "version": "1.0.0", "key": "k3y", "id": 1}
        if operation == "leaderboard_metric":
            words["name"] = "random"
        example["parameters"] = {**words, **example.get("parameters", {})}
    EXAMPLES.write_text(json.dumps(found, indent=1, ensure_ascii=False, sort_keys=True) + "\n")
