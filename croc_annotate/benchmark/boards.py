"""The leaderboard of a release, from stored scores; computed once and cached."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from django.core.cache import cache
from django.utils import timezone

from croc_annotate.benchmark import prepared
from croc_annotate.benchmark.board import Board, build_board
from croc_annotate.benchmark.intervals import DRAWS, SEED
from croc_annotate.benchmark.prepared import stamp_of
from croc_annotate.benchmark.protocol import Policy
from croc_annotate.benchmark.selectors import (
    ReleaseImages,
    load_scores,
    release_images,
    shown_runs,
)
from croc_annotate.lib.hashing import sha256_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from croc_annotate.benchmark.layout import Bools, Layout, Scores
    from croc_annotate.benchmark.models import MetricRun
    from croc_annotate.releases.models import Release

T = TypeVar("T")
_HOURS = 3600
_KEEP = 24 * _HOURS
HUMAN = "human"


@dataclass(frozen=True)
class View:
    """What a leaderboard shows: a policy and a choice of images."""

    policy: Policy = field(default_factory=Policy)
    generator: str = ""
    """Only images of this generator."""
    categories: tuple[str, ...] = ()
    """Only these; empty means all."""
    voted_only: bool = False
    """Only images that the human reference row has votes on, the same for every metric."""
    draws: int = DRAWS
    seed: int = SEED


class EmptyBoardError(LookupError):
    """Nothing to show: no finished run, or no image left; the message says which."""


# What the page shows before anybody chooses: kept in the database, the rest in the cache.
PAGE_VIEW = View(policy=Policy(missing="skip"))


def release_board(release: Release, view: View, *, older: bool = False) -> Board:
    """The board of all finished runs; raises EmptyBoardError or MissingScoresError.

    `older` accepts a kept board that newer runs are missing from (then `outdated`), where a
    worker can renew it meanwhile: a visitor does not wait for what somebody else is computing.
    """
    runs = shown_runs(release)
    if not runs:
        raise EmptyBoardError(
            f"no metric has been scored on “{release}” yet: run_benchmark or import_scores"
        )
    stamp = stamp_of(release.sha256, [_stamp(r) for r in runs])
    key = _key("board", release.pk, stamp, asdict(view))
    board: Board | None = cache.get(key)
    if board is None and view == PAGE_VIEW:
        found = prepared.read(release, "board", stamp, older=older)
        if found is not None:
            board = replace(found.value, made_at=found.made_at, outdated=not found.current)
            if board.outdated:
                return board
            cache.set(key, board, _KEEP)
    if board is None:
        board = replace(_build(release, runs, view), made_at=timezone.now())
        cache.set(key, board, _KEEP)
        if view == PAGE_VIEW:
            prepared.write(release, "board", stamp, board)
    return board


def prepare(release: Release) -> None:
    """Compute and keep what the leaderboard's page shows first, if there is anything to show."""
    with suppress(EmptyBoardError):
        release_board(release, PAGE_VIEW)


def cached_images(release: Release) -> ReleaseImages:
    """The scored images; a release never changes, so they are kept."""
    stamp = stamp_of(release.sha256)
    return _kept(release, "images", stamp, lambda: release_images(release))


def board_names(runs: Sequence[MetricRun]) -> dict[int, str]:
    """A unique name on the board for each run: the metric's, with its fingerprint if taken."""
    names: dict[int, str] = {}
    for run in runs:
        name = run.metric.name
        if name in names.values():
            name = f"{name}@{run.metric.fingerprint[:8]}"
        names[run.pk] = name
    return names


def run_scores(run: MetricRun, images: ReleaseImages) -> Scores:
    """The scores of one run in the release's own order, kept while the run stays as it is."""
    name, stamp = f"scores-{run.pk}", stamp_of(run.release.sha256, _stamp(run))
    return _kept(run.release, name, stamp, lambda: load_scores(run.metric, images))


