"""The leaderboard's pages: who sees them, what they say, downloads and the API."""

from __future__ import annotations

import json
import re
from unittest import mock

import numpy as np
import pytest
from django.core.cache import cache
from django.core.management import call_command
from django.urls import reverse

from croc_annotate.benchmark.boards import View, release_board
from croc_annotate.benchmark.models import ExternalResult
from croc_annotate.benchmark.protocol import Policy
from croc_annotate.benchmark.worst import has_value, ordered_pairs
from croc_annotate.candidates.models import Candidate
from croc_annotate.releases.models import Release
from tests.benchmark.fakes import Counting
from tests.benchmark.world import close_release, open_release, small_release
from tests.factories import make_user

pytestmark = pytest.mark.django_db
FAKE = "tests.benchmark.fakes:Counting"


@pytest.fixture(autouse=True)
def fresh(settings):
    # A cache of this process: other test runs on this machine may empty a shared one.
    settings.CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}
    cache.clear()
    Counting.reset()


@pytest.fixture
def release():
    release = small_release(pairs=12, images=2)
    call_command("run_benchmark", metric=[FAKE, "random"], release="small")
    call_command("run_benchmark", metric=[FAKE], release="small", revision="2",
                 option=["name=other"])  # fmt: skip
    Release.objects.filter(pk=release.pk).update(is_public=True)
    return release


def page(client, name="leaderboard", *args, status=200, **query):
    response = client.get(reverse(f"benchmark:{name}", args=args), query)
    assert response.status_code == status
    return response.content.decode()


def chart(html, name):
    found = re.search(rf'<script id="{name}" type="application/json">(.*?)</script>', html, re.S)
    return json.loads(found.group(1))


def test_a_public_leaderboard_is_there_for_everybody(client, release):
    html = page(client)
    assert "Counting" in html
    assert "48" in html
    assert [row["label"] for row in chart(html, "ranking-data")["rows"]][-1] == "Random"


def test_what_is_not_public_is_for_reviewers_only(client, release):
    Release.objects.update(is_public=False)
    assert "Nothing is public yet" in page(client)
    page(client, release="small", status=403)
    page(client, "metric", "counting", release="small", status=403)
    page(client, "download", "json", release="small", status=403)
    candidate = Candidate.objects.first()
    page(client, "image", release.pk, candidate.pk, status=404)
    client.force_login(make_user("annotator"))
    assert "No release to show" in page(client)
    page(client, release="small", status=403)
    client.force_login(make_user("reviewer"))
    assert "Counting" in page(client, release="small")
    assert (
        client.get(reverse("benchmark:image", args=[release.pk, candidate.pk])).status_code == 200
    )


def test_the_permanent_link_names_the_version_and_the_choices(client, release):
    html = page(client, ties="half", generator=Candidate.objects.first().generator.slug)
    assert "release=small%401.0.0" in html
    assert "ties=half" in html


def test_a_release_that_is_not_there_is_not_found(client, release):
    page(client, release="nothing", status=404)
    page(client, "metric", "nothing", status=404)


def test_the_heat_map_is_on_the_scale_from_minus_one_to_one(client, release):
    html = page(client)
    table = chart(html, "text-map")
    document = json.loads(page(client, "download", "json"))
    value = document["metrics"]["counting"]["categories"]["counting"]["text"]
    row = table["rows"].index("Counting")
    assert table["values"][row][0] == pytest.approx(2 * value - 1)
    assert table["rows"][-1] == "AVG"
    assert "of=counting" in table["hrefs"][row][0]


def test_a_metrics_page_shows_its_worst_pairs_with_both_images_and_four_scores(client, release):
    html = page(client, "metric", "counting")
    cards = html.split('<article class="pair-card card">')[1:]
    shares = [float(m) for m in re.findall(r"right in\s+([\d.]+) %", html)]
    assert shares == sorted(shares)
    assert len(cards) == len(shares) > 0
    assert max(shares) < 100
    assert cards[0].count("<img ") == 2
    assert cards[0].count('class="pair-score') == 4
    assert "<mark>" in cards[0]
    image = re.search(r'<img src="([^"]+)"', cards[0]).group(1)
    assert client.get(image).status_code == 200
    best = page(client, "metric", "counting", order="best")
    good = [float(m) for m in re.findall(r"right in\s+([\d.]+) %", best)]
    assert good == sorted(good, reverse=True)
    assert min(good) > 0


def test_a_metric_without_failures_says_so_in_words(client, release):
    # First, so that no module is imported, and keeps what stands in, while it stands in.
    page(client, "metric", "counting")
    with mock.patch("croc_annotate.benchmark.worst.pair_means", return_value=np.ones(12)):
        html = page(client, "metric", "counting")
        assert "It gets every pair right" in html
        assert "It gets no pair right" not in html
    with mock.patch("croc_annotate.benchmark.worst.pair_means", return_value=np.zeros(12)):
        assert "It gets no pair right" in page(client, "metric", "counting", order="best")
    with mock.patch("croc_annotate.benchmark.worst.pair_means", return_value=np.full(12, np.nan)):
        assert "No pair here" in page(client, "metric", "counting")


