from __future__ import annotations

import ast
import gzip
import io
import json
import os
import shutil
import tarfile
from pathlib import Path

import pandas as pd
import pytest
from django.core.files.storage import default_storage
from django.core.management import CommandError, call_command

from croc_annotate.candidates.models import Candidate, Generator
from croc_annotate.prompts.models import ContrastPair
from croc_annotate.releases.archives import HostileArchiveError, Limits, unpack
from croc_annotate.releases.imports.run import import_published
from croc_annotate.releases.models import Release, ReleaseMember
from croc_annotate.releases.published import METADATA_NAME
from croc_annotate.releases.selectors import scored_members
from croc_annotate.releases.services import freeze_release
from tests.releases.test_export_crochum import export, tree
from tests.releases.world import NOW, full_world, picture

pytestmark = pytest.mark.django_db


def published(root: Path, *, prefix: str = "", shuffled: bool = False) -> Path:
    """A folder as the research code writes it, with pandas."""
    rows = []
    number = 0
    for category in ("negation", "spacial_relation", "counting"):
        for pair in (10, 2):
            row = {"id": f"{category}_{pair}", "prompt": f'{category} "{pair}",\ta, [b]',
                   "contrast": f"{category} {pair} ≠ 🍎\r\nsecond line"}  # fmt: skip
            for side in ("prompt", "contrast", "alt_contrast"):
                paths = []
                evaluated = side == ("alt_contrast" if category == "negation" else "contrast")
                for image in (3, 1) if side == "prompt" or evaluated else ():
                    number += 1
                    for generator in ("FLUX_1_dev", "DALL_E_3"):
                        name = f"{category}_{pair}___{side}___{generator}___image{image}.png"
                        path = root / category / side / name
                        path.parent.mkdir(parents=True, exist_ok=True)
                        codec = "JPEG" if generator.startswith("DALL") else "PNG"
                        path.write_bytes(picture(number * 2 + len(generator), codec=codec))
                        paths.append(f"{prefix}{category}/{side}/{name}")
                row[f"{side}_paths"] = paths
            rows.append(row)
    frame = pd.DataFrame(rows)
    frame["prompt_paths"] = frame["prompt_paths"].astype(object)
    if shuffled:
        frame = frame[list(frame.columns[::-1])]
    frame.to_csv(root / METADATA_NAME, sep="\t", index=False)
    return root


def packed(folder: Path, target: Path, top: str = "croc_hum") -> Path:
    with tarfile.open(target, "w:gz") as tar:
        tar.add(folder, arcname=top)
    return target


def state() -> tuple[int, ...]:
    models = (ContrastPair, Candidate, Generator, Release, ReleaseMember)
    files = sum(len(names) for _, _, names in os.walk(default_storage.location))
    return (*(model.objects.count() for model in models), files)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "src").mkdir()
    return published(tmp_path / "src")


def test_the_published_folder_becomes_pairs_candidates_and_a_release(folder):
    report = import_published(source=folder, now=NOW)

    assert (report.created, report.pairs, report.images) == (True, 6, 48)
    assert ContrastPair.objects.filter(active=False).count() == 6
    assert Candidate.objects.rendered().count() == 48
    assert report.release.rule == "published"
    assert report.release.counts["verified"] == 48
    members = scored_members(report.release)
    assert len(members) == 48
    assert {m.generator for m in members} == {"FLUX_1_dev", "DALL_E_3"}
    assert {m.category for m in members} == {"negation", "spatial_relation", "counting"}
    assert members[0].pair_slug == "negation_10"
    assert {m.side for m in members if m.category == "negation"} == {"prompt", "alt_contrast"}


def test_a_round_trip_gives_the_same_table_and_the_same_images(folder, tmp_path):
    import_published(source=folder, now=NOW)
    export(tmp_path / "out", release="crochum")

    ours, theirs = tmp_path / "out" / "crochum", folder
    assert (ours / METADATA_NAME).read_bytes() == (theirs / METADATA_NAME).read_bytes()
    pd.testing.assert_frame_equal(
        pd.read_csv(ours / METADATA_NAME, sep="\t"), pd.read_csv(theirs / METADATA_NAME, sep="\t")
    )
    assert tree(ours) == tree(theirs)


