"""The bank's pages and API: who may, what they show, what they change."""

from __future__ import annotations

import json

import pytest
from django.test.client import MULTIPART_CONTENT
from django.urls import reverse

from croc_annotate.prompts.bank import parse_bank
from croc_annotate.prompts.models import ContrastPair
from tests.factories import make_candidate, make_pair, make_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def pair():
    return make_pair(slug="counting_5", prompt="three red apples", contrast="four red apples")


@pytest.fixture
def admin(client):
    client.force_login(make_user("admin"))
    return client


def form_of(pair: ContrastPair, **changes: str) -> dict[str, str]:
    names = ("prompt", "contrast", "alt_contrast", "property", "topic", "entity")
    return {name: getattr(pair, name) for name in names} | changes


PAGES = [
    ("prompts:list", [], "reviewer"),
    ("prompts:export", [], "reviewer"),
    ("prompts:pair", ["counting_5"], "reviewer"),
    ("prompts:edit", ["counting_5"], "admin"),
    ("prompts:new", [], "admin"),
    ("prompts:retire", ["counting_5"], "admin"),
    ("prompts:reinstate", ["counting_5", 1], "admin"),
    ("api-prompts", [], "reviewer"),
    ("api-prompts-check", [], "reviewer"),
]
POSTS = {"prompts:retire", "prompts:reinstate", "api-prompts-check"}
RANKS = {None: 0, "annotator": 1, "reviewer": 2, "admin": 3}


def _content_type(name: str) -> str:
    return "application/json" if name.startswith("api") else MULTIPART_CONTENT


@pytest.mark.parametrize(("name", "args", "needed"), PAGES)
@pytest.mark.parametrize("role", [None, "annotator", "reviewer", "admin"])
def test_each_role_gets_in_where_it_should_and_nowhere_else(
    client, pair, name, args, needed, role
) -> None:
    if role:
        client.force_login(make_user(role))
    address = reverse(name, args=args)
    if name in POSTS:
        status = client.post(address, {}, content_type=_content_type(name)).status_code
    else:
        status = client.get(address).status_code
    if RANKS[role] >= RANKS[needed]:
        assert status in (200, 302)
    elif role is None and not name.startswith("api"):
        assert status == 302
    else:
        assert status in (401, 403)
        pair.refresh_from_db()
        assert pair.active


def test_the_list_marks_the_differing_words_and_filters(admin, pair) -> None:
    make_pair("shapes", slug="shapes_1", prompt="a round sign", contrast="a square sign")
    page = admin.get(reverse("prompts:list")).content.decode()
    assert "<mark>three</mark> red apples" in page
    assert "<mark>square</mark> sign" in page
    page = admin.get(reverse("prompts:list"), {"category": "shapes"}).content.decode()
    assert "apples" not in page
    page = admin.get(reverse("prompts:list"), {"q": "red four"}).content.decode()
    assert "apples" in page
    assert "sign" not in page.split("<table")[1]
    assert "No pair fits" in admin.get(reverse("prompts:list"), {"q": "zebra"}).content.decode()


def test_an_empty_bank_says_what_to_do(admin) -> None:
    assert "load_prompts --builtin" in admin.get(reverse("prompts:list")).content.decode()


def test_texts_are_escaped(admin) -> None:
    make_pair(slug="counting_9", prompt="<b>one</b> & two", contrast="<i>three</i> & two")
    for name, args in (("prompts:list", []), ("prompts:pair", ["counting_9"])):
        page = admin.get(reverse(name, args=args)).content.decode()
        assert "<b>" not in page.split("<main")[1].replace('<b class="tnum">', "")
        assert "&lt;" in page


def test_the_pair_page_shows_both_texts_labels_and_versions(admin, pair) -> None:
    make_candidate(pair=pair)
    admin.post(
        reverse("prompts:edit", args=["counting_5"]), form_of(pair, contrast="six red apples")
    )
    page = admin.get(reverse("prompts:pair", args=["counting_5"])).content.decode()
    assert "<mark>six</mark> red apples" in page
    assert "replaced by version 2" in page
    old = admin.get(reverse("prompts:pair", args=["counting_5"]), {"version": "1"}).content.decode()
    assert "<mark>four</mark> red apples" in old
    assert "Out of use." in old
    assert admin.get(reverse("prompts:pair", args=["nothing_1"])).status_code == 404


def test_an_edit_warns_of_images_and_makes_a_version(admin, pair) -> None:
    address = reverse("prompts:edit", args=["counting_5"])
    assert "new version" not in admin.get(address).content.decode()
    make_candidate(pair=pair)
    assert "Other texts make a new version" in admin.get(address).content.decode()
    reply = admin.post(address, form_of(pair, contrast="six red apples"), follow=True)
    assert "Saved as version 2" in reply.content.decode()
    pair.refresh_from_db()
    assert pair.contrast == "four red apples"