def test_a_visit_of_a_metrics_page_sorts_its_pairs_once(client, release):
    place = "croc_annotate.benchmark.pages.ordered_pairs"
    with mock.patch(place, wraps=ordered_pairs) as sorting:
        page(client, "metric", "counting")
        assert sorting.call_count == 1
        page(client, "metric", "counting", of="no such category")  # an empty list
        assert sorting.call_count == 2


def test_the_words_for_an_empty_list_are_those_of_the_chosen_category(client, release):
    board = release_board(release, View(policy=Policy(missing="skip")))
    evaluation = board.entry("counting").evaluation
    assert has_value(evaluation, statistic="image")
    assert has_value(evaluation, statistic="image", category="counting")
    assert not has_value(evaluation, statistic="image", category="negation")


def test_two_metrics_side_by_side(client, release, settings):
    html = page(client, "compare", a="counting", b="other")
    assert "overall" in html
    assert "Scores shown are those of" in html
    # As everywhere else: the category's own name, and words that have a German form.
    assert re.search(r">\s*Counting · Image-based\s*<", html)
    client.cookies[settings.LANGUAGE_COOKIE_NAME] = "de"
    german = page(client, "compare", a="counting", b="other")
    del client.cookies[settings.LANGUAGE_COOKIE_NAME]
    assert re.search(r">\s*[^<]+ · Bildbasiert\s*<", german)
    page(client, "compare", a="counting", b="nothing", status=404)


@pytest.mark.parametrize(
    ("form", "start"),
    [("csv", b"release,metric"), ("json", b"{"), ("latex", b"%"), ("png", b"\x89PNG"),
     ("pdf", b"%PDF")],
)  # fmt: skip
def test_every_download(client, release, form, start):
    response = client.get(reverse("benchmark:download", args=[form]))
    assert response.content.startswith(start)
    assert "leaderboard-small-1.0.0." in response["Content-Disposition"]
    again = client.get(reverse("benchmark:download", args=[form]))
    assert again.content == response.content


def test_an_unknown_format_is_not_found(client, release):
    page(client, "download", "exe", status=404)


def test_the_api_gives_the_document_of_the_command(client, release):
    document = client.get("/api/v1/leaderboard/").json()
    assert set(document["metrics"]) == {"counting", "other", "random"}
    assert document["metrics"]["random"]["reference"]
    assert document["metrics"]["counting"]["run"]["fingerprint"]
    one = client.get("/api/v1/leaderboard/counting/").json()
    assert one["average"] == document["metrics"]["counting"]["average"]
    assert client.get("/api/v1/leaderboard/releases/").json()["releases"][0]["release"] == "small"
    Release.objects.update(is_public=False)
    assert client.get("/api/v1/leaderboard/").status_code == 404
    assert client.get("/api/v1/leaderboard/", {"release": "small"}).status_code == 403


def test_choices_that_make_no_sense_fall_back(client, release):
    html = page(client, missing="nonsense", category="nonsense", generator="nonsense")
    assert "Counting" in html


def test_filters_that_leave_no_image_say_so(client, release):
    other = small_release(pairs=1, images=1, name="tiny")
    Release.objects.filter(pk=other.pk).update(is_public=True)
    assert "Nothing to rank yet" in page(client, release="tiny")


def test_a_release_without_images_says_so(client):
    close_release(open_release("empty"), [], [])
    Release.objects.update(is_public=True)
    assert "Nothing to rank yet" in page(client, release="empty")


def test_results_from_elsewhere_stand_apart_and_are_not_ranked(client, release):
    ExternalResult.objects.create(
        board="A board", metric="Elsewhere-9000", configuration="zero-shot", measure="Recall@1",
        value=39.1, unit="%", source="A paper",
    )  # fmt: skip
    html = page(client)
    ranking, _, elsewhere = html.partition('id="elsewhere"')
    assert "Elsewhere-9000" not in ranking
    assert "not reproduced" in elsewhere


def test_a_withdrawn_release_says_so(client, release):
    from croc_annotate.releases.services import withdraw_release

    withdraw_release(release=release, note="wrong images")
    assert "wrong images" in page(client, release="small@1.0.0")


def test_the_runs_page_is_for_reviewers(client, release):
    assert client.get(reverse("benchmark:runs")).status_code == 302
    client.force_login(make_user("reviewer"))
    html = page(client, "runs")
    assert "Done" in html
    assert "<html" not in page(client, "runs", part="table")


def test_the_second_visit_asks_the_database_little(client, release, django_assert_max_num_queries):
    page(client)
    with django_assert_max_num_queries(12):
        page(client)