def narrow(
    images: ReleaseImages, scores: dict[str, Scores], view: View
) -> tuple[Layout, dict[str, Scores], Bools, Bools]:
    """Layout and scores of the images that the view shows, and the masks of those images."""
    layout = images.layout
    pairs, prompt, contrast = _masks(layout, scores, view)
    narrowed, keep_p, keep_q = layout.restrict(pairs=pairs, prompt=prompt, contrast=contrast)
    if not narrowed.n_pairs:
        raise EmptyBoardError("no image is left under these filters")
    return (
        narrowed,
        {name: own.keep_images(keep_p, keep_q) for name, own in scores.items()},
        keep_p,
        keep_q,
    )


def run_facts(run: MetricRun) -> dict[str, Any]:
    """What stands beside a row: where it comes from and what it ran on."""
    return {
        "id": run.pk,
        "fingerprint": run.metric.fingerprint,
        "metric": run.metric.parts,
        "release": str(run.release),
        "release_sha256": run.release.sha256,
        "origin": run.origin,
        "n_scores": run.n_scores,
        "n_missing": run.n_missing,
        "n_truncated": run.n_truncated,
        "reasons": run.reasons,
        "timing": run.timing,
        "environment": run.environment,
        "finished_at": run.finished_at.isoformat() if run.finished_at else None,
    }


def _build(release: Release, runs: Sequence[MetricRun], view: View) -> Board:
    images = cached_images(release)
    if not images.layout.n_pairs:
        raise EmptyBoardError(f"“{release}” has no verified image of a scored side")
    names = board_names(runs)
    scores = {names[run.pk]: run_scores(run, images) for run in runs}
    layout, scores, _, _ = narrow(images, scores, view)
    return build_board(
        layout,
        scores,
        policy=view.policy,
        halves=frozenset(names[r.pk] for r in runs if r.metric.parts.get("ties") == "half"),
        sparse=frozenset(names[r.pk] for r in runs if r.metric.name == HUMAN),
        reference=frozenset(names[r.pk] for r in runs if r.metric.is_reference),
        labels={names[r.pk]: _label(r, names[r.pk]) for r in runs},
        facts={names[r.pk]: run_facts(r) for r in runs},
        draws=view.draws,
        seed=view.seed,
    )


def _kept(release: Release, name: str, stamp: str, make: Callable[[], T]) -> T:
    """From the cache, else from the database, else made and put into both."""
    key = _key(name, release.pk, stamp)
    value: T | None = cache.get(key)
    if value is None:
        found = prepared.read(release, name, stamp)
        value = make() if found is None else found.value
        if found is None:
            prepared.write(release, name, stamp, value)
        cache.set(key, value, _KEEP)
    return value


def _masks(
    layout: Layout, scores: dict[str, Scores], view: View
) -> tuple[Bools | None, Bools | None, Bools | None]:
    pairs = prompt = contrast = None
    if view.categories:
        codes = [i for i, name in enumerate(layout.categories) if name in view.categories]
        pairs = np.isin(layout.category, codes)
    if view.generator:
        code = (
            layout.generators.index(view.generator) if view.generator in layout.generators else -1
        )
        prompt, contrast = layout.prompt.generator == code, layout.contrast.generator == code
    if view.voted_only:
        if HUMAN not in scores:
            raise EmptyBoardError("there is no human row: no vote was kept out of the selection")
        human = scores[HUMAN]
        voted_p = ~np.isnan(human.prompt_own) & ~np.isnan(human.prompt_other)
        voted_q = ~np.isnan(human.contrast_own) & ~np.isnan(human.contrast_other)
        prompt = voted_p if prompt is None else prompt & voted_p
        contrast = voted_q if contrast is None else contrast & voted_q
    return pairs, prompt, contrast


def _label(run: MetricRun, name: str) -> str:
    return run.metric.label if "@" not in name else f"{run.metric.label} ({name.split('@')[1]})"


def _stamp(run: MetricRun) -> list[Any]:
    # A score belongs to metric, image and text: a run on another release may have filled a gap.
    times = [run.finished_at, run.scored_at]  # type: ignore[attr-defined]  # by with_metric()
    finished = [at.isoformat() if at else "" for at in times]
    return [run.pk, run.metric.fingerprint, *finished, run.metric.label]


def _key(kind: str, *parts: Any) -> str:
    return f"benchmark-{kind}-{sha256_text(json.dumps(parts, default=str))}"
