"""From a campaign's consensus to the rows of a release."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from django.conf import settings

from croc_annotate.annotation.models import Judgement, TextRole
from croc_annotate.candidates.models import Candidate, Generator
from croc_annotate.lib.hashing import keyed_pseudonym
from croc_annotate.prompts.models import Category
from croc_annotate.releases.models import ReleaseAnnotation, ReleaseMember, ReleasePair
from croc_annotate.releases.ordering import SIDE_ORDER, pair_key
from croc_annotate.releases.published import generator_fields
from croc_annotate.releases.reasons import REASONS, reason_for

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from croc_annotate.annotation.models import Campaign
    from croc_annotate.releases.models import Release

BATCH = 2_000


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the rule says about one item."""

    state: str
    verified_by: str
    n_accept: int
    n_reject: int
    n_unsure: int
    posterior: float | None

    @property
    def judgements(self) -> int:
        """How many people answered."""
        return self.n_accept + self.n_reject + self.n_unsure


@dataclass(frozen=True, slots=True)
class Scope:
    """A candidate that the campaign covers, with what decides its place and its reason."""

    candidate_id: int
    pair_id: int
    slug: str
    version: int
    category: str
    pair_active: bool
    side: str
    generator: str
    seed: int
    state: str


def candidates_in_scope(campaign: Campaign) -> list[Scope]:
    """Every candidate that the campaign is about, in the order of the files."""
    found = Candidate.objects.all()
    if campaign.categories:
        found = found.filter(pair__category_id__in=campaign.categories)
    if campaign.generators:
        found = found.filter(generator__slug__in=campaign.generators)
    if campaign.banks:
        found = found.filter(pair__bank__in=campaign.banks)
    rows = found.values_list(
        "id", "pair_id", "pair__slug", "pair__version", "pair__category_id", "pair__active",
        "side", "generator__slug", "seed", "state",
    )  # fmt: skip
    positions = category_positions()
    keys: dict[int, tuple[object, ...]] = {}

    def key(scope: Scope) -> tuple[object, ...]:
        if scope.pair_id not in keys:
            keys[scope.pair_id] = pair_key(
                category=scope.category, slug=scope.slug, version=scope.version, positions=positions
            )
        return (keys[scope.pair_id], SIDE_ORDER[scope.side], scope.generator, scope.seed)

    return sorted((Scope(*row) for row in rows.iterator(chunk_size=BATCH)), key=key)


def category_positions() -> dict[str, int]:
    """The order of the categories."""
    return dict(Category.objects.values_list("slug", "position"))


def verdicts_by_candidate(table: Any) -> dict[tuple[int, str], Verdict]:
    """The consensus table as a look-up by candidate and text role."""
    columns = [
        table.candidate_id, table.text_role, table.state, table.verified_by, table.n_accept,
        table.n_reject, table.n_unsure, table.posterior,
    ]  # fmt: skip
    found = {}
    for candidate, role, *rest in zip(*(_listed(column) for column in columns), strict=True):
        found[candidate, str(role)] = _verdict(*rest)
    return found


def _verdict(state: Any, by: Any, accept: int, reject: int, unsure: int, posterior: Any) -> Verdict:
    # NaN where there is no fit: absent, not a number. Six places: the last bits of a fit depend
    # on the order in which a database returns rows.
    chance = None if posterior is None or posterior != posterior else round(float(posterior), 6)
    return Verdict(str(state), str(by or ""), int(accept), int(reject), int(unsure), chance)


def _listed(column: Any) -> list[Any]:
    return column.tolist() if isinstance(column, np.ndarray) else list(column)


def member_rows(
    release: Release,
    scope: Sequence[Scope],
    verdicts: dict[tuple[int, str], Verdict],
    *,
    exclusive: bool,
) -> Iterator[ReleaseMember]:
    """One row for each candidate, with its reason."""
    for position, item in enumerate(scope):
        own = verdicts.get((item.candidate_id, TextRole.OWN.value))
        other = verdicts.get((item.candidate_id, TextRole.OTHER.value))
        reason = reason_for(
            pair_active=item.pair_active,
            candidate_state=item.state,
            own=own.state if own else None,  # type: ignore[arg-type]
            other=other.state if other else None,  # type: ignore[arg-type]
            other_judgements=other.judgements if other else 0,
            exclusive=exclusive,
        )
        yield ReleaseMember(
            release=release,
            candidate_id=item.candidate_id,
            position=position,
            reason=reason,
            verified_by=own.verified_by if own and reason == "verified" else "",
            n_accept=own.n_accept if own else 0,
            n_reject=own.n_reject if own else 0,
            n_unsure=own.n_unsure if own else 0,
            posterior=own.posterior if own else None,
        )


