"""Filters, groupings and downloads of a leaderboard against plain loops over the database's rows."""

from __future__ import annotations

import csv
import io
import json
from io import StringIO

import pytest
from django.core.cache import cache
from django.core.management import call_command
from django.urls import reverse

from croc_annotate.candidates.models import Candidate
from croc_annotate.lib.hashing import stable_unit
from croc_annotate.prompts.models import Category, ContrastPair
from croc_annotate.releases.models import Release
from tests.benchmark.reference import all_four_right, macro
from tests.benchmark.world import close_release, open_release
from tests.factories import make_candidate, make_generator, png_bytes

pytestmark = pytest.mark.django_db
FAKE = "tests.benchmark.fakes:Counting"
DIRECTIONS = ("text_forward", "text_inverse", "image_forward", "image_inverse")
MAKERS = ("first", "second")


@pytest.fixture
def release(settings):
    """Two categories of seven pairs, two generators, and not equally many images anywhere."""
    settings.CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}
    cache.clear()
    opened = open_release("choices")
    made, candidates = [], []
    makers = [make_generator(slug=name) for name in MAKERS]
    for category in ("counting", "shapes"):
        Category.objects.get_or_create(slug=category, defaults={"label": category, "position": 9})
        for number in range(7):
            pair = ContrastPair.objects.create(
                slug=f"{category}_{number}", category_id=category, bank="test",
                prompt=f"{number} {category}", contrast=f"{number} other {category}",
                property=("colour", "number")[number % 2], topic=("food", "sport", "")[number % 3],
                entity="apple" if number < 3 else "ball",
            )  # fmt: skip
            made.append(pair)
            for side, count in (("prompt", 1 + number % 3), ("contrast", 1 + number % 4)):
                candidates += [
                    make_candidate(pair=pair, side=side, generator=makers[k % 2], data=png_bytes())
                    for k in range(count)
                ]
    close_release(opened, made, candidates)
    Release.objects.filter(pk=opened.pk).update(is_public=True)
    call_command("run_benchmark", metric=[FAKE], stdout=StringIO())
    return opened


def images_of(pair, *, generator="", keep=lambda candidate: True):
    """(P, Q) as `reference` takes them: (own text's score, other text's score) of each image."""
    sides = {}
    for side, own, other in (
        ("prompt", pair.prompt, pair.contrast),
        ("contrast", pair.contrast, pair.prompt),
    ):
        rows = Candidate.objects.filter(pair=pair, side=side)
        rows = rows.filter(generator__slug=generator) if generator else rows
        sides[side] = [
            tuple(stable_unit("1", c.sha256, text) for text in (own, other))
            for c in rows
            if keep(c)
        ]
    return sides["prompt"], sides["contrast"]


def expected(pairs, **choice):
    return {d: macro([images_of(p, **choice) for p in pairs], d) for d in DIRECTIONS}


def board(**options):
    out = StringIO()
    call_command("leaderboard", format="json", draws=50, stdout=out, **options)
    return json.loads(out.getvalue())


def cells(found):
    return {d: pytest.approx(found[d], abs=1e-12) for d in DIRECTIONS}


@pytest.mark.parametrize("generator", ["", *MAKERS])
@pytest.mark.parametrize("category", ["counting", "shapes"])
def test_filters_by_generator_and_category_compare_what_is_left(release, generator, category):
    pairs = ContrastPair.objects.filter(category=category)
    document = board(generator=generator, category=[category])
    assert document["categories"] == [category]
    found = document["metrics"]["counting"]["categories"][category]
    assert expected(pairs, generator=generator) == cells(found)
    with_images = [images_of(p, generator=generator) for p in pairs]
    assert found["n_text_forward"] == sum(bool(p) for p, _ in with_images)
    assert found["n_image_forward"] == sum(bool(p and q) for p, q in with_images)


