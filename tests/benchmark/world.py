"""Releases for the tests of the benchmark, written row by row (public functions need votes)."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from io import StringIO

from django.core.management import call_command

from croc_annotate.candidates.models import Candidate, Generator
from croc_annotate.prompts.models import Category, ContrastPair
from croc_annotate.releases.models import Release, ReleaseMember, ReleasePair
from croc_annotate.releases.records import evaluated_side
from croc_annotate.releases.services import seal
from tests.factories import make_candidate, png_bytes

AT = datetime(2026, 3, 1, tzinfo=UTC)


def open_release(name="test"):
    return Release.objects.create(name=name, rule="majority", created_at=AT, sealed=False)


def close_release(release, pairs, candidates):
    ReleasePair.objects.bulk_create(
        ReleasePair(release=release, pair=pair, position=i) for i, pair in enumerate(pairs)
    )
    ReleaseMember.objects.bulk_create(
        ReleaseMember(
            release=release, candidate=c, position=i, reason="verified", verified_by="majority"
        )
        for i, c in enumerate(candidates)
    )
    seal(release)
    return release


def release_of_tables(tables, *, name="golden"):
    """A release with one member for each row of score tables; images are names and hashes only."""
    release = open_release(name)
    pairs = ContrastPair.objects.bulk_create(
        ContrastPair(
            slug=slug, category_id=category, prompt=prompt, contrast=contrast,
            alt_contrast="another wording" if category == "negation" else "", bank="test",
        )
        for slug, category, (prompt, contrast) in zip(
            tables.pair_ids, tables.category_of, tables.texts, strict=True
        )
    )  # fmt: skip
    generators: dict[str, Generator] = {}
    candidates = []
    for side in ("prompt", "contrast"):
        table = tables.sides[side]
        for path, index in zip(table.paths.to_pylist(), table.pair.tolist(), strict=True):
            _, _, maker, number = path.rsplit("/", 1)[-1].removesuffix(".png").split("___")
            if maker not in generators:
                generators[maker] = Generator.objects.create(slug=maker, label=maker)
            pair = pairs[index]
            own = "prompt" if side == "prompt" else evaluated_side(pair.category_id)
            sha256 = hashlib.sha256(path.encode()).hexdigest()
            candidates.append(
                Candidate(
                    pair=pair, side=own, generator=generators[maker],
                    seed=int(number.removeprefix("image")), state="rendered", sha256=sha256,
                    image=f"originals/{sha256}.png",
                )
            )  # fmt: skip
    Candidate.objects.bulk_create(candidates)
    return close_release(release, pairs, candidates)


def public_leaderboard():
    """A small public release with the scores of a metric "fake": something on the leaderboard's pages."""
    release = small_release(pairs=12, images=2)
    call_command(
        "run_benchmark", metric=["tests.benchmark.fakes:Counting"], release="small",
        option=["name=fake"], stdout=StringIO(),
    )  # fmt: skip
    Release.objects.filter(pk=release.pk).update(is_public=True)


def small_release(*, pairs=3, images=2, name="small", category="counting"):
    """A release with real small image files: `images` on each side of each pair."""
    release = open_release(name)
    # A test with real transactions empties the tables, the migrated categories too.
    Category.objects.get_or_create(slug=category, defaults={"label": category, "position": 9})
    made, candidates = [], []
    for number in range(pairs):
        pair = ContrastPair.objects.create(
            slug=f"{category}_{name}_{number}", category_id=category, bank="test",
            prompt=f"{number + 2} red apples", contrast=f"{number + 3} red apples in {name}",
        )  # fmt: skip
        made.append(pair)
        for side in ("prompt", "contrast"):
            candidates += [
                make_candidate(pair=pair, side=side, data=png_bytes()) for _ in range(images)
            ]
    return close_release(release, made, candidates)
