"""Scores from elsewhere: by path, exactly once, and with the same numbers as the tables."""

from __future__ import annotations

import gzip
import json
import shutil
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from croc_annotate.benchmark import score_tables
from croc_annotate.benchmark.models import MetricRun, MetricVersion, Score
from tests.benchmark.world import release_of_tables

GOLDEN_SMALL = Path(__file__).parents[1] / "data" / "golden_small"
DIRECTIONS = {
    "F_text": "text_forward",
    "I_text": "text_inverse",
    "F_image": "image_forward",
    "I_image": "image_inverse",
}
pytestmark = pytest.mark.django_db


@pytest.fixture
def release():
    return release_of_tables(score_tables.read(GOLDEN_SMALL))


def command(name, *arguments, **options):
    out = StringIO()
    call_command(name, *map(str, arguments), stdout=out, **options)
    return out.getvalue()


def leaderboard(**options):
    return json.loads(command("leaderboard", format="json", draws=200, **options))


def test_the_database_gives_the_published_numbers(release):
    command("import_scores", GOLDEN_SMALL, release="golden")
    document = leaderboard(release="golden", missing="loss")
    expected = json.loads((GOLDEN_SMALL / "expected.json").read_text())
    for category, by_metric in expected["raw"].items():
        for metric, values in by_metric.items():
            cells = document["metrics"][metric]["categories"][category.replace("spac", "spat")]
            for theirs, direction in DIRECTIONS.items():
                assert cells[direction] == pytest.approx(values[theirs], abs=1e-12)


def test_the_leaderboard_has_the_cells_of_the_tables(release):
    command("import_scores", GOLDEN_SMALL)
    ours = leaderboard(missing="skip")["metrics"]
    out = command("evaluate_scores", GOLDEN_SMALL, missing="skip", json=True)
    for metric, document in json.loads(out)["metrics"].items():
        for category, cells in document["categories"].items():
            for key, value in cells.items():
                assert ours[metric]["categories"][category][key] == pytest.approx(value, abs=1e-12)
        assert set(document["average"]) <= set(ours[metric]["average"])


def test_importing_twice_changes_nothing(release):
    command("import_scores", GOLDEN_SMALL)
    before = (Score.objects.count(), MetricRun.objects.count(), MetricVersion.objects.count())
    assert "imported before, unchanged" in command("import_scores", GOLDEN_SMALL)
    after = (Score.objects.count(), MetricRun.objects.count(), MetricVersion.objects.count())
    assert before == after


def corrected(tmp_path):
    shutil.copytree(GOLDEN_SMALL, tmp_path / "tables")
    path = tmp_path / "tables" / "action_prompt_img_scores.tsv.gz"
    data = gzip.decompress(path.read_bytes()).replace(b"\t21.685343\t", b"\t11.685343\t")
    path.write_bytes(gzip.compress(data))
    return tmp_path / "tables"


def test_other_scores_under_a_known_name_need_replace(release, tmp_path):
    command("import_scores", GOLDEN_SMALL)
    folder = corrected(tmp_path)
    with pytest.raises(CommandError, match=r"FakeStrong was imported.*--replace"):
        command("import_scores", folder)
    command("import_scores", folder, replace=True)
    assert [e["rank"] for e in leaderboard(missing="skip")["metrics"].values()] == [1, 2, 3]
    assert MetricRun.objects.filter(state="replaced").count() == 1


def test_rows_about_unknown_images_are_refused_or_left_out(release, tmp_path):
    shutil.copytree(GOLDEN_SMALL, tmp_path / "tables")
    path = tmp_path / "tables" / "action_prompt_img_scores.tsv.gz"
    data = gzip.decompress(path.read_bytes()).replace(b"___image3.png", b"___image999.png", 1)
    path.write_bytes(gzip.compress(data))
    with pytest.raises(CommandError, match=r"1 rows are about images.*image999.png \(action_"):
        command("import_scores", tmp_path / "tables")
    assert not Score.objects.exists()
    assert not MetricRun.objects.exists()
    out = command("import_scores", tmp_path / "tables", ignore_unknown=True)
    assert "1 rows about unknown images left out" in out
    assert "1 images of the release have no score" in out


def test_other_texts_are_refused(release, tmp_path):
    shutil.copytree(GOLDEN_SMALL, tmp_path / "tables")
    for side in ("prompt", "contrast"):
        path = tmp_path / "tables" / f"action_{side}_img_scores.tsv.gz"
        data = gzip.decompress(path.read_bytes()).replace(b"photo no. 0", b"photo no. 7")
        path.write_bytes(gzip.compress(data))
    with pytest.raises(CommandError, match="these scores belong to other texts"):
        command("import_scores", tmp_path / "tables")


@pytest.mark.parametrize("form", ["tables", "parquet"])
def test_what_is_exported_comes_back_as_it_was(release, tmp_path, form):
    command("import_scores", GOLDEN_SMALL)
    before = leaderboard(missing="skip")["metrics"]
    command("export_scores", tmp_path / "out", format=form, gzip=True)
    MetricRun.objects.all().delete()
    Score.objects.all().delete()
    source = tmp_path / "out" / "scores.parquet" if form == "parquet" else tmp_path / "out"
    command("import_scores", source)
    after = leaderboard(missing="skip")["metrics"]
    for document in (*before.values(), *after.values()):
        document.pop("run")
    assert before == after


def test_exported_tables_have_the_published_spelling(release, tmp_path):
    command("import_scores", GOLDEN_SMALL)
    command("export_scores", tmp_path / "out")
    table = (tmp_path / "out" / "spacial_relation_prompt_img_scores.tsv").read_text()
    assert table.startswith("id\tprompt\tcontrast\tprompt_paths\tFakeStrong___orig_text___orig_img")
    assert "\nspacial_relation_" in table
    assert "spacial_relation/prompt/spacial_relation_" in table
    assert (
        (tmp_path / "out" / "negation_contrast_img_scores.tsv")
        .read_text()
        .count("negation/alt_contrast/negation_")
    )
    with pytest.raises(CommandError, match="is not empty"):
        command("export_scores", tmp_path / "out")


def test_a_release_that_is_not_there_is_named(release):
    with pytest.raises(CommandError, match="no release “other”"):
        command("import_scores", GOLDEN_SMALL, release="other")
