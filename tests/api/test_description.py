"""The API's description is complete and true: errors, descriptions, examples that fit."""

from __future__ import annotations

import pytest
from django.test import Client
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.validation import validate_schema
from jsonschema import Draft202012Validator

from tests.api.world import body_of, client_of, make_api_world

SPEC = SchemaGenerator().get_schema(request=None, public=True)
OPERATIONS = {
    operation["operationId"]: (path, method, operation)
    for path, methods in SPEC["paths"].items()
    for method, operation in methods.items()
}
EACH = pytest.mark.parametrize("name", sorted(OPERATIONS))


def faults(schema, value):
    """Where a value does not fit a schema of the description."""
    whole = {**schema, "components": SPEC["components"]}
    return [
        f"{'/'.join(map(str, error.absolute_path))}: {error.message[:200]}"
        for error in Draft202012Validator(whole).iter_errors(value)
    ]


def test_the_description_is_valid_openapi():
    validate_schema(SPEC)
    assert SPEC["openapi"].startswith("3.1")
    assert len(OPERATIONS) >= 27


@EACH
def test_each_operation_says_what_it_does(name):
    _, _, operation = OPERATIONS[name]
    assert len(operation["description"]) > 10


@EACH
def test_each_operation_has_an_example_that_fits_its_schema(name):
    _, _, operation = OPERATIONS[name]
    contents = list(operation["responses"]["200"]["content"].values())
    if "requestBody" in operation:
        contents += operation["requestBody"]["content"].values()
    for content in contents:
        assert "example" in content, "run tests/api/record_examples.py"
        assert faults(content["schema"], content["example"]) == []
    for parameter in operation.get("parameters", []):
        if parameter.get("required"):
            assert faults(parameter["schema"], parameter["example"]) == []


@EACH
def test_each_operation_lists_its_errors_as_problem_documents(name):
    path, method, operation = OPERATIONS[name]
    answers = operation["responses"]
    wanted = {"200", "401", "403", "406", "429"} | ({"304"} if method == "get" else {"400", "415"})
    wanted |= {"404"} if "{" in path else set()
    assert wanted <= set(answers)
    for status, answer in answers.items():
        if status >= "400":
            problem = answer["content"]["application/problem+json"]
            assert faults(problem["schema"], problem["example"]) == []
            assert problem["example"]["status"] == int(status)


@pytest.mark.django_db
def test_errors_come_as_they_are_described():
    """One of each kind, also those that no view of ours sees."""
    world = make_api_world()
    visitor, admin = Client(), client_of(world, "admin")
    open_ = f"/api/v1/campaigns/{world.open.slug}"
    json_ = {"content_type": "application/json"}
    found = {
        "unknown address": visitor.get("/api/v1/nothing/here/"),
        "unknown word": admin.get("/api/v1/campaigns/none/overview/"),
        "signed out": visitor.get("/api/v1/campaigns/"),
        "not allowed": client_of(world, "annotator").get("/api/v1/prompts/"),
        "wrong method": admin.delete("/api/v1/campaigns/"),
        "wrong accept": admin.get("/api/v1/campaigns/", headers={"Accept": "text/css"}),
        "no such format": visitor.get("/api/v1/schema/", {"format": "toml"}),
        "no such format here": admin.get("/api/v1/campaigns/", {"format": "yaml"}),
        "wrong type": admin.post("/api/v1/prompts/check", "a", content_type="text/plain"),
        "no JSON": admin.post("/api/v1/prompts/check", "{", **json_),
        "wrong field": admin.post("/api/v1/prompts/check", {"id": [1]}, **json_),
        "too large": admin.post("/api/v1/prompts/check", b'"' + b"a" * 6_000_000, **json_),
        "page of nothing": admin.get("/api/v1/campaigns/", {"page": 99}),
        "judging: unknown": admin.post("/api/v1/campaigns/none/claim", {"n": 1}, **json_),
        "judging: wrong": admin.post(f"{open_}/claim", {"n": 0}, **json_),
        "judging: not mine": admin.post(
            f"{open_}/skip", {"assignment": "00000000-0000-0000-0000-000000000001"}, **json_
        ),
    }
    problem = {"$ref": "#/components/schemas/Problem"}
    wrong = []
    for name, reply in found.items():
        if reply["Content-Type"] != "application/problem+json":
            wrong.append(f"{name}: {reply.status_code} {reply['Content-Type']}")
            continue
        wrong += [f"{name}: {fault}" for fault in faults(problem, reply.json())]
        if reply.json()["status"] != reply.status_code:
            wrong.append(f"{name}: {reply.status_code} says {reply.json()['status']}")
    assert wrong == []
    statuses = {name: reply.status_code for name, reply in found.items()}
    assert statuses == {
        "unknown address": 404, "unknown word": 404, "signed out": 401, "not allowed": 403,
        "wrong method": 405, "wrong accept": 406,
        "no such format": 404, "no such format here": 404, "wrong type": 415, "no JSON": 400,
        "wrong field": 400, "too large": 400, "page of nothing": 404, "judging: unknown": 404,
        "judging: wrong": 400, "judging: not mine": 409,
    }  # fmt: skip


