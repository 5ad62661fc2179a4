"""The wall is cut into parts without sorting all images; it stays the same wall."""

from __future__ import annotations

import pytest

from croc_annotate.candidates.models import Candidate
from croc_annotate.candidates.selectors import Wall, filter_candidates, in_wall_order
from tests import factories

pytestmark = pytest.mark.django_db


@pytest.fixture
def images() -> list[Candidate]:
    """Images of six pairs, made in an order that is not that of the wall."""
    generators = [factories.make_generator(slug) for slug in ("b_first", "a_second")]
    pairs = [factories.make_pair(category) for category in ("size_relation", "counting") * 3]
    for n, pair in enumerate(pairs):
        for seed in range(3 - n % 3, 0, -1):
            for side in ("contrast", "prompt"):
                for generator in generators[: 1 + n % 2]:
                    factories.make_candidate(pair=pair, side=side, generator=generator, seed=seed)
    return list(in_wall_order(Candidate.objects.all()))


def test_a_part_is_what_sorting_everything_gives(images) -> None:
    wall = Wall(Candidate.objects.all())
    assert wall.count() == len(images) > 12
    for start in range(len(images) + 2):
        for size in (1, 5, len(images)):
            assert wall[start : start + size] == images[start : start + size]


@pytest.mark.parametrize(
    "wanted",
    [
        {"category": "counting"},
        {"pair": "size_relation"},
        {"side": "contrast", "seed": 2},
        {"generator": "a_second"},
        {"text": "apples"},
        {"text": "no such words"},
        {"hash": "0"},
    ],
)
def test_so_it_is_with_filters(images, wanted) -> None:
    rows = filter_candidates(Candidate.objects.all(), wanted)
    expected, wall = list(in_wall_order(rows)), Wall(rows)
    assert wall.count() == len(expected)
    for start in range(len(expected) + 1):
        assert wall[start : start + 4] == expected[start : start + 4]


def test_a_part_reads_the_images_of_its_own_pairs_only(images, django_assert_num_queries) -> None:
    wall = Wall(Candidate.objects.all())
    with django_assert_num_queries(3) as seen:
        assert wall[2:4] == images[2:4]
    pairs = {image.pair_id for image in images[2:4]}
    listed = ", ".join(map(str, sorted(pairs)))
    assert f'"pair_id" IN ({listed})' in seen.captured_queries[-1]["sql"]