def test_our_own_export_comes_back_the_same(tmp_path):
    world = full_world(pairs=1, seeds=1)
    freeze_release(name="croc", campaign=world.campaign, now=NOW)
    export(tmp_path / "a", "--tar")
    before = Candidate.objects.count()
    report = import_published(source=tmp_path / "a" / "crochum.tar.gz", name="again")
    export(tmp_path / "b", release="again")
    assert tree(tmp_path / "a" / "crochum") == tree(tmp_path / "b" / "crochum")
    # The images are here already: nothing is stored twice.
    assert Candidate.objects.count() == before
    assert report.release.n_verified == before


@pytest.mark.parametrize("prefix", ["images/", "./", "croc_hum/"])
def test_paths_may_carry_a_leading_folder(tmp_path, prefix):
    (tmp_path / "src").mkdir()
    report = import_published(source=published(tmp_path / "src", prefix=prefix))
    assert report.images == 48


def test_columns_are_found_by_name(tmp_path):
    (tmp_path / "src").mkdir()
    report = import_published(source=published(tmp_path / "src", shuffled=True))
    assert report.images == 48


def test_an_archive_is_the_same_release(folder, tmp_path):
    archive = packed(folder, tmp_path / "croc_hum.tar.gz")
    first = import_published(source=archive)
    assert first.created
    again = import_published(source=folder)
    assert (again.created, again.release) == (False, first.release)


@pytest.mark.field_case(38)
def test_a_second_import_changes_nothing(folder):
    import_published(source=folder)
    before = state()
    call_command("import_crochum", str(folder))
    assert state() == before


@pytest.mark.field_case(38)
def test_one_image_under_two_names_is_reported(folder, capsys):
    side = folder / "counting" / "prompt"
    files = sorted(side.iterdir())
    files[1].write_bytes(files[0].read_bytes())
    call_command("import_crochum", str(folder), "--json")
    found = json.loads(capsys.readouterr().out)
    assert len(found["duplicates"]) == 1
    assert files[0].name in found["duplicates"][0][0] + found["duplicates"][0][1]


def test_images_outside_the_table_are_counted(folder, capsys):
    extra = folder / "counting" / "prompt" / "counting_2___prompt___FLUX_1_dev___image99.png"
    extra.write_bytes(picture(77))
    call_command("import_crochum", str(folder))
    assert "1 images are not in the table" in capsys.readouterr().err


def test_the_banks_own_pairs_stay_in_use(folder):
    mine = ContrastPair.objects.create(
        slug="counting_2", category_id="counting", prompt="two cups", contrast="three cups"
    )
    import_published(source=folder)
    mine.refresh_from_db()
    assert mine.active
    theirs = ContrastPair.objects.get(slug="counting_2", version=2)
    assert not theirs.active


def test_another_content_under_the_same_name_is_the_next_version(folder):
    import_published(source=folder)
    name = next((folder / "counting" / "prompt").iterdir())
    name.write_bytes(picture(4_000))
    report = import_published(source=folder)
    assert report.release.version == "1.1.0"
    assert report.created


def edit_table(folder: Path, old: str, new: str) -> None:
    path = folder / METADATA_NAME
    text = path.read_bytes().decode()
    assert old in text
    path.write_bytes(text.replace(old, new, 1).encode())


def append(folder: Path, data: bytes) -> None:
    path = folder / METADATA_NAME
    path.write_bytes(path.read_bytes() + data)