@pytest.mark.django_db
def test_lists_come_in_pages_of_a_stated_size():
    admin = client_of(make_api_world(), "admin")
    url = "/api/v1/prompts/"
    total = admin.get(url).json()["count"]
    assert total > 20
    first = admin.get(url, {"page_size": 7}).json()
    assert len(first["results"]) == 7
    seen, part = [row["id"] for row in first["results"]], first
    while part["next"]:
        part = admin.get(part["next"]).json()
        seen += [row["id"] for row in part["results"]]
    assert len(seen) == len(set(seen)) == total
    from croc_annotate.lib.pagination import StatedPagination

    assert StatedPagination.max_page_size == 500
    assert len(admin.get(url, {"page_size": 10**9}).json()["results"]) <= 500


UNCHANGED = [
    "/api/v1/campaigns/", "/api/v1/campaigns/judged/overview/",
    "/api/v1/campaigns/judged/agreement/", "/api/v1/campaigns/judged/consensus/",
    "/api/v1/leaderboard/", "/api/v1/releases/", "/api/v1/releases/croc/1.0.0/",
    "/api/v1/releases/croc/1.0.0/exports/{export}/", "/api/v1/schema/",
]  # fmt: skip


@pytest.mark.django_db
def test_what_has_not_changed_is_not_sent_again():
    world = make_api_world()
    admin = client_of(world, "admin")
    for address in UNCHANGED:
        url = address.format(export=world.export.pk)
        first = admin.get(url)
        assert (first.status_code, len(body_of(first)) > 0) == (200, True)
        assert first["Cache-Control"] == "private, no-cache"
        assert {"Authorization", "Cookie"} <= set(first["Vary"].split(", "))
        again = admin.get(url, headers={"If-None-Match": first["ETag"]})
        assert (again.status_code, again.content) == (304, b""), url
        assert again["ETag"] == first["ETag"]
        other = admin.get(url, headers={"If-None-Match": '"something else"'})
        # Read whole: the client then closes the file behind an archive.
        assert (other.status_code, len(body_of(other)) > 0) == (200, True), url


@pytest.mark.django_db
def test_a_tag_of_one_person_shows_another_nothing():
    """An admin's tag from an annotator's browser: the annotator gets their own list."""
    world = make_api_world()
    tag = client_of(world, "admin").get("/api/v1/campaigns/")["ETag"]
    reply = client_of(world, "annotator").get("/api/v1/campaigns/", headers={"If-None-Match": tag})
    assert reply.status_code == 200
    assert [row["slug"] for row in reply.json()["results"]] == [world.open.slug]
    assert Client().get("/api/v1/campaigns/", headers={"If-None-Match": tag}).status_code == 401


@pytest.mark.django_db
def test_a_new_judgement_changes_the_tag(monkeypatch):
    world = make_api_world()
    admin = client_of(world, "admin")
    url = "/api/v1/campaigns/judged/consensus/"
    tag = admin.get(url)["ETag"]
    item = world.judged.items[1]
    admin.post(
        f"/api/v1/campaigns/judged/review/{item.key}/decision/",
        {"verdict": "accept", "reason": "clear"},
        content_type="application/json",
    )
    assert admin.get(url, headers={"If-None-Match": tag}).status_code == 200