def test_an_edit_cannot_change_id_or_category(admin, pair) -> None:
    admin.post(
        reverse("prompts:edit", args=["counting_5"]),
        form_of(pair, slug="shapes_1", category="shapes", topic="food"),
    )
    pair.refresh_from_db()
    assert (pair.slug, pair.category_id, pair.topic) == ("counting_5", "counting", "food")


def test_a_broken_rule_is_shown_at_its_field(admin, pair) -> None:
    address = reverse("prompts:edit", args=["counting_5"])
    reply = admin.post(address, form_of(pair, contrast="THREE red apples."))
    assert reply.status_code == 200
    assert "says the same as the prompt" in reply.content.decode()


def test_a_pair_is_added_with_the_next_free_number(admin, pair) -> None:
    address = reverse("prompts:new")
    assert 'value="counting_6"' in admin.get(address, {"category": "counting"}).content.decode()
    values = form_of(pair, prompt="one cup", contrast="two cups")
    reply = admin.post(address, {**values, "slug": "counting_6", "category": "counting"})
    assert reply.status_code == 302
    assert ContrastPair.objects.get(slug="counting_6").bank == "site"
    reply = admin.post(address, {**values, "slug": "counting_6", "category": "counting"})
    assert "is in use" in reply.content.decode()


def test_retire_and_reinstate(admin, pair) -> None:
    admin.post(reverse("prompts:retire", args=["counting_5"]), {"reason": ""})
    pair.refresh_from_db()
    assert pair.active
    admin.post(reverse("prompts:retire", args=["counting_5"]), {"reason": "ambiguous"})
    pair.refresh_from_db()
    assert (pair.active, pair.retired_reason) == (False, "ambiguous")
    admin.post(reverse("prompts:reinstate", args=["counting_5", 1]))
    pair.refresh_from_db()
    assert pair.active


def test_the_export_is_a_bank_that_can_be_read(admin, pair, tmp_path) -> None:
    make_pair("negation", slug="negation_3", prompt='"=1", ü 🛥️', contrast="no 🛥️")
    reply = admin.get(reverse("prompts:export"))
    path = tmp_path / "prompts.jsonl"
    path.write_bytes(b"".join(reply.streaming_content))
    assert [row.slug for row in parse_bank(path)] == ["counting_5", "negation_3"]
    assert parse_bank(path)[1].prompt == '"=1", ü 🛥️'


def check(client, **draft: str) -> dict:
    reply = client.post(
        reverse("api-prompts-check"), json.dumps(draft), content_type="application/json"
    )
    assert reply.status_code == 200, reply.content
    return reply.json()


def test_the_check_names_problems_and_marks_by_javascript_offsets(admin, pair) -> None:
    result = check(admin, id="counting_6", category="counting", prompt="🛥️ one", contrast="🛥️ two")
    assert result["problems"] == []
    assert result["spans"] == {"prompt": [[4, 7]], "contrast": [[4, 7]]}
    result = check(admin, id="shape_6", category="shapes", prompt="a", contrast="A")
    assert {p["field"] for p in result["problems"]} == {"id", "contrast"}


def test_the_check_points_to_other_pairs_with_the_text(admin, pair) -> None:
    result = check(
        admin, id="counting_6", category="counting", prompt="Three red apples.", contrast="b"
    )
    assert result["remarks"] == [{"field": "prompt", "message": "“counting_5” has this text, too"}]
    assert (
        check(admin, id="counting_5", category="counting", prompt="three red apples")["remarks"]
        == []
    )


def test_the_api_lists_pairs_by_filter(admin, pair) -> None:
    make_pair("shapes", slug="shapes_1", prompt="a round sign", contrast="a square sign")
    reply = admin.get(reverse("api-prompts"), {"category": "shapes"}).json()
    assert [entry["id"] for entry in reply["results"]] == ["shapes_1"]
    assert reply["results"][0]["contrast"] == "a square sign"


def test_the_pair_page_asks_for_the_images_of_both_sides(admin, pair) -> None:
    candidate = make_candidate(pair=pair)
    page = admin.get(reverse("prompts:pair", args=["counting_5"])).content.decode()
    for side, shown in (("prompt", True), ("contrast", False)):
        address = reverse("candidates:of_pair", args=[pair.pk, side])
        assert f'data-fragment="{address}"' in page
        piece = admin.get(address).content.decode()
        assert (reverse("candidates:preview", args=[candidate.key]) in piece) == shown
        assert ("No image of this side yet." in piece) != shown