BROKEN_FOLDERS = {
    "no table": lambda f: (f / METADATA_NAME).unlink(),
    "missing image": lambda f: next((f / "counting" / "prompt").iterdir()).unlink(),
    "not an image": lambda f: next((f / "counting" / "prompt").iterdir()).write_bytes(b"GIF89a nope"),
    "truncated image": lambda f: (p := next((f / "counting" / "prompt").iterdir())).write_bytes(
        p.read_bytes()[:-20]
    ),
    "code in a cell": lambda f: edit_table(f, "['counting/", "__import__('os').system('x') or ['counting/"),
    "outside path": lambda f: edit_table(f, "['counting/prompt/", "['../counting/prompt/"),
    "absolute path": lambda f: edit_table(f, "['counting/prompt/", "['/counting/prompt/"),
    "unknown category": lambda f: edit_table(f, "counting_10\t", "colour_10\t"),
    "same texts": lambda f: edit_table(f, "spacial_relation 10 ≠ 🍎\r\nsecond line", 'spacial_relation ""10"",\ta, [b]'),
    "nul": lambda f: edit_table(f, "counting 10", "counting \0 10"),
    "row twice": lambda f: edit_table(f, "counting_10\t", "counting_2\t"),
    "cells missing": lambda f: append(f, b"counting_77\tx\n"),
    "column missing": lambda f: edit_table(f, "alt_contrast_paths", "alternative_paths"),
    "not utf-8": lambda f: append(f, b"\xff\xfe"),
    "link": lambda f: (p := next((f / "counting" / "prompt").iterdir())).unlink()
    or p.symlink_to("/etc/hostname"),
    "folder link": lambda f: shutil.move(f / "counting", f.parent / "elsewhere")
    and (f / "counting").symlink_to(f.parent / "elsewhere"),
    "wrong hash": lambda f: (f / "manifest.json").write_text(
        json.dumps({"files": [{
            "path": next((f / "counting" / "prompt").iterdir()).relative_to(f).as_posix(),
            "sha256": "0" * 64, "size": 1,
        }]})
    ),
    "another pair's file": lambda f: edit_table(f, "['counting/prompt/counting_10___", "['counting/prompt/counting_2___"),
}  # fmt: skip


@pytest.mark.parametrize("fault", BROKEN_FOLDERS)
def test_a_broken_folder_changes_nothing_and_says_why(folder, fault):
    before = state()
    BROKEN_FOLDERS[fault](folder)
    with pytest.raises(CommandError, match=r"Nothing was changed\.") as caught:
        call_command("import_crochum", str(folder))
    assert len(str(caught.value)) > 30
    assert state() == before


def member(name: str, data: bytes = b"x", **fields) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.size = len(data)
    for key, value in fields.items():
        setattr(info, key, value)
    return info, data


def archive_of(path: Path, members, mode: str = "w:gz") -> Path:
    with tarfile.open(path, mode, format=tarfile.PAX_FORMAT) as tar:
        for info, data in members:
            tar.addfile(info, io.BytesIO(data) if info.isreg() else None)
    return path


def _bomb(path: Path) -> Path:
    with gzip.open(path, "wb", 9) as out:
        info = tarfile.TarInfo("bomb.png")
        info.size = 200 * 1024 * 1024
        out.write(info.tobuf())
        for _ in range(200):
            out.write(b"\0" * 1024 * 1024)
        out.write(b"\0" * 1024)
    return path


def _header_bomb(path: Path) -> Path:
    """A PAX header that claims gigabytes, which the library would read in one call."""
    info = tarfile.TarInfo("x")
    info.type = tarfile.XHDTYPE
    info.size = 3 * 1024**3
    with gzip.open(path, "wb", 1) as out:
        out.write(info.tobuf())
        for _ in range(8):
            out.write(b"\0" * 1024 * 1024)
    return path


HOSTILE_ARCHIVES = {
    "absolute path": lambda p: archive_of(p, [member("/etc/evil")]),
    "dot dot": lambda p: archive_of(p, [member("a/../../evil")]),
    "backslash": lambda p: archive_of(p, [member("a\\..\\evil")]),
    "symbolic link": lambda p: archive_of(p, [member("l", b"", type=tarfile.SYMTYPE, linkname="/etc")]),
    "hard link": lambda p: archive_of(p, [member("l", b"", type=tarfile.LNKTYPE, linkname="/etc/passwd")]),
    "link then through it": lambda p: archive_of(
        p, [member("d", b"", type=tarfile.SYMTYPE, linkname="/tmp"), member("d/evil")]
    ),
    "device": lambda p: archive_of(p, [member("dev", b"", type=tarfile.CHRTYPE)]),
    "fifo": lambda p: archive_of(p, [member("fifo", b"", type=tarfile.FIFOTYPE)]),
    "duplicate": lambda p: archive_of(p, [member("a/x"), member("a/./x")]),
    "duplicate by case": lambda p: archive_of(p, [member("a/x"), member("A/X")]),
    "file and folder": lambda p: archive_of(p, [member("a"), member("a/x")]),
    "nul in a name": lambda p: archive_of(p, [member("a", pax_headers={"path": "a\0b"})]),
    "line end in a name": lambda p: archive_of(p, [member("a\nb")]),
    "endless name": lambda p: archive_of(p, [member("a" * 3_000)]),
    "bomb": _bomb,
    "header bomb": _header_bomb,
    "empty": lambda p: archive_of(p, []),
    "not an archive": lambda p: p.write_bytes(b"PK\x03\x04 not this") and p,
    "truncated": lambda p: p.write_bytes(
        archive_of(p, [member("a", os.urandom(50_000))]).read_bytes()[:-9_000]
    ) and p,
    "truncated tar": lambda p: p.write_bytes(
        archive_of(p, [member("a", os.urandom(50_000))], "w").read_bytes()[:20_000]
    ) and p,
    "damaged": lambda p: p.write_bytes(
        (d := archive_of(p, [member("a", os.urandom(50_000))]).read_bytes())[:20_000]
        + b"\xff" * 400 + d[20_400:]
    ) and p,
}  # fmt: skip


