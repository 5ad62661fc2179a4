from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from croc_annotate.candidates.models import Candidate, Generator
from croc_annotate.candidates.storage import read_file
from croc_annotate.lib.hashing import sha256_bytes
from tests import factories

pytestmark = pytest.mark.django_db

COLUMNS = ("file", "pair_id", "side", "generator", "seed", "sha256")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with one pair's image and nothing wrong."""
    factories.make_pair(slug="counting_7")
    path = tmp_path / "in"
    (path / "images").mkdir(parents=True)
    (path / "images/a.png").write_bytes(factories.png_bytes())
    return path


def manifest(folder: Path, *rows: dict[str, object], name: str = "manifest.tsv") -> Path:
    path = folder.parent / name
    whole = [
        {
            "file": "images/a.png",
            "pair_id": "counting_7",
            "side": "prompt",
            "generator": "GEN_1",
            "seed": 3,
            **row,
        }
        for row in rows
    ]
    if name.endswith("jsonl"):
        path.write_text("".join(json.dumps(row) + "\n" for row in whole))
        return path
    with path.open("w", newline="") as out:
        writer = csv.DictWriter(
            out, COLUMNS, delimiter="\t" if name.endswith("tsv") else ",", extrasaction="ignore"
        )
        writer.writeheader()
        writer.writerows(whole)
    return path


def run(folder: Path, path: Path | None = None) -> None:
    call_command("import_images", str(folder), *(["--manifest", str(path)] if path else []))


def refused(folder: Path, path: Path, reason: str) -> None:
    with pytest.raises(CommandError, match=reason):
        run(folder, path)
    assert not Candidate.objects.exists()
    assert not Generator.objects.filter(slug="GEN_1").exists()


@pytest.mark.parametrize("name", ["m.tsv", "m.csv", "m.jsonl"])
def test_a_row_becomes_a_rendered_candidate_with_its_bytes(folder: Path, name: str, capsys) -> None:
    run(folder, manifest(folder, {}, name=name))
    candidate = Candidate.objects.get()
    assert (candidate.pair.slug, candidate.side, candidate.generator.slug, candidate.seed) == (
        "counting_7",
        "prompt",
        "GEN_1",
        3,
    )
    assert candidate.source_name == "images/a.png"
    assert read_file(candidate.image) == (folder / "images/a.png").read_bytes()
    assert candidate.generator.licence == "unknown"
    assert "Stored 1 images, 0 were there already" in capsys.readouterr().out


@pytest.mark.field_case(38)
def test_a_second_import_changes_nothing(folder: Path, capsys) -> None:
    path = manifest(folder, {})
    run(folder, path)
    before = Candidate.objects.values().get()
    run(folder, path)
    assert Candidate.objects.values().get() == before
    assert "Stored 0 images, 1 were there already" in capsys.readouterr().out


@pytest.mark.field_case(38)
def test_the_same_image_under_two_ids_is_reported(folder: Path, capsys) -> None:
    run(folder, manifest(folder, {}, {"seed": 4}))
    said = capsys.readouterr()
    assert "counting_7___prompt___GEN_1___3, counting_7___prompt___GEN_1___4" in said.err
    assert Candidate.objects.count() == 2
    (folder / "images/b.png").write_bytes((folder / "images/a.png").read_bytes())
    run(folder, manifest(folder, {"file": "images/b.png", "seed": 9}))
    assert "GEN_1___9" in capsys.readouterr().err


def test_published_names_are_read_without_a_manifest(folder: Path) -> None:
    factories.make_pair("spatial_relation", slug="spatial_relation_2")
    factories.make_pair("negation", slug="negation_2")
    shutil.rmtree(folder / "images")
    for name in (
        "counting/prompt/counting_7___prompt___FLUX_1_dev___image12.png",
        "spacial_relation/contrast/spacial_relation_2___contrast___stable_diffusion_3_5_large___image3.png",
        "negation/alt_contrast/negation_2___alt_contrast___FLUX_1_dev___image1.png",
    ):
        (folder / name).parent.mkdir(parents=True)
        (folder / name).write_bytes(factories.png_bytes())
    (folder / "notes.txt").write_text("not an image")
    run(folder)
    found = set(Candidate.objects.values_list("pair__slug", "side", "generator__slug", "seed"))
    assert found == {
        ("counting_7", "prompt", "FLUX_1_dev", 12),
        ("spatial_relation_2", "contrast", "stable_diffusion_3_5_large", 3),
        ("negation_2", "alt_contrast", "FLUX_1_dev", 1),
    }