def test_the_page_the_api_and_the_files_hold_the_filtered_numbers(client, release):
    """One address, whatever the form: the permanent link of a view."""
    query = {"generator": "second", "category": "shapes", "release": "choices@1.0.0"}
    wanted = expected(ContrastPair.objects.filter(category="shapes"), generator="second")
    api = client.get("/api/v1/leaderboard/", query).json()
    assert wanted == cells(api["metrics"]["counting"]["categories"]["shapes"])
    file = client.get(reverse("benchmark:download", args=["json"]), query).json()
    assert wanted == cells(file["metrics"]["counting"]["categories"]["shapes"])
    table = client.get(reverse("benchmark:download", args=["csv"]), query).content.decode()
    rows = {
        row["statistic"]: float(row["value"])
        for row in csv.DictReader(io.StringIO(table))
        if row["category"] == "shapes"
    }
    assert wanted == cells(rows)
    page = client.get(reverse("benchmark:leaderboard"), query).content.decode()
    assert f"{wanted['text_forward']:.3f}" in page
    assert "generator=second&amp;category=shapes" in page


@pytest.mark.parametrize("facet", ["property", "topic", "entity"])
def test_groupings_hold_the_pairs_of_each_value(release, facet):
    found = board(by=[facet])["by"]["counting"][facet]
    values = set(ContrastPair.objects.values_list(facet, flat=True)) - {""}
    assert set(found) == values
    for value in values:
        pairs = ContrastPair.objects.filter(**{facet: value})
        assert expected(pairs) == cells(found[value])
        assert found[value]["n_text_forward"] == pairs.count()


def test_each_generator_is_compared_with_itself(release):
    found = board(by=["generator"])["by"]["counting"]["generator"]
    for maker in MAKERS:
        assert expected(ContrastPair.objects.all(), generator=maker) == cells(found[maker])


def test_difficulty_is_by_the_number_of_verified_images(release):
    found = board(by=["difficulty"])["by"]["counting"]["difficulty"]
    sizes = {p: sum(map(len, images_of(p))) for p in ContrastPair.objects.all()}
    ordered = sorted(sizes.values())
    low, high = ordered[len(ordered) // 3], ordered[2 * len(ordered) // 3]
    thirds = {
        "1": [p for p, n in sizes.items() if n < low],
        "2": [p for p, n in sizes.items() if low <= n < high],
        "3": [p for p, n in sizes.items() if n >= high],
    }
    assert {name[0] for name in found} == {name for name, pairs in thirds.items() if pairs}
    for name, own in found.items():
        assert expected(thirds[name[0]]) == cells(own)
        assert own["n_text_forward"] == len(thirds[name[0]])


def test_the_average_the_group_score_and_the_grid_within_a_generator(release):
    average = board()["metrics"]["counting"]["average"]
    by_category = [list(ContrastPair.objects.filter(category=c)) for c in ("counting", "shapes")]
    wanted = [expected(pairs) for pairs in by_category]
    for direction in DIRECTIONS:
        assert average[direction] == pytest.approx(sum(w[direction] for w in wanted) / 2, abs=1e-12)
    groups = [[all_four_right(*images_of(p)) for p in pairs] for pairs in by_category]
    assert average["group"] == pytest.approx(
        sum(sum(own) / len(own) for own in groups) / 2, abs=1e-12
    )
    assert average["same_generator_image_forward"] == pytest.approx(
        sum(_within(pairs) for pairs in by_category) / 2, abs=1e-12
    )


def _within(pairs):
    """Image forward over (i, j) of one generator only: mean over the pairs that have such."""
    values = []
    for pair in pairs:
        sides = [images_of(pair, generator=maker) for maker in MAKERS]
        grid = [t > tj for p, q in sides for t, _ in p for _, tj in q]
        if grid:
            values.append(sum(grid) / len(grid))
    return sum(values) / len(values)


def test_a_margin_counts_smaller_differences_as_ties(release):
    document = board(margin=0.2)
    found = document["metrics"]["counting"]["average"]
    sides = [images_of(pair)[0] for pair in ContrastPair.objects.all()]
    near = sum(abs(t - c) <= 0.2 for own in sides for t, c in own)
    assert found["ties_text_forward"] == pytest.approx(near / sum(map(len, sides)), abs=1e-12)
    assert near > 0
