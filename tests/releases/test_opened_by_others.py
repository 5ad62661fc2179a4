"""Every format is opened by the library that its readers will use, offline."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from croc_annotate.candidates.models import Candidate
from croc_annotate.releases.columns import IMAGE_COLUMNS
from croc_annotate.releases.services import freeze_release
from tests.releases.test_export_crochum import ALL_FORMATS, export
from tests.releases.world import NOW, full_world, make_world, picture

pytestmark = [
    pytest.mark.django_db,
    # Other people's libraries warn about their own insides.
    pytest.mark.filterwarnings("default"),
]

HOSTILE = [
    "=1+1", "it's \"quoted\"", "tab\tinside"[:3] + " plain", "back\\slash", "comma, [brackets], {braces}",
    "emoji 🍎🍏 family 👨‍👩‍👧", "עברית מימין לשמאל", "e\u0301 combining", "%s %(x)s {text}", "| pipe | **bold** <b>",
    "漢字とかな", "'; DROP TABLE--", "---", "a: b # c", "nullish", "…“typographic”…",
]  # fmt: skip


@pytest.fixture
def hostile_release():
    """Hostile texts and every image mode."""
    world = make_world()
    modes = ["RGB", "RGBA", "L", "LA", "P", "1", "CMYK", "I;16"]
    for number, text in enumerate(HOSTILE, start=1):
        pair = world.pair(f"counting_{number}", prompt=text, contrast=f"{text} not")
        mode = modes[number % len(modes)]
        codec = "JPEG" if mode == "CMYK" else ("WEBP" if number == 3 else "PNG")
        data = picture(number, mode="RGB" if codec == "WEBP" else mode, codec=codec)
        world.verified(pair, data=data)
        world.verified(pair, "contrast", data=picture(500 + number))
    return freeze_release(
        name="croc",
        campaign=world.campaign,
        now=NOW,
        notes="Notes: with | signs\n--- and # marks\n[x](y)",
    )


@pytest.fixture
def exported(hostile_release, tmp_path):
    export(tmp_path / "out", *ALL_FORMATS, "--tar")
    return tmp_path / "out"


@pytest.fixture
def offline(tmp_path, monkeypatch):
    """No network, and caches of its own."""
    import datasets

    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True, raising=False)
    monkeypatch.setenv("HF_DATASETS_OFFLINE", "1")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    datasets.disable_progress_bars()
    return str(tmp_path / "hf-cache")


def test_load_dataset_opens_the_imagefolder(exported, offline):
    import datasets

    found = datasets.load_dataset(
        "imagefolder", data_dir=str(exported / "imagefolder"), cache_dir=offline
    )
    rows = found["test"]
    assert list(found) == ["test"]
    assert rows.num_rows == 2 * len(HOSTILE)
    assert set(rows.features) == {"image", *IMAGE_COLUMNS}
    assert rows.features["image"].__class__.__name__ == "Image"
    assert sorted(set(rows["prompt"])) == sorted(HOSTILE)
    sizes = {(row["image"].width, row["width"]) for row in rows}
    assert sizes == {(24, 24)}


def test_load_dataset_opens_the_imagefolder_with_json_lines(hostile_release, tmp_path, offline):
    import datasets

    export(tmp_path / "out", "--format", "imagefolder", "--metadata", "jsonl")
    found = datasets.load_dataset(
        "imagefolder", data_dir=str(tmp_path / "out" / "imagefolder"), cache_dir=offline
    )
    assert found["test"].num_rows == 2 * len(HOSTILE)
    assert sorted(set(found["test"]["prompt"])) == sorted(HOSTILE)


def test_load_dataset_opens_the_parquet_by_the_cards_configuration(exported, offline):
    import datasets

    rows = datasets.load_dataset(str(exported), "parquet", cache_dir=offline)["test"]
    assert rows.num_rows == 2 * len(HOSTILE)
    expected = {"image": datasets.Image()} | {
        name: datasets.Value(kind) for name, kind in IMAGE_COLUMNS.items()
    }
    assert dict(rows.features) == expected
    hashes = dict(Candidate.objects.values_list("sha256", "seed"))
    for row in rows:
        row["image"].load()
        assert hashes[row["sha256"]] == row["seed"]
    paths = rows.cast_column("image", datasets.Image(decode=False))["image"]
    assert all("/" not in cell["path"] for cell in paths)


def test_load_dataset_opens_the_training_rows(exported, offline):
    import datasets

    found = datasets.load_dataset(str(exported), "sft", cache_dir=offline)
    assert set(found) == {"train", "dev"}
    rows = datasets.concatenate_datasets([found["train"], found["dev"]])
    assert rows.num_rows == 4 * len(HOSTILE)
    assert rows[0]["question"].startswith("Does this image show the following content:'")
    assert sorted(rows["answer"]) == ["No"] * 2 * len(HOSTILE) + ["Yes"] * 2 * len(HOSTILE)
    texts = {name: set(found[name]["text"]) for name in found}
    assert not texts["train"] & texts["dev"]
    assert set(rows["answer_from"]) == {"judged", "assumed"}


def test_webdataset_iterates(exported):
    import webdataset

    shards = [str(path) for path in sorted((exported / "webdataset").glob("*.tar"))]
    source = webdataset.WebDataset(shards, shardshuffle=False, empty_check=False)
    samples = list(source)
    assert len(samples) == 2 * len(HOSTILE)
    for sample in samples:
        row = json.loads(sample["json"])
        assert sample["__key__"] == row["id"]
        assert any(sample.get(ending) for ending in ("png", "jpg", "webp"))
    assert {json.loads(sample["json"])["prompt"] for sample in samples} == set(HOSTILE)


def test_mlcroissant_validates_and_yields_records(exported):
    import mlcroissant

    dataset = mlcroissant.Dataset(jsonld=str(exported / "croissant.json"))
    issues = dataset.metadata.ctx.issues
    assert issues.errors == set()
    images = list(dataset.records("images"))
    assert len(images) == 2 * len(HOSTILE)
    assert {record["images/prompt"].decode() for record in images} == set(HOSTILE)
    assert images[0]["images/image"].size == (24, 24)
    annotations = list(dataset.records("annotations"))
    assert len(annotations) == 3 * 2 * len(HOSTILE)
    assert len(list(dataset.records("pairs"))) == len(HOSTILE)
    assert len(list(dataset.records("questions"))) == 4 * len(HOSTILE)


def test_the_croissant_file_has_its_responsible_ai_part_and_hashes(exported):
    found = json.loads((exported / "croissant.json").read_text())
    assert any(key.startswith("rai:") for key in found)
    objects = [item for item in found["distribution"] if item["@type"] == "cr:FileObject"]
    assert all(len(item["sha256"]) == 64 for item in objects)
    assert {"annotations.parquet", "parquet/data/test-00000.parquet"} <= {
        item["contentUrl"] for item in objects
    }


def test_the_card_parses(exported):
    from huggingface_hub import DatasetCard

    card = DatasetCard.load(exported / "README.md")
    head = card.data.to_dict()
    assert head["license"] == "other"
    assert [item["config_name"] for item in head["configs"]] == ["parquet", "sft"]
    assert head["size_categories"] == ["n<1K"]
    assert "FLUX.1-dev non-commercial" in card.text
    assert "<b>" not in card.text
    assert "Krippendorff" in card.text


def test_the_citation_parses(exported):
    import yaml

    found = yaml.safe_load((exported / "CITATION.cff").read_text())
    assert found["cff-version"] == "1.2.0"
    assert found["type"] == "dataset"
    assert found["version"] == "1.0.0"
    assert found["references"][0]["url"].endswith("2505.11314")


def test_a_simulated_release_says_so_everywhere(tmp_path):
    world = full_world(pairs=1, seeds=1, is_simulated=True)
    freeze_release(name="demo", campaign=world.campaign, now=NOW)
    export(tmp_path / "out", "--format", "parquet", release="demo")
    assert "Simulated" in (tmp_path / "out" / "README.md").read_text()
    assert "simulated-annotators" in (tmp_path / "out" / "README.md").read_text()
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["release"]["simulated"] is True


def test_the_files_open_in_a_process_that_knows_nothing_of_this_project(exported, tmp_path):
    script = (
        "import sys, pandas, pyarrow.parquet as pq\n"
        "root = sys.argv[1]\n"
        "print(len(pandas.read_parquet(root + '/annotations.parquet')))\n"
        "print(pq.read_table(root + '/parquet/data').num_rows)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(exported)], capture_output=True, text=True, check=True,
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": ""},
    )  # fmt: skip
    assert done.stdout.split() == [str(6 * len(HOSTILE)), str(2 * len(HOSTILE))]
    assert Path(exported).exists()
