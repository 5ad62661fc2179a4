"""Statistics of 240,000 judgements: time, memory and growth, beside the libraries that do parts of it.

``krippendorff`` and ``statsmodels`` are timed in the same run on the same table (each gives one
number without an interval). ``crowd-kit`` is timed where it is installed; else the recorded time
of it on 150,000 votes stands, scaled to ours. Pages are measured on PostgreSQL with 80,000 items.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psycopg

from tests.benchmarks.frame import Row, in_child, seconds

ROOT = Path(__file__).resolve().parents[2]
# Recorded on two cores (crowd-kit 1.4.2, 50,000 items × 3 by 60 people): 0.3 to 0.5 s.
CROWDKIT_SECONDS, CROWDKIT_VOTES = 0.4, 150_000
LIMITS = {"coefficients": 5.0, "dawid-skene": 2.0, "page": 0.3}
PAIRS = 400


def run(quick: bool) -> list[Row]:
    """Arithmetic beside the peers, growth to ten times the size, then the database and pages."""
    items = 8_000 if quick else 80_000
    table = columns(items)
    rows = [coefficients_row(table), *peer_rows(table), model_row(table)]
    if not quick:
        rows += growth_rows(10 * items)
    rows += database_rows(seeds=5 if quick else 50)
    return rows


def columns(items: int, people: int = 60, per_item: int = 3) -> dict[str, np.ndarray]:
    """Votes of a campaign as columns: difficulty varies by pair, skill by person."""
    rng = np.random.default_rng(20261129)
    cluster = np.arange(items) % PAIRS
    truth = rng.random(items) < rng.beta(1.5, 3.5, PAIRS)[cluster]
    rater = (rng.integers(0, people, items)[:, None] + rng.integers(1, people // 3, (items, 1))
             * np.arange(per_item)) % people  # fmt: skip
    sens, spec = rng.uniform(0.85, 0.97, people), rng.uniform(0.80, 0.97, people)
    accepts = np.where(truth[:, None], sens[rater], 1 - spec[rater])
    vote = (rng.random((items, per_item)) < accepts).astype(np.int8)
    return {"cluster": cluster, "rater": rater, "vote": vote, "category": cluster % 8}


def intervals(table: dict[str, np.ndarray]) -> dict[str, Any]:
    """Every coefficient with 1,000 draws over contrast pairs."""
    from croc_annotate.agreement import coefficients as c
    from croc_annotate.lib import bootstrap

    accept = table["vote"].sum(axis=1, dtype=np.int64)
    terms = c.item_sums(accept, table["vote"].shape[1] - accept)
    sums = bootstrap.cluster_sums(terms, table["cluster"], PAIRS)
    statistics = {
        "raw": c.raw_from_sums,
        "alpha": c.alpha_from_sums,
        "ac1": c.ac1_from_sums,
        "fleiss": c.fleiss_from_sums,
    }
    found = bootstrap.bootstrap_intervals(sums, statistics, draws=1_000, seed=1)
    total = sums.sum(axis=0)
    return {name: (float(f(total)), found[name]) for name, f in statistics.items()}


def model(table: dict[str, np.ndarray]) -> Any:
    """The Dawid–Skene fit with its intervals."""
    from croc_annotate.agreement.dawid_skene import VoteList, fit

    items, per_item = table["vote"].shape
    votes = VoteList(
        item=np.repeat(np.arange(items), per_item),
        rater=table["rater"].ravel(),
        vote=table["vote"].ravel(),
        category=table["category"],
        truth=np.full(items, -1, np.int8),
        n_raters=60,
        n_categories=8,
    )
    return fit(votes)


def coefficients_row(table: dict[str, np.ndarray]) -> Row:
    """Four coefficients with intervals, against the limit."""
    took, peak, _ = in_child(lambda: intervals(table))
    limit = LIMITS["coefficients"]
    return Row(
        "raw, α, AC1, Fleiss with 1,000 draws", took, limit, ratio=limit / took,
        n=table["vote"].size, memory_mb=peak, note="limit as stated for the room",
    )  # fmt: skip


def peer_rows(table: dict[str, np.ndarray]) -> list[Row]:
    """The same point values from the libraries: equal to 1e-12, and how long they take."""
    import krippendorff
    from statsmodels.stats.inter_rater import fleiss_kappa

    accept = table["vote"].sum(axis=1, dtype=np.int64)
    counts = np.stack([table["vote"].shape[1] - accept, accept], axis=1)
    ours = intervals(table)
    alpha = krippendorff.alpha(value_counts=counts, level_of_measurement="nominal")
    fleiss = fleiss_kappa(counts, method="fleiss")
    assert abs(alpha - ours["alpha"][0]) < 1e-12, "α differs from krippendorff"
    assert abs(fleiss - ours["fleiss"][0]) < 1e-12, "κ differs from statsmodels"
    alone = seconds(lambda: krippendorff.alpha(value_counts=counts, level_of_measurement="nominal"))
    points = seconds(lambda: point_values(table))
    kappa = seconds(lambda: fleiss_kappa(counts, method="fleiss"))
    n = table["vote"].size
    return [
        Row("four coefficients, no interval", points, alone, ratio=alone / points, n=n,
            note="peer: krippendorff, α alone, from counts"),
        Row("four coefficients, no interval", points, kappa, ratio=kappa / points, n=n,
            note="peer: statsmodels, Fleiss' κ alone"),
    ]  # fmt: skip


def point_values(table: dict[str, np.ndarray]) -> list[float]:
    """The four coefficients without intervals."""
    from croc_annotate.agreement import coefficients as c

    accept = table["vote"].sum(axis=1, dtype=np.int64)
    total = c.item_sums(accept, table["vote"].shape[1] - accept).sum(axis=0)
    functions = (c.raw_from_sums, c.alpha_from_sums, c.ac1_from_sums, c.fleiss_from_sums)
    return [float(function(total)) for function in functions]


def model_row(table: dict[str, np.ndarray]) -> Row:
    """Dawid–Skene with intervals beside crowd-kit's."""
    took, peak, found = in_child(lambda: model(table).converged)
    assert found, "the fit did not converge"
    peer, note = crowdkit_seconds(table)
    return Row(
        "Dawid–Skene, priors by category, intervals", took, peer, ratio=peer / took,
        n=table["vote"].size, memory_mb=peak, note=note,
    )  # fmt: skip


