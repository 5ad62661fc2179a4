"""leaderboard: every format, the same board each time, and clear refusals."""

from __future__ import annotations

import csv
import io
import json
import re
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from PIL import Image

from croc_annotate.benchmark import score_tables
from croc_annotate.benchmark.board import build_board
from croc_annotate.benchmark.models import MetricRun
from croc_annotate.benchmark.protocol import Policy
from croc_annotate.benchmark.render import csv_text, latex, safe_cell, text
from tests.benchmark.fakes import Counting
from tests.benchmark.layouts import build
from tests.benchmark.world import small_release

GOLDEN_SMALL = Path(__file__).parents[1] / "data" / "golden_small"
FAKE = "tests.benchmark.fakes:Counting"


def leaderboard(**options):
    out = StringIO()
    call_command("leaderboard", stdout=out, **{"draws": 200, **options})
    return out.getvalue()


@pytest.fixture
def scored(db):
    Counting.reset()
    release = small_release(pairs=12, images=2)
    call_command("run_benchmark", metric=[FAKE, "random"], stdout=StringIO())
    call_command("run_benchmark", metric=[FAKE], option=["name=third"], revision="3",
                 stdout=StringIO())  # fmt: skip
    return release


def test_the_table_has_rank_group_interval_and_n(scored):
    lines = leaderboard().splitlines()
    assert lines[0] == "small 1.0.0: 12 pairs, 48 images"
    assert re.search(r"Counting +[12] +[ab]+ +0\.\d{3} +\[0\.\d{3}, 0\.\d{3}\]", "\n".join(lines))
    assert "Random (reference)" in "\n".join(lines)
    assert lines[-1].startswith("3 metrics on “small 1.0.0” in ")


def test_json_has_the_keys_that_scripts_rely_on(scored):
    document = json.loads(leaderboard(format="json"))
    metric = document["metrics"]["counting"]
    cells = metric["categories"]["counting"]
    for direction in ("text_forward", "text_inverse", "image_forward", "image_inverse"):
        assert 0 <= cells[direction] <= 1
        assert cells[f"n_{direction}"] == 12
        assert cells["intervals"][direction]["low"] <= cells[direction]
    assert {"ties", "coverage"} <= set(cells)
    assert metric["rank"] in {1, 2}
    assert metric["group"]
    assert document["metrics"]["random"]["rank"] is None
    assert document["release_sha256"] == scored.sha256
    assert len(document["differences"]) == 1
    assert list(document["absent"]) == ["human"]
    assert "No human row: no vote on these images" in leaderboard()


def test_a_row_carries_what_it_ran_on(scored):
    document = json.loads(leaderboard(format="json"))
    for name, row in document["metrics"].items():
        run = row["run"]
        stored = MetricRun.objects.get(pk=run["id"])
        assert run["fingerprint"] == stored.metric.fingerprint
        assert run["release_sha256"] == scored.sha256
        assert run["metric"]["name"] == name.partition("@")[0]
        assert run["environment"]["software"].startswith("croc-annotate ")
        assert run["environment"]["processor"]
        assert run["environment"]["packages"]["numpy"]
        assert run["timing"]["seconds"] > 0
        assert run["timing"]["images_per_second"] > 0
        assert (run["n_truncated"], run["n_missing"], run["n_scores"]) == (0, 0, 96)


def test_the_same_board_every_time(scored):
    assert leaderboard(format="json") == leaderboard(format="json")
    assert leaderboard(format="json") != leaderboard(format="json", seed=2)


def test_groupings_of_pairs_and_generators(scored):
    document = json.loads(leaderboard(format="json", by=["generator", "difficulty"]))
    by = document["by"]["counting"]
    (cells,) = by["generator"].values()
    assert cells["text_forward"] == document["metrics"]["counting"]["average"]["text_forward"]
    assert by["difficulty"] == {}  # every pair has equally many images
    with pytest.raises(CommandError, match="--by goes with --format json"):
        leaderboard(by=["topic"])


