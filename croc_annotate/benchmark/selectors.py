"""Reading what is scored, and the scores: from rows to the arrays of the protocol."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, fields
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from croc_annotate.annotation.models import Judgement, Purpose, TextRole, Verdict
from croc_annotate.benchmark.layout import Layout, Scores, Side, in_category_order
from croc_annotate.benchmark.models import MetricRun, Score
from croc_annotate.lib.hashing import sha256_text
from croc_annotate.releases.records import ScoredMember
from croc_annotate.releases.selectors import release_pairs, scored_members

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from croc_annotate.benchmark.layout import Floats, Ints
    from croc_annotate.benchmark.metric import ReferenceVotes
    from croc_annotate.benchmark.models import MetricVersion
    from croc_annotate.releases.models import Release

_CHUNK = 20_000
_AS_ROW = attrgetter(*(f.name for f in fields(ScoredMember)))


@dataclass(frozen=True)
class ReleaseImages:
    """The scored images of a release, side by side with the layout that compares them."""

    layout: Layout
    prompt: tuple[ScoredMember, ...]
    """One a row of `layout.prompt`."""
    contrast: tuple[ScoredMember, ...]

    @cached_property
    def text_hashes(self) -> tuple[tuple[str, str], ...]:
        """SHA-256 of (prompt, contrast) of each pair."""
        return tuple((sha256_text(p), sha256_text(c)) for p, c in self.layout.texts)

    # Kept between visits: as plain rows, 24,000 images are packed five times as fast.
    def __getstate__(self) -> dict[str, Any]:
        return {
            **self.__dict__,
            "prompt": [_AS_ROW(member) for member in self.prompt],
            "contrast": [_AS_ROW(member) for member in self.contrast],
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        sides = {s: tuple(ScoredMember(*row) for row in state[s]) for s in ("prompt", "contrast")}
        self.__dict__.update({**state, **sides})

    @property
    def members(self) -> Iterator[ScoredMember]:
        """All scored images, those of the prompt side first."""
        yield from self.prompt
        yield from self.contrast


@dataclass(frozen=True)
class ImageTask:
    """One image file and the texts that it is scored against."""

    sha256: str
    storage_name: str
    texts: tuple[str, ...]


def release_images(release: Release) -> ReleaseImages:
    """The verified images of P and Q of every pair that has any, as arrays."""
    members = scored_members(release)
    facets = {p.slug: (p.property, p.topic, p.entity) for p in release_pairs(release)}
    first: dict[str, ScoredMember] = {}
    for member in members:
        first.setdefault(member.pair_slug, member)
    categories = in_category_order([m.category for m in first.values()])
    code = {name: index for index, name in enumerate(categories)}
    # Whole categories in their order; within one, pairs in the order of the release's files.
    slugs = sorted(first, key=lambda slug: code[first[slug].category])
    index = {slug: i for i, slug in enumerate(slugs)}
    makers = tuple(sorted({m.generator for m in members}))
    sides = {role: tuple(m for m in members if m.role == role) for role in ("prompt", "contrast")}
    layout = Layout(
        pair_ids=tuple(slugs),
        texts=tuple((first[s].prompt, first[s].contrast) for s in slugs),
        categories=tuple(categories),
        category=np.array([code[first[s].category] for s in slugs], dtype=np.int64),
        generators=makers,
        prompt=_side(sides["prompt"], index, makers),
        contrast=_side(sides["contrast"], index, makers),
        facets={
            **{
                name: tuple(facets.get(s, ("", "", ""))[k] for s in slugs)
                for k, name in enumerate(("property", "topic", "entity"))
            },
            "difficulty": _difficulty(members, slugs),
        },
    )
    return ReleaseImages(layout, sides["prompt"], sides["contrast"])


def image_tasks(images: ReleaseImages) -> list[ImageTask]:
    """Each image file once, with all texts that any of its pairs asks for, pair by pair."""
    texts: dict[str, dict[str, None]] = defaultdict(dict)
    names: dict[str, str] = {}
    order = sorted(images.members, key=lambda m: m.pair_slug)
    for member in order:
        names.setdefault(member.sha256, member.storage_name)
        texts[member.sha256] |= {member.prompt: None, member.contrast: None}
    return [ImageTask(sha, names[sha], tuple(texts[sha])) for sha in names]


def stored_keys(metric: MetricVersion) -> set[tuple[str, str]]:
    """(image hash, text hash) of everything that the metric has scored."""
    rows = Score.objects.filter(metric=metric).values_list("image_sha256", "text_sha256")
    return set(rows.iterator(chunk_size=_CHUNK))


def load_scores(metric: MetricVersion, images: ReleaseImages) -> Scores:
    """The stored scores of a metric, in the order of the layout; NaN where there is none."""
    rows = Score.objects.filter(metric=metric, value__isnull=False)
    values = {
        (image, text): value
        for image, text, value in rows.values_list("image_sha256", "text_sha256", "value").iterator(
            chunk_size=_CHUNK
        )
    }
    return scores_from(values, images)


def scores_from(values: Mapping[tuple[str, str], float | None], images: ReleaseImages) -> Scores:
    """Lay out scores by (image hash, text hash); NaN where there is none."""
    layout = images.layout
    hashes = images.text_hashes

    def column(members: Sequence[ScoredMember], pair: Ints, text: int) -> Floats:
        nan = float("nan")
        return np.array(
            [
                values.get((m.sha256, hashes[p][text]), nan)
                for m, p in zip(members, pair.tolist(), strict=True)
            ],
            dtype=np.float64,
        )

    return Scores(
        prompt_own=column(images.prompt, layout.prompt.pair, 0),
        prompt_other=column(images.prompt, layout.prompt.pair, 1),
        contrast_own=column(images.contrast, layout.contrast.pair, 1),
        contrast_other=column(images.contrast, layout.contrast.pair, 0),
    )


def shown_runs(release: Release) -> list[MetricRun]:
    """The finished runs of a release that its leaderboard compares."""
    return list(MetricRun.objects.on(release).shown().with_metric())


def reference_votes(*, release: Release) -> ReferenceVotes:
    """Votes that were kept out of the selection: (image hash, text) → accept or not.

    The newest one where an image and text have several.
    """
    rows = (
        Judgement.objects.current()
        .votes()
        .filter(
            purpose=Purpose.REFERENCE,
            set_aside_at__isnull=True,
            item__candidate__memberships__release=release,
        )
        .order_by("id")
        .values_list(
            "item__candidate__sha256",
            "item__candidate__side",
            "item__text_role",
            "verdict",
            "item__candidate__pair__prompt",
            "item__candidate__pair__contrast",
        )
    )
    votes: dict[tuple[str, str], bool] = {}
    for sha256, side, role, verdict, prompt, contrast in rows.iterator(chunk_size=_CHUNK):
        shows_prompt = (side == "prompt") == (role == TextRole.OWN)
        votes[sha256, prompt if shows_prompt else contrast] = verdict == Verdict.ACCEPT
    return votes


def _side(members: Sequence[ScoredMember], index: dict[str, int], makers: Sequence[str]) -> Side:
    code = {name: i for i, name in enumerate(makers)}
    return Side(
        np.array([index[m.pair_slug] for m in members], dtype=np.int64),
        np.array([code[m.generator] for m in members], dtype=np.int64),
    )


def _difficulty(members: Sequence[ScoredMember], slugs: Sequence[str]) -> tuple[str, ...]:
    """Pairs in thirds by their number of verified images: few mean that generators fail on it."""
    counts: dict[str, int] = defaultdict(int)
    for member in members:
        counts[member.pair_slug] += 1
    ordered = sorted(counts.values())
    if not ordered or ordered[0] == ordered[-1]:
        return ("",) * len(slugs)
    low, high = ordered[len(ordered) // 3], ordered[2 * len(ordered) // 3]
    names = {True: f"1 few images (< {low})", False: f"3 many images (≥ {high})"}
    return tuple(
        names[True] if counts[s] < low
        else names[False] if counts[s] >= high
        else f"2 some images ({low}–{high - 1})"
        for s in slugs
    )  # fmt: skip