def crowdkit_seconds(table: dict[str, np.ndarray]) -> tuple[float, str]:
    """crowd-kit on the same votes, or its recorded time."""
    try:
        from crowdkit.aggregation import DawidSkene
    except ImportError:
        scaled = CROWDKIT_SECONDS * table["vote"].size / CROWDKIT_VOTES
        return scaled, "peer: crowd-kit as recorded on 150,000 votes, scaled; not installed here"
    import pandas as pd

    items, per_item = table["vote"].shape
    frame = pd.DataFrame(
        {
            "task": np.repeat(np.arange(items), per_item),
            "worker": table["rater"].ravel(),
            "label": table["vote"].ravel(),
        }
    )
    took = seconds(lambda: DawidSkene(n_iter=100).fit(frame), repeat=1)
    return took, "peer: crowd-kit, one prior, no intervals"


def growth_rows(items: int) -> list[Row]:
    """Ten times the judgements: time and memory against linear growth."""
    small, big = columns(items // 10), columns(items)
    rows = []
    for name, call in (("coefficients with 1,000 draws", intervals), ("Dawid–Skene", model)):
        before, _, _ = in_child(lambda call=call: bool(call(small)))
        after, peak, _ = in_child(lambda call=call: bool(call(big)))
        rows.append(
            Row(
                f"{name}, ten times the judgements",
                after,
                10 * before,
                ratio=10 * before / after,
                n=big["vote"].size,
                memory_mb=peak,
                note="peer: ten times the time of 240,000",
            )
        )
    return rows


def database_rows(*, seeds: int) -> list[Row]:
    """What is read from PostgreSQL, computed in the background, and shown."""
    with database() as url:
        results = measured(url, seeds=seeds)
    rows = []
    for found in results:
        name, took = found["name"], found["seconds"]
        limit = LIMITS["page"] if name.startswith("page") else LIMITS.get(name)
        rows.append(
            Row(
                f"PostgreSQL: {name}",
                took,
                limit,
                ratio=limit / took if limit else None,
                n=found.get("n", 1600 * seeds),
                memory_mb=found["mb"],
                note=f"worst {found['worst']:.3f}" if "worst" in found else "",
            )
        )
    return rows


def measured(url: str, *, seeds: int) -> list[dict[str, Any]]:
    """Run the measuring program on a database; its results in order."""
    program = [sys.executable, "-m", "tests.benchmarks.agreement_world"]
    done = subprocess.run(
        [*program, str(PAIRS), str(seeds), "60", "1"],
        env={**os.environ, "DATABASE_URL": url, "REDIS_URL": "", "OMP_NUM_THREADS": "1"},
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


@contextlib.contextmanager
def database() -> Iterator[str]:
    """An empty PostgreSQL database, dropped afterwards."""
    base = os.environ.get("TEST_DATABASE_URL", "postgresql://postgres@127.0.0.1:5432/postgres")
    name = f"bench_agreement_{os.getpid()}"
    with psycopg.connect(base, autocommit=True) as admin:
        admin.execute(f'drop database if exists "{name}" with (force)')
        admin.execute(f'create database "{name}"')
        try:
            yield base.rsplit("/", 1)[0] + "/" + name
        finally:
            admin.execute(f'drop database if exists "{name}" with (force)')
