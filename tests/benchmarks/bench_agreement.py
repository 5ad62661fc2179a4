"""Statistics of 240,000 judgements: time, memory and growth, beside the libraries that do parts of it.

``krippendorff``, ``statsmodels`` and ``crowd-kit`` are timed in the same run on the same table, and
give the same values (each gives numbers without an interval). crowd-kit weighs 800 MB, so it gets an
environment of its own under .bench/, made by the first run; where that fails its row says why.
Pages are measured on PostgreSQL with 80,000 candidates, as a signed-in admin gets them.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psycopg

from tests.benchmarks.frame import Row, in_child, seconds

ROOT = Path(__file__).resolve().parents[2]
CROWDKIT = "crowd-kit==1.4.2"
CROWDKIT_HOME = ROOT / ".bench" / "crowd-kit"
LIMITS = {"coefficients": 5.0, "dawid-skene": 2.0, "page": 0.3}
PAIRS = 400


def run(quick: bool) -> list[Row]:
    """Arithmetic beside the peers, growth to ten times the size, then the database and pages."""
    items = 8_000 if quick else 80_000
    table = columns(items)
    rows = [coefficients_row(table), *peer_rows(table), *model_rows(table)]
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


def votes_of(table: dict[str, np.ndarray]) -> Any:
    """The table as the model takes it."""
    from croc_annotate.agreement.dawid_skene import VoteList

    items, per_item = table["vote"].shape
    return VoteList(
        item=np.repeat(np.arange(items), per_item),
        rater=table["rater"].ravel(),
        vote=table["vote"].ravel(),
        category=table["category"],
        truth=np.full(items, -1, np.int8),
        n_raters=60,
        n_categories=8,
    )


def model(table: dict[str, np.ndarray]) -> Any:
    """The Dawid–Skene fit with its intervals."""
    from croc_annotate.agreement.dawid_skene import fit

    return fit(votes_of(table))


def coefficients_row(table: dict[str, np.ndarray]) -> Row:
    """Four coefficients with intervals, against the limit."""
    took, peak, _ = in_child(lambda: intervals(table))
    limit = LIMITS["coefficients"]
    return Row(
        "raw, α, AC1, Fleiss with 1,000 draws", took, limit, ratio=limit / took,
        n=table["vote"].size, memory_mb=peak, note="limit as stated for the room",
    )  # fmt: skip


def peer_rows(table: dict[str, np.ndarray]) -> list[Row]:
    """Point values beside the libraries': equal to 1e-12, each from what the library takes."""
    import krippendorff
    from statsmodels.stats.inter_rater import fleiss_kappa

    counts, matrix = counts_of(table), matrix_of(table)
    calls = {
        "Krippendorff's α, from counts": (
            lambda: alpha_of(counts),
            lambda: krippendorff.alpha(value_counts=counts, level_of_measurement="nominal"),
            "krippendorff",
        ),
        "Krippendorff's α, from people × items": (
            lambda: alpha_of(counts_of_matrix(matrix)),
            lambda: krippendorff.alpha(reliability_data=matrix, level_of_measurement="nominal"),
            "krippendorff",
        ),
        "Fleiss' κ, from counts": (
            lambda: fleiss_of(counts),
            lambda: fleiss_kappa(counts, method="fleiss"),
            "statsmodels",
        ),
    }
    rows = []
    for name, (ours, theirs, library) in calls.items():
        assert abs(ours() - theirs()) < 1e-12, f"{name}: differs from {library}"
        mine, peer = seconds(ours, repeat=7), seconds(theirs, repeat=7)
        note = f"peer: {library}; equal to 1e-12"
        rows.append(Row(name, mine, peer, ratio=peer / mine, n=table["vote"].size, note=note))
    return rows


def counts_of(table: dict[str, np.ndarray]) -> np.ndarray:
    """Rejects and accepts of each item."""
    accept = table["vote"].sum(axis=1, dtype=np.int64)
    return np.stack([table["vote"].shape[1] - accept, accept], axis=1)


def matrix_of(table: dict[str, np.ndarray]) -> np.ndarray:
    """People × items with gaps (NaN), as the library wants it."""
    items, per_item = table["vote"].shape
    matrix = np.full((60, items), np.nan)
    matrix[table["rater"].ravel(), np.repeat(np.arange(items), per_item)] = table["vote"].ravel()
    return matrix


def counts_of_matrix(matrix: np.ndarray) -> np.ndarray:
    """Rejects and accepts of each item of such a matrix."""
    return np.stack([(matrix == 0).sum(axis=0), (matrix == 1).sum(axis=0)], axis=1)