@pytest.mark.parametrize("kind", HOSTILE_ARCHIVES)
def test_a_hostile_archive_is_refused_with_nothing_changed(kind, tmp_path, settings):
    before = state()
    path = HOSTILE_ARCHIVES[kind](tmp_path / "evil.tar.gz")
    with pytest.raises(CommandError, match=r"Nothing was changed\."):
        call_command("import_crochum", str(path))
    assert state() == before
    assert not Path("/tmp/evil").exists()
    assert {item.name for item in tmp_path.iterdir()} <= {"evil.tar.gz", "media"}


def test_a_million_small_files_are_refused_early(tmp_path):
    path = tmp_path / "many.tar.gz"
    head = bytearray(tarfile.TarInfo("d/00000000.png").tobuf())
    head[148:156] = b" " * 8
    base = sum(head) - sum(b"00000000")
    with gzip.open(path, "wb", 1) as out:
        for start in range(0, 1_000_000, 10_000):
            chunk = bytearray()
            for number in range(start, start + 10_000):
                digits = f"{number:08d}".encode()
                head[2:10] = digits
                head[148:156] = f"{base + sum(digits):06o}\0 ".encode()
                chunk += head
            out.write(chunk)
        out.write(b"\0" * 1024)
    (tmp_path / "to").mkdir()
    with pytest.raises(HostileArchiveError, match="more than 2000 entries"):
        unpack(path, tmp_path / "to", limits=Limits(entries=2_000))
    with pytest.raises(CommandError, match=r"entries|fold"):
        call_command("import_crochum", str(path))


def test_a_good_archive_is_unpacked_whole(tmp_path):
    files = {f"a/{n}.png": os.urandom(1_000) for n in range(50)} | {"ünï/é 漢.png": b"data"}
    path = archive_of(tmp_path / "ok.tar.gz", [member(name, data) for name, data in files.items()])
    (tmp_path / "to").mkdir()
    assert unpack(path, tmp_path / "to") == 51
    assert {p.relative_to(tmp_path / "to").as_posix(): p.read_bytes()
            for p in (tmp_path / "to").rglob("*") if p.is_file()} == files  # fmt: skip


@pytest.mark.parametrize("form", ["folder", "archive"])
def test_a_metric_is_scored_on_the_published_files_without_annotating(
    folder, tmp_path, form, capsys
):
    """The two commands of the README; the metric looks at every pixel."""
    source = folder if form == "folder" else packed(folder, tmp_path / "croc_hum.tar.gz")
    call_command("import_crochum", str(source))
    call_command(
        "run_benchmark", "--metric", "tests.benchmark.fakes:Counting", "--option", "needs=pixels",
        "--here",
    )  # fmt: skip
    capsys.readouterr()
    call_command("leaderboard", "--format", "json", "--draws", "50")
    categories = json.loads(capsys.readouterr().out)["metrics"]["counting"]["categories"]
    assert set(categories) == {"negation", "spatial_relation", "counting"}
    for cells in categories.values():
        assert cells["coverage"] == 1
        assert cells["n_text_forward"] == 2  # pairs


def test_a_text_of_the_table_survives(folder):
    import_published(source=folder)
    pair = ContrastPair.objects.get(slug="counting_2")
    assert pair.prompt == 'counting "2",\ta, [b]'
    assert pair.contrast == "counting 2 ≠ 🍎\r\nsecond line"
    table = pd.read_csv(folder / METADATA_NAME, sep="\t")
    assert ast.literal_eval(table.loc[0, "contrast_paths"]) == []
