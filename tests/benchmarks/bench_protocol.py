"""Load and protocol on score tables at 1×, 10× and 100× the size of the benchmark.

Peer: what the published evaluation does on the same tables in the same run (each pair selects
its rows by a mask over the whole column, then compares by broadcasting), written here in pandas
from its description. It grows with the square of the number of pairs, so it is not run at 100×.
"""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
from pathlib import Path

import numpy as np

from tests.benchmarks.frame import Row, in_child, seconds

CATEGORIES = (
    "action", "body_parts", "counting", "negation", "shapes", "size_relation",
    "spacial_relation", "things_parts",
)  # fmt: skip
METRICS = ("Strong", "Weak", "Ties")
PAIRS, IMAGES = 30, 50  # a category: 30 pairs × about 50 images a side, 23,800 in all
LIMITS = {1: 0.1, 10: 0.3, 100: 3.0}  # seconds on two cores


def write_tables(folder: Path, scale: int) -> int:
    """Synthetic score tables with `scale` times the pairs and images; number of images."""
    rng = np.random.default_rng(scale)
    images = 0
    for category in CATEGORIES:
        for side in ("prompt", "contrast"):
            sizes = np.maximum(1, rng.poisson(IMAGES, PAIRS * scale))
            images += int(sizes.sum())
            _write(folder / f"{category}_{side}_img_scores.tsv", category, side, sizes, rng)
    return images


def _write(path: Path, category: str, side: str, sizes: np.ndarray, rng) -> None:
    roles = (
        ("orig_text___orig_img", "contrast_text___orig_img")
        if side == "prompt"
        else ("contrast_text___contrast_img", "orig_text___contrast_img")
    )
    columns = [f"{m}___{role}" for m, role in itertools.product(METRICS, roles)]
    pair = np.repeat(np.arange(len(sizes)), sizes)
    number = np.concatenate([np.arange(n) for n in sizes])
    values = np.round(rng.normal(20, 4, (len(pair), len(columns))), 6)
    values[:, 4:] = np.round(values[:, 4:] / 4)  # the third metric ties often
    with path.open("w", encoding="utf-8") as out:
        out.write("\t".join(["id", "prompt", "contrast", f"{side}_paths", *columns]) + "\n")
        for p, k, row in zip(pair.tolist(), number.tolist(), values.tolist(), strict=True):
            name = f"{category}/{side}/{category}_{p}___{side}___FLUX_1_dev___image{k}.png"
            scores = "\t".join(map(str, row))
            out.write(
                f"{category}_{p}\t{p} red apples on a plate\t{p} green apples on a plate\t{name}\t"
                f"{scores}\n"
            )


def ours(folder: Path) -> dict[str, float]:
    """Load all tables and compute the four directions of every metric."""
    from croc_annotate.benchmark import score_tables
    from croc_annotate.benchmark.protocol import Policy, evaluate

    tables = score_tables.read(folder)
    layout = tables.layout(generators=False)
    return {
        metric: float(np.nanmean(evaluate(layout, tables.scores(metric), policy=Policy()).values))
        for metric in tables.metrics
    }


def peer(folder: Path) -> None:
    """The published evaluation's structure: a mask over the whole column for each pair."""
    import pandas as pd

    for category in CATEGORIES:
        p, q = (
            pd.read_csv(folder / f"{category}_{side}_img_scores.tsv", sep="\t")
            for side in ("prompt", "contrast")
        )
        for metric in METRICS:
            for better, worse, table in (
                (f"{metric}___orig_text___orig_img", f"{metric}___contrast_text___orig_img", p),
                (f"{metric}___contrast_text___contrast_img",
                 f"{metric}___orig_text___contrast_img", q),
            ):  # fmt: skip
                (table[better] > table[worse]).groupby(table["id"]).mean().mean()
            for name in set(p["id"]) & set(q["id"]):
                ours_, theirs = p[p["id"] == name], q[q["id"] == name]
                t = ours_[f"{metric}___orig_text___orig_img"].to_numpy()
                tj = theirs[f"{metric}___orig_text___contrast_img"].to_numpy()
                c = theirs[f"{metric}___contrast_text___contrast_img"].to_numpy()
                ci = ours_[f"{metric}___contrast_text___orig_img"].to_numpy()
                (t[:, None] > tj[None, :]).mean()
                (c[:, None] > ci[None, :]).mean()