def store_members(
    release: Release,
    scope: Sequence[Scope],
    verdicts: dict[tuple[int, str], Verdict],
    *,
    exclusive: bool,
) -> dict[str, Any]:
    """Write pairs and members; return the counts, in all and by category."""
    counts: Counter[str] = Counter()
    by_category: dict[str, Counter[str]] = {}
    batch: list[ReleaseMember] = []
    for item, row in zip(
        scope, member_rows(release, scope, verdicts, exclusive=exclusive), strict=True
    ):
        counts[row.reason] += 1
        by_category.setdefault(item.category, Counter())[row.reason] += 1
        batch.append(row)
        if len(batch) == BATCH:
            ReleaseMember.objects.bulk_create(batch)
            batch = []
    ReleaseMember.objects.bulk_create(batch)
    pairs = store_pairs(release, scope)
    return {
        "counts": {reason: counts[reason] for reason in REASONS},
        "by_category": {
            slug: {reason: found[reason] for reason in REASONS}
            for slug, found in by_category.items()
        },
        "pairs": pairs,
    }


def store_pairs(release: Release, scope: Sequence[Scope]) -> int:
    """Write the pairs in use, once each, in the order of the files."""
    ids = dict.fromkeys(item.pair_id for item in scope if item.pair_active)
    ReleasePair.objects.bulk_create(
        (
            ReleasePair(release=release, pair_id=pair_id, position=position)
            for position, pair_id in enumerate(ids)
        ),
        batch_size=BATCH,
    )
    return len(ids)


def store_annotations(release: Release, campaign: Campaign, scope: Sequence[Scope]) -> int:
    """Copy the counted judgements of the candidates under pseudonyms; return how many."""
    place = {item.candidate_id: position for position, item in enumerate(scope)}
    rows = Judgement.objects.counted(campaign).values_list(
        "item__candidate_id", "item__text_role", "annotator__username", "verdict", "mode",
        "guideline_version", "active_ms", "created_at",
    )  # fmt: skip
    names: dict[str, str] = {}
    found: list[tuple[Any, ...]] = []
    for candidate, role, username, *rest in rows.iterator(chunk_size=BATCH):
        if candidate in place:
            if username not in names:
                names[username] = pseudonym(campaign, username)
            found.append((place[candidate], role, names[username], candidate, *rest))
    # "other" sorts before "own"; the pseudonym is unique within an item.
    found.sort(key=lambda row: row[:3])
    ReleaseAnnotation.objects.bulk_create(
        (
            ReleaseAnnotation(
                release=release, candidate_id=candidate, position=position, text_role=role,
                annotator=name, verdict=verdict, mode=mode, guideline_version=guideline,
                active_ms=ms, at=at,
            )
            for position, (_, role, name, candidate, verdict, mode, guideline, ms, at)
            in enumerate(found)
        ),
        batch_size=BATCH,
    )  # fmt: skip
    return len(found)


def pseudonym(campaign: Campaign, username: str) -> str:
    """A person's name in the files of a campaign's releases: the same in each of them."""
    return keyed_pseudonym(settings.PSEUDONYM_KEY, f"{campaign.slug}\x1f{username}")


def generator_facts(slugs: set[str]) -> dict[str, dict[str, Any]]:
    """Model, revision and licence of each generator as they are now."""
    fields = generator_fields(slugs)
    return {
        row.slug: {
            "label": row.label,
            "model_id": row.model_id,
            "revision": row.revision,
            "licence": row.licence,
            "field": fields[row.slug],
            "is_drawn": row.is_drawn,
        }
        for row in Generator.objects.filter(slug__in=slugs).order_by("slug")
    }
