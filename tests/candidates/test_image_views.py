from __future__ import annotations

import pytest
from django.urls import reverse

from croc_annotate.candidates.models import Candidate
from croc_annotate.candidates.storage import read_file
from tests import factories

pytestmark = pytest.mark.django_db


def url(candidate: Candidate, name: str = "display") -> str:
    return reverse(f"candidates:{name}", args=[candidate.key])


def body(response) -> bytes:
    return response.content


def test_an_annotator_gets_the_stripped_copy_and_the_thumbnail(client) -> None:
    client.force_login(factories.make_user())
    candidate = factories.make_candidate()
    response = client.get(url(candidate))
    assert response["Content-Type"] == "image/jpeg"
    assert body(response) == read_file(candidate.display)
    assert body(client.get(url(candidate, "preview"))) == read_file(candidate.preview)


def test_nothing_in_the_answer_tells_generator_side_or_hash(client) -> None:
    client.force_login(factories.make_user())
    candidate = factories.make_candidate(
        generator=factories.make_generator("FLUX_1_dev"), side="contrast"
    )
    response = client.get(url(candidate))
    told = f"{url(candidate)} {response.headers}".lower()
    for secret in ("flux", "contrast", candidate.pair.slug, candidate.sha256[:12]):
        assert secret not in told


@pytest.mark.parametrize("role", ["annotator", "reviewer", "admin"])
def test_only_reviewers_and_admins_get_originals_wall_and_details(client, role: str) -> None:
    client.force_login(factories.make_user(role))
    candidate = factories.make_candidate()
    expected = 403 if role == "annotator" else 200
    for address in (
        url(candidate, "original"),
        url(candidate, "detail"),
        reverse("candidates:browse"),
    ):
        assert client.get(address).status_code == expected


def test_strangers_get_nothing(client) -> None:
    candidate = factories.make_candidate()
    assert client.get(url(candidate)).status_code == 401
    assert client.get(url(candidate, "preview")).status_code == 401
    assert client.get(url(candidate, "original")).status_code == 302
    assert client.get(reverse("candidates:browse")).status_code == 302


def test_a_second_look_costs_no_bytes(client) -> None:
    client.force_login(factories.make_user())
    candidate = factories.make_candidate()
    first = client.get(url(candidate))
    assert first["Cache-Control"].startswith("private")
    again = client.get(url(candidate), headers={"if-none-match": first["ETag"]})
    assert again.status_code == 304
    assert again["ETag"] == first["ETag"]


def test_what_is_not_rendered_or_lost_is_not_found(client) -> None:
    client.force_login(factories.make_user())
    waiting = factories.make_candidate(rendered=False)
    assert client.get(url(waiting)).status_code == 404
    lost = factories.make_candidate()
    from django.core.files.storage import default_storage

    default_storage.delete(lost.display)
    assert client.get(url(lost)).status_code == 404


def test_behind_nginx_the_web_server_sends_the_file(client, settings) -> None:
    settings.X_ACCEL_PREFIX = "/protected/"
    client.force_login(factories.make_user())
    candidate = factories.make_candidate()
    response = client.get(url(candidate))
    assert response["X-Accel-Redirect"] == f"/protected/{candidate.display}"
    assert response.content == b""


def test_images_cannot_be_posted_to(client) -> None:
    client.force_login(factories.make_user())
    assert client.post(url(factories.make_candidate())).status_code == 405


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", {"a", "b", "w"}),
        ("category=counting", {"a", "w"}),
        ("pair=shapes_1", {"b"}),
        ("side=contrast", {"b"}),
        ("generator=G1", {"a"}),
        ("state=requested", {"w"}),
        ("seed=2", {"b"}),
        ("text=APPLES", {"a", "w"}),
        ("state=nonsense", {"a", "b", "w"}),
        ("page=99", {"a", "b", "w"}),
    ],
)
def test_the_wall_shows_what_its_filters_say(client, query: str, expected: set[str]) -> None:
    client.force_login(factories.make_user("reviewer"))
    one, two = factories.make_generator("G1"), factories.make_generator("G2")
    counting = factories.make_pair("counting", prompt="two apples", contrast="three apples")
    shapes = factories.make_pair("shapes", slug="shapes_1", prompt="a circle", contrast="a square")
    rows = {
        "a": factories.make_candidate(pair=counting, generator=one, seed=1),
        "b": factories.make_candidate(pair=shapes, side="contrast", generator=two, seed=2),
        "w": factories.make_candidate(pair=counting, generator=two, seed=3, rendered=False),
    }
    html = client.get(reverse("candidates:browse") + "?" + query).content.decode()
    assert {name for name, row in rows.items() if row.key in html} == expected


def test_the_wall_finds_an_image_by_its_hash(client) -> None:
    client.force_login(factories.make_user("admin"))
    candidate, other = factories.make_candidate(), factories.make_candidate()
    html = client.get(
        reverse("candidates:browse") + f"?hash={candidate.sha256[:10].upper()}"
    ).content.decode()
    assert candidate.key in html
    assert other.key not in html


def test_the_wall_takes_few_queries_whatever_its_size(
    client, django_assert_max_num_queries
) -> None:
    client.force_login(factories.make_user("reviewer"))
    for _ in range(8):
        factories.make_candidate()
    with django_assert_max_num_queries(8):
        client.get(reverse("candidates:browse"))


@pytest.mark.parametrize("state", ["rendered", "failed", "requested"])
def test_the_page_of_an_image_shows_its_state(client, state: str) -> None:
    from croc_annotate.candidates.services import fail_candidate

    client.force_login(factories.make_user("reviewer"))
    candidate = factories.make_candidate(rendered=state == "rendered")
    if state == "failed":
        fail_candidate(candidate=candidate, reason="blank image: <black>")
    html = client.get(url(candidate, "detail")).content.decode()
    assert candidate.pair.prompt in html
    assert ("blank image: &lt;black&gt;" in html) == (state == "failed")
    assert ("Original file" in html) == (state == "rendered")


@pytest.mark.field_case(19)
@pytest.mark.parametrize(
    "name", ["a+b.jpg", "100%.jpg", "a#b.jpg", "a?b=c.jpg", "a b.jpg", "é.jpg", "漢.jpg"]
)
def test_names_with_odd_characters_are_sent_by_us_and_by_the_web_server(
    settings, rf, name: str
) -> None:
    from urllib.parse import unquote

    from croc_annotate.candidates.serving import image_response
    from croc_annotate.candidates.storage import write_file

    write_file(f"display/{name}", b"bytes")
    assert image_response(rf.get("/"), name=f"display/{name}").content == b"bytes"
    settings.X_ACCEL_PREFIX = "/protected/"
    sent = image_response(rf.get("/"), name=f"display/{name}")["X-Accel-Redirect"]
    assert unquote(sent) == f"/protected/display/{name}"
    assert sent.isascii()
    assert not set("#? ") & set(sent)
