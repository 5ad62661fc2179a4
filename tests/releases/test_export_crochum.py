from __future__ import annotations

import ast
import hashlib
import io
import json
import tarfile
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from django.core.management import CommandError, call_command
from PIL import Image

from croc_annotate.candidates.models import Candidate
from croc_annotate.releases.published import METADATA_NAME
from croc_annotate.releases.services import freeze_release, withdraw_release
from tests.releases.world import NOW, full_world, make_world, picture

pytestmark = pytest.mark.django_db


@pytest.fixture
def world():
    return full_world(pairs=1, seeds=2)


def freeze(world, **options):
    return freeze_release(name="croc", campaign=world.campaign, now=NOW, **options)


def export(out: Path, *more: str, release: str = "croc") -> None:
    call_command("export_crochum", "--release", release, "--out", str(out), *more, "--json")


def tree(folder: Path) -> dict[str, str]:
    """Every file's hash."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


ALL_FORMATS = [
    word for name in ("crochum", "imagefolder", "parquet", "webdataset", "sft")
    for word in ("--format", name)
]  # fmt: skip


def test_the_folder_is_the_published_one(world, tmp_path):
    freeze(world)
    export(tmp_path / "out")

    folder = tmp_path / "out" / "crochum"
    table = pd.read_csv(folder / METADATA_NAME, sep="\t")
    assert list(table.columns) == [
        "id", "prompt", "contrast", "prompt_paths", "contrast_paths", "alt_contrast_paths",
    ]  # fmt: skip
    assert len(table) == 8
    row = table.set_index("id").loc["counting_1"]
    assert ast.literal_eval(row["prompt_paths"]) == [
        "counting/prompt/counting_1___prompt___FLUX_1_dev___image1.png",
        "counting/prompt/counting_1___prompt___FLUX_1_dev___image2.png",
        "counting/prompt/counting_1___prompt___stable_diffusion_3_5_large___image1.png",
        "counting/prompt/counting_1___prompt___stable_diffusion_3_5_large___image2.png",
    ]
    spelt = table.set_index("id").loc["spacial_relation_1"]
    assert ast.literal_eval(spelt["contrast_paths"])[0].startswith(
        "spacial_relation/contrast/spacial_relation_1___contrast___"
    )
    negation = table.set_index("id").loc["negation_1"]
    assert negation["contrast_paths"] == "[]"
    assert ast.literal_eval(negation["alt_contrast_paths"])[0].startswith("negation/alt_contrast/")
    for cell in table[["prompt_paths", "contrast_paths", "alt_contrast_paths"]].to_numpy().ravel():
        for path in ast.literal_eval(cell):
            assert (folder / path).is_file()


def test_images_are_the_original_bytes(world, tmp_path):
    freeze(world)
    export(tmp_path / "out")
    exported = {
        hashlib.sha256(path.read_bytes()).hexdigest()
        for path in (tmp_path / "out" / "crochum").rglob("*.png")
    }
    assert exported == set(Candidate.objects.values_list("sha256", flat=True))


def test_everything_that_stands_beside_the_data_is_there(world, tmp_path):
    release = freeze(world)
    export(tmp_path / "out")
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "crochum", "annotations.parquet", "agreement.json", "manifest.json", "croissant.json",
        "README.md", "CITATION.cff",
    }  # fmt: skip
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert sum(manifest["counts"].values()) == manifest["candidates"] == Candidate.objects.count()
    assert manifest["release"] == {
        "name": "croc", "version": "1.0.0", "created": "2026-03-01T12:00:00Z",
        "sha256": release.sha256, "origin": "campaign", "simulated": False, "notes": "",
    }  # fmt: skip
    listed = {entry["path"]: entry["sha256"] for entry in manifest["files"]}
    found = tree(tmp_path / "out")
    found.pop("manifest.json")
    assert listed == found
    judgements = pq.read_table(tmp_path / "out" / "annotations.parquet")
    assert judgements.num_rows == release.annotations.count() == 3 * Candidate.objects.count()
    agreement = json.loads((tmp_path / "out" / "agreement.json").read_text())
    assert agreement["all"]["judgements"] == judgements.num_rows


def test_two_runs_and_another_number_of_threads_give_the_same_bytes(world, tmp_path):
    freeze(world)
    export(tmp_path / "a", *ALL_FORMATS, "--tar", "--workers", "1")
    export(tmp_path / "b", *ALL_FORMATS, "--tar", "--workers", "5")
    assert tree(tmp_path / "a") == tree(tmp_path / "b")


def test_an_existing_folder_is_not_touched_without_force(world, tmp_path):
    freeze(world)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("precious")
    with pytest.raises(CommandError, match="--force"):
        export(tmp_path / "out")
    assert tree(tmp_path / "out").keys() == {"mine.txt"}
    export(tmp_path / "out", "--force")
    assert "mine.txt" not in tree(tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


@pytest.mark.field_case(37)
def test_dry_run_prints_counts_that_add_up_and_writes_nothing(world, tmp_path, capsys):
    freeze(world)
    call_command("export_crochum", "--dry-run", "--json")
    found = json.loads(capsys.readouterr().out)
    assert sum(found["counts"].values()) == found["candidates"] == Candidate.objects.count()
    assert found["out"] is None
    assert not (tmp_path / "out").exists()


@pytest.mark.field_case(37)
def test_an_empty_release_says_so_in_its_counts(tmp_path, capsys):
    world = make_world()
    world.candidate(world.pair("counting_1"))
    freeze(world)
    export(tmp_path / "out", *ALL_FORMATS)
    err = capsys.readouterr().err
    assert "no verified image" in err
    table = pd.read_csv(tmp_path / "out" / "crochum" / METADATA_NAME, sep="\t")
    assert table.loc[0, "prompt_paths"] == "[]"
    counts = json.loads((tmp_path / "out" / "manifest.json").read_text())["counts"]
    assert (counts["verified"], counts["too_few"]) == (0, 1)


def test_a_category_without_images_on_both_sides_is_named(world, tmp_path, capsys):
    freeze(world)
    export(tmp_path / "out")
    assert "Warning" not in capsys.readouterr().err

    world.campaign.banks = ["second"]
    world.campaign.save()
    world.verified(world.pair("shapes_9", bank="second"))
    freeze_release(name="half", campaign=world.campaign)
    export(tmp_path / "half", release="half")
    assert "shapes" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["images", "my_images", "images/out", "croc-images/deep/out"])
def test_a_path_that_the_published_scripts_would_cut_is_refused(world, tmp_path, name):
    freeze(world)
    with pytest.raises(CommandError, match="ends in “images”"):
        export(tmp_path / name)
    assert not (tmp_path / name).exists()


def test_wrong_calls_exit_with_two(world, tmp_path):
    freeze(world)
    for more in (
        ["--split", "dev"],
        ["--split", "test=0.1"],
        ["--max-side", "3"],
        ["--split", "a=0.9", "--split", "b=0.2"],
    ):
        with pytest.raises(CommandError) as caught:
            export(tmp_path / "out", *more)
        assert caught.value.returncode == 2


def test_a_changed_image_is_noticed(world, tmp_path):
    freeze(world)
    name = Candidate.objects.first().image
    from django.core.files.base import ContentFile
    from django.core.files.storage import default_storage

    default_storage.delete(name)
    with pytest.raises(CommandError, match="not in the storage"):
        export(tmp_path / "out")
    default_storage.save(name, ContentFile(picture(9_999)))
    with pytest.raises(CommandError, match="not the one that was judged"):
        export(tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_withdrawn_release_is_not_exported(world, tmp_path):
    release = freeze(world)
    withdraw_release(release=release, note="wrong texts")
    with pytest.raises(CommandError, match="wrong texts"):
        export(tmp_path / "out")


def test_parquet_shards_keep_their_limits(tmp_path, monkeypatch):
    from croc_annotate.releases.export import tables
    from croc_annotate.releases.formats import webdataset

    world = full_world(pairs=1, seeds=4)
    freeze(world)
    size = len(picture(1))
    monkeypatch.setattr(tables, "GROUP_BYTES", 3 * size)
    monkeypatch.setattr(tables, "SHARD_BYTES", 10 * size)
    monkeypatch.setattr(webdataset, "SHARD_BYTES", 10 * 2 * size)
    export(tmp_path / "out", "--format", "parquet", "--format", "webdataset", "--format", "sft")
    shards = sorted((tmp_path / "out" / "parquet" / "data").glob("test-*.parquet"))
    assert len(shards) > 8
    total = 0
    for shard in shards:
        file = pq.ParquetFile(shard)
        total += file.metadata.num_rows
        for group in range(file.num_row_groups):
            cells = file.read_row_group(group, columns=["image"])["image"]
            assert sum(len(cell["bytes"].as_py()) for cell in cells) <= 4 * size
    assert total == 128
    sft = sorted((tmp_path / "out" / "sft" / "data").glob("*.parquet"))
    assert sum(pq.ParquetFile(path).metadata.num_rows for path in sft) == 256


def test_a_shard_of_small_images_ends_after_so_many_rows(tmp_path, monkeypatch):
    from croc_annotate.releases.export import tables

    freeze(full_world(pairs=1, seeds=1))
    monkeypatch.setattr(tables, "SHARD_ROWS", 10)
    export(tmp_path / "out", "--format", "parquet", "--format", "sft")

    def rows_in(name: str) -> list[int]:
        shards = sorted((tmp_path / "out" / name / "data").glob("*.parquet"))
        return [pq.ParquetFile(path).metadata.num_rows for path in shards]

    assert rows_in("parquet") == [10, 10, 10, 2]
    assert rows_in("sft") == [10, 10, 10, 10, 10, 10, 4]


def test_a_row_group_has_at_most_100_images(tmp_path):
    world = make_world()
    pair = world.pair("counting_1")
    for _ in range(130):
        world.verified(pair)
    freeze(world)
    export(tmp_path / "out", "--format", "parquet")
    file = pq.ParquetFile(tmp_path / "out" / "parquet" / "data" / "test-00000.parquet")
    assert [file.metadata.row_group(n).num_rows for n in range(file.num_row_groups)] == [100, 30]


def test_reencoded_images_have_both_hashes(world, tmp_path):
    freeze(world)
    export(tmp_path / "out", "--format", "crochum", "--format", "parquet", "--image-format", "webp",
           "--max-side", "16")  # fmt: skip
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    images = [entry for entry in manifest["files"] if entry["path"].endswith(".webp")]
    originals = set(Candidate.objects.values_list("sha256", flat=True))
    assert len(images) == len(originals) == 64
    assert {entry["original_sha256"] for entry in images} == originals
    for entry in images[:3]:
        data = (tmp_path / "out" / entry["path"]).read_bytes()
        assert hashlib.sha256(data).hexdigest() == entry["sha256"]
        assert Image.open(io.BytesIO(data)).size == (16, 16)
    table = pq.read_table(tmp_path / "out" / "parquet" / "data")
    assert set(table["sha256"].to_pylist()) == originals
    assert set(table["width"].to_pylist()) == {16}


def test_the_archive_holds_the_folder(world, tmp_path):
    freeze(world)
    export(tmp_path / "out", "--tar")
    with tarfile.open(tmp_path / "out" / "crochum.tar.gz") as tar:
        names = tar.getnames()
        assert names[0] == f"croc_hum/{METADATA_NAME}"
        members = tar.getmembers()
        assert {(m.uid, m.gid, m.mtime, m.uname) for m in members} == {(0, 0, 0, "")}
        tar.extractall(tmp_path / "x", filter="data")
    assert tree(tmp_path / "x" / "croc_hum") == tree(tmp_path / "out" / "crochum")


def test_splits_are_by_pair_and_share_no_text(tmp_path):
    world = make_world()
    for number in range(1, 21):
        world.verified(world.pair(f"counting_{number}"))
        world.verified(
            world.pair(f"shapes_{number}", prompt=f"shapes text {number // 2}, with three")
        )
    freeze(world)
    export(tmp_path / "out", "--format", "imagefolder", "--format", "sft", "--split", "dev=0.2")
    table = pd.read_csv(tmp_path / "out" / "splits.tsv", sep="\t")
    share = table.assign(dev=table.split == "dev").groupby("category")["dev"].sum()
    assert share.to_dict() == {"counting": 4, "shapes": 4}
    assert table.groupby("component")["split"].nunique().max() == 1
    texts = {}
    for split in ("dev", "test"):
        rows = pq.read_table(tmp_path / "out" / "imagefolder" / "data" / split / "metadata.parquet")
        texts[split] = set(rows["prompt"].to_pylist()) | set(rows["contrast"].to_pylist())
    assert not texts["dev"] & texts["test"]
    sft = pq.read_table(tmp_path / "out" / "sft" / "data" / "dev-00000.parquet")
    assert set(sft["text"].to_pylist()) <= texts["dev"]


def test_generator_names_that_a_path_cannot_hold_stay_apart(tmp_path):
    from croc_annotate.candidates.models import Generator

    world = make_world()
    pair = world.pair("counting_1")
    for slug in ("a/b", "a b", "x___y", "FLUX.1-dev"):
        generator = Generator.objects.create(slug=slug, label=slug)
        world.verified(pair, generator=generator, seed=1)
    freeze(world)
    export(tmp_path / "out", "--format", "crochum", "--format", "webdataset")
    table = pd.read_csv(tmp_path / "out" / "crochum" / METADATA_NAME, sep="\t")
    fields = [path.split("___")[2] for path in ast.literal_eval(table.loc[0, "prompt_paths"])]
    assert sorted(fields) == ["FLUX.1-dev", "a_b", "a_b-2", "x__y"]
    with tarfile.open(tmp_path / "out" / "webdataset" / "test-00000.tar") as tar:
        keys = {name.partition(".")[0] for name in tar.getnames()}
    assert len(keys) == 4


def test_numbers_survive_in_the_parquet(world, tmp_path):
    pair = world.pair("counting_9")
    row = world.candidate(pair)
    world.judge(row, ("accept", "accept", "reject"))
    freeze(world)
    export(tmp_path / "out", "--format", "parquet")
    table = pq.read_table(tmp_path / "out" / "parquet" / "data").to_pylist()
    found = next(item for item in table if item["pair_id"] == "counting_9")
    assert (found["n_accept"], found["n_reject"], found["n_unsure"]) == (2, 1, 0)
    assert found["verified_by"] == "majority"
    assert (found["campaign"], found["guideline_version"]) == ("main", "1")
    assert found["text"] == pair.prompt
    assert found["generator_licence"] == "FLUX.1-dev non-commercial"
    assert found["posterior"] is None or np.isfinite(found["posterior"])