def alpha_of(counts: np.ndarray) -> float:
    """Our α from rejects and accepts."""
    from croc_annotate.agreement import coefficients as c

    return float(c.alpha_from_sums(c.item_sums(counts[:, 1], counts[:, 0]).sum(axis=0)))


def fleiss_of(counts: np.ndarray) -> float:
    """Our Fleiss' κ from rejects and accepts."""
    from croc_annotate.agreement import coefficients as c

    return float(c.fleiss_from_sums(c.item_sums(counts[:, 1], counts[:, 0]).sum(axis=0)))


def model_rows(table: dict[str, np.ndarray]) -> list[Row]:
    """Dawid–Skene against the limit, and beside crowd-kit's on the same votes."""
    took, peak, found = in_child(lambda: model(table).converged)
    assert found, "the fit did not converge"
    n, limit = table["vote"].size, LIMITS["dawid-skene"]
    rows = [
        Row("Dawid–Skene, priors by category, intervals", took, limit, ratio=limit / took, n=n,
            memory_mb=peak, note="limit as stated for the room"),
    ]  # fmt: skip
    try:
        facts, theirs = crowdkit(table)
    except (OSError, subprocess.SubprocessError) as reason:
        said = getattr(reason, "stderr", None) or str(reason)
        note = f"crowd-kit was not measured: {said.strip().splitlines()[-1][:120]}"
        return [*rows, Row("Dawid–Skene, one prior", took, n=n, note=note)]
    took, peak, ours = in_child(lambda: plain_model(table))
    apart = float(np.abs(ours - theirs).max())
    assert apart < 1e-3, f"P(match) differs from crowd-kit's by {apart}"
    note = (
        f"peer: crowd-kit {facts['version']}, {facts['mb']:.0f} MB, no intervals; "
        f"P(match) differs by {apart:.0e} at most"
    )
    plain = Row(
        "Dawid–Skene, one prior, with intervals", took, facts["seconds"],
        ratio=facts["seconds"] / took, n=n, memory_mb=peak, note=note,
    )  # fmt: skip
    return [*rows, plain]


def plain_model(table: dict[str, np.ndarray]) -> np.ndarray:
    """Plain maximum likelihood with one prior, as crowd-kit fits it: P(match) of each item."""
    from croc_annotate.agreement.dawid_skene import fit

    items = table["vote"].shape[0]
    return fit(votes_of({**table, "category": np.zeros(items, np.int64)}), smoothing=0.0).posterior


def crowdkit(table: dict[str, np.ndarray]) -> tuple[dict[str, Any], np.ndarray]:
    """crowd-kit's seconds and P(match) on the same votes; raises OSError or SubprocessError."""
    python = CROWDKIT_HOME / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", CROWDKIT_HOME], check=True)
    program = Path(__file__).with_name("crowdkit_peer.py")
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "votes.npz", Path(folder) / "posterior.npy"
        votes = votes_of(table)
        np.savez(source, item=votes.item, rater=votes.rater, vote=votes.vote)
        call = [python, program, source, target]
        env = {**os.environ, "OMP_NUM_THREADS": "1"}
        done = subprocess.run(call, env=env, capture_output=True, text=True, check=False)
        if done.returncode:  # not installed yet, or in part
            install = [python, "-m", "pip", "install", "--quiet", CROWDKIT]
            subprocess.run(install, check=True, capture_output=True, text=True)
            done = subprocess.run(call, env=env, capture_output=True, text=True, check=True)
        return json.loads(done.stdout), np.load(target)


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


def database_rows(*, seeds: int, growth: int = 1) -> list[Row]:
    """What is read from PostgreSQL, computed in the background, and shown.

    ``growth`` is how many times the stated limits of the computations are allowed.
    """
    with database() as url:
        results = measured(url, seeds=seeds)
    rows = []
    for found in results:
        name, took = found["name"], found["seconds"]
        limit = LIMITS["page"] if name.startswith("page") else LIMITS.get(name, 0.0) * growth
        rows.append(
            Row(
                f"PostgreSQL: {name}",
                took,
                limit or None,
                ratio=limit / took if limit else None,
                n=found.get("n", 1600 * seeds),
                memory_mb=found["mb"],
                note=f"worst {found['worst']:.3f}, of it {found['cpu']:.3f} CPU, {found['kb']} KB"
                if "worst" in found
                else "",
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
