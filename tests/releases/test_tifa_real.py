"""Real images, real people: from the files to a release and back, by the commands alone."""

from __future__ import annotations

import json
from io import StringIO

import pandas as pd
import pytest
from django.core.management import call_command

from croc_annotate.candidates.models import Candidate
from croc_annotate.releases.models import Release
from croc_annotate.releases.published import METADATA_NAME, read_table

pytestmark = [pytest.mark.django_db, pytest.mark.filterwarnings("default")]


def run(*words: str) -> str:
    out = StringIO()
    call_command(*words, stdout=out)
    return out.getvalue()


def test_sixty_five_images_are_verified_by_both_people(real_data, tmp_path):
    folder = real_data / "tifa_real"
    expected = json.loads((folder / "expected.json").read_text())["consensus_unanimous_of_two"]
    run("load_prompts", str(folder / "prompts.json"))
    run("import_images", str(folder), "--manifest", str(folder / "manifest.tsv"))
    run("import_ratings", str(folder / "ratings.tsv"), "--accept-from", "4", "--reject-to", "2")
    frozen = json.loads(
        run("freeze_release", "tifa", "--rule", "unanimous", "--min-judgements", "2", "--json")
    )

    assert frozen["counts"]["verified"] == expected["accepted"] == 65
    assert frozen["counts"]["rejected"] == expected["rejected"]
    assert sum(frozen["counts"].values()) == Candidate.objects.count() == 130

    out = tmp_path / "out"
    run("export_crochum", "--release", "tifa", "--out", str(out), "--format", "crochum",
        "--format", "imagefolder", "--format", "parquet")  # fmt: skip
    run("verify_release", str(out))

    text = (out / "crochum" / METADATA_NAME).read_text()
    assert sum(len(paths) for row in read_table(text) for paths in row.paths.values()) == 65
    assert len(pd.read_csv(out / "crochum" / METADATA_NAME, sep="\t")) == 26

    import datasets

    datasets.disable_progress_bars()
    rows = datasets.load_dataset(
        "imagefolder", data_dir=str(out / "imagefolder"), cache_dir=str(tmp_path / "cache")
    )["test"]
    assert rows.num_rows == 65
    parquet = datasets.load_dataset(str(out), "parquet", cache_dir=str(tmp_path / "cache"))["test"]
    assert parquet.num_rows == 65
    assert set(parquet["sha256"]) == set(rows["sha256"])

    # A second road: what was exported comes back as a benchmark of its own.
    run("import_crochum", str(out), "--release", "again")
    again = Release.objects.get(name="again")
    assert again.n_verified == 65