def golden_rows() -> list[Row]:
    """The golden tables, gzipped, where they stand."""
    from tests.conftest import real_data_dir

    folder = real_data_dir()
    if folder is None:
        return []
    took = seconds(lambda: ours_with_gaps(folder / "golden"), repeat=5)
    return [Row("golden/: load + protocol", took, LIMITS[1], ratio=LIMITS[1] / took, n=23_800,
                note="gzipped; limit 0.1 s")]  # fmt: skip


def ours_with_gaps(folder: Path) -> None:
    """As `ours`, on tables with missing scores."""
    from croc_annotate.benchmark import score_tables
    from croc_annotate.benchmark.protocol import Policy, evaluate

    tables = score_tables.read(folder)
    layout = tables.layout(generators=False)
    for metric in tables.metrics:
        evaluate(layout, tables.scores(metric), policy=Policy(missing="loss")).by_category()


def leaderboard_rows() -> list[Row]:
    """A leaderboard of twelve metrics at real size: computed when a run ends, read by visitors."""
    import pickle
    import zlib

    from croc_annotate.benchmark import score_tables
    from croc_annotate.benchmark.board import build_board
    from croc_annotate.benchmark.layout import Scores
    from croc_annotate.benchmark.protocol import Policy

    with tempfile.TemporaryDirectory() as folder:
        write_tables(Path(folder), 1)
        tables = score_tables.read(Path(folder))
    layout, rng = tables.layout(), np.random.default_rng(3)
    columns = ("prompt_own", "prompt_other", "contrast_own", "contrast_other")
    scores = {}
    for number in range(12):
        of = tables.scores(METRICS[number % len(METRICS)])
        noisy = [getattr(of, c) + rng.normal(0, number, len(getattr(of, c))) for c in columns]
        scores[f"metric {number}"] = Scores(*noisy)
    made = seconds(lambda: build_board(layout, scores, policy=Policy()))
    kept = zlib.compress(pickle.dumps(build_board(layout, scores, policy=Policy())), 1)
    read = seconds(lambda: pickle.loads(zlib.decompress(kept)))
    n = len(layout.prompt) + len(layout.contrast)
    return [
        Row("leaderboard of 12 metrics, 10,000 draws: computed", made, n=n, note="once a run"),
        Row("the same, read back", read, made, ratio=made / read, n=n,
            memory_mb=len(kept) / 2**20, note="each visit; MB as kept"),
    ]  # fmt: skip


def run(quick: bool) -> list[Row]:
    """The rows of the table."""
    rows = golden_rows()
    times: dict[int, float] = {}
    root = Path(tempfile.mkdtemp(prefix="croc-bench-", dir=os.environ.get("TMPDIR")))
    try:
        for scale in (1,) if quick else (1, 10, 100):
            folder = root / str(scale)
            folder.mkdir()
            images = write_tables(folder, scale)
            ours(folder)  # file cache and imports
            times[scale] = seconds(lambda f=folder: ours(f), repeat=3)
            _, memory, _ = in_child(lambda f=folder: ours(f))
            limit = LIMITS[scale]
            rows.append(
                Row(f"load + protocol, {scale}× pairs", times[scale], limit,
                    ratio=limit / times[scale], n=images, memory_mb=memory, note=f"limit {limit} s")
            )  # fmt: skip
            if scale <= 10:
                theirs = seconds(lambda f=folder: peer(f), repeat=1)
                rows.append(
                    Row(f"published structure, {scale}× pairs", times[scale], theirs,
                        ratio=theirs / times[scale], n=images, note="pandas, mask per pair")
                )  # fmt: skip
            shutil.rmtree(folder)
    finally:
        shutil.rmtree(root, ignore_errors=True)
    if len(times) == 3:
        growth = np.log(times[100] / times[10]) / np.log(10)
        rows.append(Row("growth exponent, 10× to 100×", float(growth), 1.1, unit="",
                        note="1 is linear, 2 square"))  # fmt: skip
    rows += leaderboard_rows()
    return rows