def test_a_manifest_may_leave_the_rest_to_the_name(folder: Path) -> None:
    (folder / "counting_7___contrast___G___image5.png").write_bytes(factories.png_bytes())
    path = folder.parent / "m.csv"
    path.write_text("file\ncounting_7___contrast___G___image5.png\n")
    run(folder, path)
    assert Candidate.objects.get().seed == 5


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"file": "images/none.png"}, "no such file"),
        ({"file": "images"}, "not a plain file"),
        ({"file": "../in/images/a.png"}, "leads out of the folder"),
        ({"file": "/etc/hostname"}, "leads out of the folder"),
        ({"pair_id": "counting_8"}, "unknown pair 'counting_8'"),
        ({"side": "left"}, "unknown side 'left'"),
        ({"side": "alt_contrast"}, "no alt_contrast text"),
        ({"seed": "-1"}, "seed '-1'"),
        ({"seed": "1.5"}, "seed '1.5'"),
        ({"generator": "a/b"}, "generator 'a/b'"),
        ({"generator": "a___b"}, "generator 'a___b'"),
        ({"sha256": "0" * 64}, "SHA-256 is not the one"),
        ({"sha256": "abc"}, "not 64 hex digits"),
        ({"seed": 2}, "the same pair, side, generator and seed as"),
    ],
)
def test_one_wrong_row_is_named_and_nothing_is_stored(folder: Path, row: dict, reason: str) -> None:
    path = manifest(folder, {"seed": 2}, row)
    refused(folder, path, reason)
    with pytest.raises(CommandError, match=r"manifest.tsv, line 3"):
        run(folder, path)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"GIF89a", "it is GIF"),
        (factories.png_bytes()[:60], "truncated"),
        (b"", "the file is empty"),
    ],
)
def test_a_file_that_is_no_good_image_is_refused(folder: Path, data: bytes, reason: str) -> None:
    (folder / "images/b.png").write_bytes(data)
    refused(folder, manifest(folder, {}, {"file": "images/b.png", "seed": 4}), reason)


def test_symbolic_links_are_refused_also_as_a_folder(folder: Path, tmp_path: Path) -> None:
    (folder / "link.png").symlink_to(folder / "images/a.png")
    (folder / "linked").symlink_to(folder / "images")
    refused(folder, manifest(folder, {"file": "link.png"}), "symbolic link")
    refused(folder, manifest(folder, {"file": "linked/a.png"}), "symbolic link")


def test_another_image_for_a_seed_that_has_one_is_refused(folder: Path) -> None:
    run(folder, manifest(folder, {}))
    (folder / "images/b.png").write_bytes(factories.png_bytes())
    with pytest.raises(CommandError, match="another image of this pair"):
        run(folder, manifest(folder, {"file": "images/b.png"}))
    assert Candidate.objects.count() == 1


@pytest.mark.parametrize(
    ("text", "reason"),
    [("", "no column 'file'"), ("name\tseed\n", "no column 'file'"), ("file\tseed\n", "no rows")],
)
def test_a_manifest_that_is_none_is_refused(folder: Path, text: str, reason: str) -> None:
    path = folder.parent / "m.tsv"
    path.write_text(text)
    refused(folder, path, reason)


def test_a_folder_or_manifest_that_is_not_there_is_said(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="not a folder"):
        run(tmp_path / "nowhere")
    with pytest.raises(CommandError, match="is not there"):
        run(folder, tmp_path / "nowhere.tsv")


def test_an_import_fills_a_waiting_candidate(folder: Path) -> None:
    pair = Candidate._meta.get_field("pair").related_model.objects.get(slug="counting_7")
    waiting = factories.make_candidate(
        pair=pair, generator=factories.make_generator("GEN_1"), seed=3, rendered=False
    )
    run(folder, manifest(folder, {}))
    waiting.refresh_from_db()
    assert waiting.sha256 == sha256_bytes((folder / "images/a.png").read_bytes())


def test_real_images_from_real_models_come_in(real_data: Path) -> None:
    tifa = real_data / "tifa_real"
    for category, pairs in json.loads((tifa / "prompts.json").read_text()).items():
        for number, texts in pairs.items():
            factories.make_pair(category, slug=f"{category}_{number}", **texts)
    run(tifa, tifa / "manifest.tsv")
    assert Candidate.objects.rendered().count() == 130
    assert Generator.objects.count() == 5
