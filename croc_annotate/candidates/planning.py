"""Which candidates are wanted and not there yet, and asking for them in bulk."""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.db import connection, transaction
from django.db.models import Count, Q
from django.utils import timezone

from croc_annotate.candidates.models import Candidate, CandidateState, random_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from croc_annotate.candidates.models import Generator
    from croc_annotate.prompts.models import ContrastPair

_BATCH = 2_000


@dataclass(frozen=True)
class Gap:
    """The seeds that one side of one pair lacks from one generator."""

    pair_id: int
    category: str
    side: str
    generator_id: int
    seeds: tuple[int, ...]


@dataclass(frozen=True)
class Plan:
    """What a run would ask for."""

    gaps: Sequence[Gap]
    wanted: int
    rendered: int
    waiting: int
    failed: int

    @property
    def missing(self) -> int:
        """Candidates without a row."""
        return sum(len(gap.seeds) for gap in self.gaps)


def plan_candidates(
    *, pairs: Iterable[ContrastPair], generators: Iterable[Generator], seeds: Sequence[int]
) -> Plan:
    """Compare what is wanted with what is there; writes nothing.

    A pair wants its two evaluated sides, from each generator, for each seed.
    """
    wanted = [(pair, side) for pair in pairs for side in pair.generated_sides]
    gaps: list[Gap] = []
    states = dict.fromkeys(CandidateState.values, 0)
    for generator in generators:
        there = _there(generator, seeds)
        for pair, side in wanted:
            counts = there.get((pair.pk, side), {})
            for state, count in counts.items():
                states[state] += count
            if sum(counts.values()) < len(seeds):
                missing = _missing(generator.pk, pair.pk, side, seeds) if counts else tuple(seeds)
                gaps.append(Gap(pair.pk, pair.category_id, side, generator.pk, missing))
    return Plan(
        gaps=gaps,
        wanted=sum(states.values()) + sum(len(gap.seeds) for gap in gaps),
        rendered=states[CandidateState.RENDERED],
        waiting=states[CandidateState.REQUESTED],
        failed=states[CandidateState.FAILED],
    )


def request_candidates(*, plan: Plan) -> int:
    """Make the missing rows of a plan; return how many. Safe beside another run of itself."""
    rows = _rows(plan.gaps)
    insert = _INSERT.replace("(rows)", _ROWS[connection.vendor])
    made = 0
    with transaction.atomic(), connection.cursor() as cursor:
        while batch := list(itertools.islice(rows, _BATCH)):
            cursor.execute(insert, [timezone.now(), json.dumps(batch)])
            made += len(batch)
    return made


# Through model instances 80,000 rows take several times as long, as five parameters a row twice;
# so a batch travels as one JSON text. Another run may have asked for the same meanwhile: its
# rows are as good, so a conflict is no error. "WHERE true" tells SQLite that ON CONFLICT does
# not belong to a join.
_INSERT = """
    INSERT INTO candidates_candidate (
        created_at, pair_id, side, generator_id, seed, key,
        state, image, display, preview, sha256, source_name, provenance, error, claimed_by, attempts
    )
    SELECT %s, (rows)
    ON CONFLICT DO NOTHING
"""
_CONSTANTS = "'requested', '', '', '', '', '', '{}', '', '', 0"
_ROWS = {
    "postgresql": (
        "(r->>0)::bigint, r->>1, (r->>2)::bigint, (r->>3)::bigint, r->>4, "
        f"{_CONSTANTS} FROM json_array_elements(%s::json) AS r WHERE true"
    ),
    "sqlite": (
        # Not "->>": Ubuntu 22.04's SQLite does not know it yet.
        "json_extract(value, '$[0]'), json_extract(value, '$[1]'), json_extract(value, '$[2]'), "
        "json_extract(value, '$[3]'), json_extract(value, '$[4]'), "
        f"{_CONSTANTS} FROM json_each(%s) WHERE true"
    ),
}


def _rows(gaps: Iterable[Gap]) -> Iterator[tuple[object, ...]]:
    for gap in gaps:
        for seed in gap.seeds:
            yield gap.pair_id, gap.side, gap.generator_id, seed, random_key()


def _there(generator: Generator, seeds: Sequence[int]) -> dict[tuple[int, str], dict[str, int]]:
    """Per (pair, side) the number of wanted seeds that exist, by state."""
    rows = (
        Candidate.objects.filter(_among(seeds), generator=generator)
        .values_list("pair_id", "side", "state")
        .annotate(n=Count("pk"))
        .order_by()
    )
    counts: dict[tuple[int, str], dict[str, int]] = {}
    for pair_id, side, state, n in rows:
        counts.setdefault((pair_id, side), {})[state] = n
    return counts


def _missing(generator_id: int, pair_id: int, side: str, seeds: Sequence[int]) -> tuple[int, ...]:
    there = set(
        Candidate.objects.filter(
            _among(seeds), generator_id=generator_id, pair_id=pair_id, side=side
        ).values_list("seed", flat=True)
    )
    return tuple(seed for seed in seeds if seed not in there)


def _among(seeds: Sequence[int]) -> Q:
    """Wanted seeds; a range where they are one, which an index serves best."""
    if len(seeds) == seeds[-1] - seeds[0] + 1:
        return Q(seed__range=(seeds[0], seeds[-1]))
    return Q(seed__in=seeds)
