"""From a campaign's consensus to the rows of a release."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from django.conf import settings
from django.db import connections

from croc_annotate.annotation.models import Judgement, TextRole
from croc_annotate.candidates.models import Candidate, Generator
from croc_annotate.lib.hashing import keyed_pseudonym
from croc_annotate.prompts.models import Category
from croc_annotate.releases.bulk import insert_rows
from croc_annotate.releases.models import ReleaseMember, ReleasePair
from croc_annotate.releases.ordering import SIDE_ORDER, pair_key
from croc_annotate.releases.published import generator_fields
from croc_annotate.releases.reasons import REASONS, Reason, reason_for

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


_MEMBER_COLUMNS = (
    "release_id", "candidate_id", "position", "reason", "verified_by", "n_accept", "n_reject",
    "n_unsure", "posterior",
)  # fmt: skip
_UNJUDGED = Verdict("pending", "", 0, 0, 0, None)


def reasons_of(
    scope: Sequence[Scope], verdicts: dict[tuple[int, str], Verdict], *, exclusive: bool
) -> list[Reason]:
    """Why each candidate is in or out, in the order of ``scope``."""
    found = []
    for item in scope:
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
        found.append(reason)
    return found


def store_members(
    release: Release,
    scope: Sequence[Scope],
    verdicts: dict[tuple[int, str], Verdict],
    *,
    exclusive: bool,
) -> dict[str, Any]:
    """Write pairs and members; return the counts, in all and by category."""
    reasons = reasons_of(scope, verdicts, exclusive=exclusive)
    insert_rows(ReleaseMember, _MEMBER_COLUMNS, _member_rows(release, scope, reasons, verdicts))
    by_category = Counter(
        (item.category, reason) for item, reason in zip(scope, reasons, strict=True)
    )
    counts = Counter(reasons)
    return {
        "counts": {reason: counts[reason] for reason in REASONS},
        "by_category": {
            slug: {reason: by_category[slug, reason] for reason in REASONS}
            for slug in dict.fromkeys(item.category for item in scope)
        },
        "pairs": store_pairs(release, scope),
    }


def _member_rows(
    release: Release,
    scope: Sequence[Scope],
    reasons: Sequence[Reason],
    verdicts: dict[tuple[int, str], Verdict],
) -> Iterator[tuple[object, ...]]:
    for position, (item, reason) in enumerate(zip(scope, reasons, strict=True)):
        own = verdicts.get((item.candidate_id, TextRole.OWN.value), _UNJUDGED)
        by = own.verified_by if reason == "verified" else ""
        yield (
            release.pk, item.candidate_id, position, reason, by,
            own.n_accept, own.n_reject, own.n_unsure, own.posterior,
        )  # fmt: skip


def store_pairs(release: Release, scope: Sequence[Scope]) -> int:
    """Write the pairs in use, once each, in the order of the files."""
    ids = dict.fromkeys(item.pair_id for item in scope if item.pair_active)
    rows = ((release.pk, pair_id, position) for position, pair_id in enumerate(ids))
    insert_rows(ReleasePair, ("release_id", "pair_id", "position"), rows)
    return len(ids)


def store_annotations(release: Release, campaign: Campaign) -> int:
    """Copy the counted judgements of the members under pseudonyms; return how many.

    The database copies them itself: a quarter of a million rows need not come here and go back.
    """
    counted = Judgement.objects.counted(campaign)
    people = counted.order_by().values_list("annotator_id", "annotator__username").distinct()
    names = [cell for pk, username in people for cell in (pk, pseudonym(campaign, username))]
    if not names:
        return 0
    rows = counted.order_by().values_list(
        "item__candidate_id", "item__text_role", "annotator_id", "verdict", "mode",
        "guideline_version", "active_ms", "created_at",
    )  # fmt: skip
    source, parameters = rows.query.sql_with_params()
    connection = connections[rows.db]
    # Byte order, whatever the language of the database: "other" stands before "own".
    order = 'COLLATE "C"' if connection.vendor == "postgresql" else "COLLATE BINARY"
    marks = ", ".join(["(%s, %s)"] * (len(names) // 2))
    with connection.cursor() as cursor:
        cursor.execute(
            _COPY_JUDGEMENTS.format(names=marks, source=source, order=order),
            [*names, *parameters, release.pk, release.pk],
        )
        copied: int = cursor.rowcount
    return copied


# The pseudonym is unique within an item, so the order is total.
_COPY_JUDGEMENTS = """
INSERT INTO releases_releaseannotation
  (release_id, candidate_id, position, text_role, annotator, verdict, mode, guideline_version,
   active_ms, at)
WITH people(id, name) AS (VALUES {names}),
     counted(candidate, role, person, verdict, mode, guideline, ms, at) AS ({source})
SELECT %s, candidate,
       row_number() OVER (ORDER BY member.position, role {order}, name {order}) - 1,
       role, name, counted.verdict, counted.mode, guideline, ms, counted.at
FROM counted
JOIN people ON people.id = person
JOIN releases_releasemember member ON member.release_id = %s AND member.candidate_id = candidate
"""


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