def test_csv_has_one_row_a_metric_category_and_statistic(scored):
    rows = list(csv.DictReader(io.StringIO(leaderboard(format="csv"))))
    assert len(rows) == 3 * 2 * 7
    row = next(r for r in rows if r["metric"] == "Counting" and r["statistic"] == "overall")
    assert float(row["low"]) <= float(row["value"]) <= float(row["high"])


def test_figures_are_written_whole_and_alike(scored, tmp_path):
    for form, start in (("png", b"\x89PNG"), ("pdf", b"%PDF")):
        first, second = tmp_path / f"1.{form}", tmp_path / f"2.{form}"
        leaderboard(format=form, out=first)
        leaderboard(format=form, out=second)
        assert first.read_bytes().startswith(start)
        assert first.read_bytes() == second.read_bytes()
    with Image.open(tmp_path / "1.png") as picture:
        assert picture.width > 1500
        assert len(picture.convert("RGB").getcolors(2**24)) > 50


def test_a_figure_needs_a_file_and_nothing_is_overwritten(scored, tmp_path):
    with pytest.raises(CommandError, match="needs --out"):
        leaderboard(format="png")
    (tmp_path / "a.pdf").write_text("mine")
    with pytest.raises(CommandError, match="use --force"):
        leaderboard(format="pdf", out=tmp_path / "a.pdf")
    assert (tmp_path / "a.pdf").read_text() == "mine"
    leaderboard(format="pdf", out=tmp_path / "a.pdf", force=True)


def test_missing_scores_are_refused_with_the_remedy(db):
    small_release(pairs=2, images=1)
    call_command("run_benchmark", metric=[FAKE], option=["blank=in small"], stdout=StringIO())
    with pytest.raises(CommandError, match=r"counting has 4 missing scores.*--missing skip"):
        leaderboard()
    average = json.loads(leaderboard(missing="skip", format="json"))["metrics"]["counting"]
    assert average["missing_categories"] == ["counting"]
    assert average["rank"] is None


def test_nothing_scored_and_no_release_say_what_to_do(db):
    with pytest.raises(CommandError, match="make one with freeze_release"):
        leaderboard()
    small_release(pairs=1, images=1)
    with pytest.raises(CommandError, match="run_benchmark or import_scores"):
        leaderboard()


def board(**labels):
    tables = score_tables.read(GOLDEN_SMALL)
    return build_board(
        tables.layout(), {m: tables.scores(m) for m in tables.metrics},
        policy=Policy(missing="loss"), labels=labels, draws=200,
    )  # fmt: skip


def test_latex_escapes_what_it_must_and_closes_what_it_opens():
    source = latex(board(FakeStrong="50 % of $x_1$ & {y}"), title="A_B")
    assert r"50 \% of \$x\_1\$ \& \{y\}" in source
    assert source.count(r"\begin{") == source.count(r"\end{")
    assert r"\toprule" in source
    assert r"\bottomrule" in source
    spec = re.search(r"\\begin\{tabular\}\{(\w+)\}", source).group(1)
    rows = [line for line in source.splitlines() if line.endswith(r"\\") and "FakeWeak" in line]
    assert len(rows) == 2
    assert all(row.count("&") == len(spec) - 1 for row in rows)


def test_no_cell_of_the_csv_is_a_formula():
    assert safe_cell("=1+1") == "'=1+1"
    assert "'=SUM" in csv_text(board(FakeStrong="=SUM(A1)"), title="t")


def test_incomplete_rows_are_named_in_the_table():
    nan = float("nan")
    good = [(1.0, 0.0)]
    layout, full = build([(good, good)] * 2, categories=["action", "shapes"])
    _, part = build([(good, good), ([(nan, nan)], [(nan, nan)])])
    found = build_board(layout, {"full": full, "part": part}, policy=Policy(missing="skip"),
                        draws=50)  # fmt: skip
    assert "part (lacks shapes)" in text(found, title="t")
