from __future__ import annotations

import gzip
import io
import json
import random
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from django.core.management import CommandError, call_command
from PIL import Image

from croc_annotate.releases import verifying
from croc_annotate.releases.checks import Check
from croc_annotate.releases.services import freeze_release
from croc_annotate.releases.verifying import verify_export
from tests.releases.test_export_crochum import ALL_FORMATS, export
from tests.releases.world import NOW, full_world, make_world, picture

pytestmark = [pytest.mark.django_db, pytest.mark.filterwarnings("default")]


def noise(number: int) -> bytes:
    """A large image that does not shrink."""
    pixels = random.Random(number).randbytes(3 * 300 * 300)
    out = io.BytesIO()
    Image.frombytes("RGB", (300, 300), pixels).save(out, "PNG")
    return out.getvalue()


@pytest.fixture
def exported(tmp_path):
    world = full_world(pairs=1, seeds=1)
    freeze_release(name="croc", campaign=world.campaign, now=NOW)
    export(tmp_path / "out", *ALL_FORMATS, "--tar")
    return tmp_path / "out"


def test_a_fresh_export_passes_all_checks(exported, capsys):
    call_command("verify_release", str(exported))
    out = capsys.readouterr().out
    assert "✕" not in out
    assert "all 7 checks passed" in out.strip().splitlines()[-1]
    assert out.count("✓") == 7


def _resign(folder, path):
    """The manifest agrees with a changed file, so that only the deeper checks can tell."""
    import hashlib

    manifest = json.loads((folder / "manifest.json").read_text())
    for entry in manifest["files"]:
        if entry["path"] == path:
            data = (folder / path).read_bytes()
            entry |= {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    (folder / "manifest.json").write_text(json.dumps(manifest))


def _image(folder):
    return next(folder.glob("crochum/counting/prompt/*.png"))


def _broken_but_signed(folder):
    _image(folder).write_bytes(picture(3)[:-9])
    _resign(folder, _image(folder).relative_to(folder).as_posix())


def _other_text(folder):
    table = folder / "crochum" / "croc_hum_metadata.tsv"
    table.write_text(table.read_text().replace("three apples", "seven apples", 1))
    _resign(folder, "crochum/croc_hum_metadata.tsv")


def _fewer_rows(folder):
    path = folder / "parquet" / "data" / "test-00000.parquet"
    pq.write_table(pq.read_table(path).slice(1), path)
    _resign(folder, "parquet/data/test-00000.parquet")


def _bad_counts(folder):
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["counts"]["rejected"] += 1
    path.write_text(json.dumps(manifest))


def _bad_croissant(folder):
    path = folder / "croissant.json"
    path.write_text(path.read_text().replace('"sha256"', '"sha"'))
    _resign(folder, "croissant.json")


def _shard_with_a_broken_image(folder):
    path = folder / "webdataset" / "test-00000.tar"
    data = path.read_bytes()
    at = data.index(b"IDAT")
    path.write_bytes(data[:at] + b"XDAT" + data[at + 4 :])
    _resign(folder, "webdataset/test-00000.tar")


def _other_archive(folder):
    path = folder / "crochum.tar.gz"
    data = gzip.decompress(path.read_bytes()).replace(b"three apples", b"seven apples", 1)
    path.write_bytes(gzip.compress(data))
    _resign(folder, "crochum.tar.gz")


def _shorter_archive(folder):
    path = folder / "crochum.tar.gz"
    whole = gzip.decompress(path.read_bytes())
    # The last file is missing and the end is there.
    last = whole.rindex(b"croc_hum/")
    path.write_bytes(gzip.compress(whole[:last] + bytes(1024)))
    _resign(folder, "crochum.tar.gz")


FAULTS = {
    "missing file": (lambda f: _image(f).unlink(), "listed file"),
    "changed file": (lambda f: (f / "README.md").write_text("hello"), "listed file"),
    "same size, other bytes": (
        lambda f: _image(f).write_bytes(bytes(_image(f).stat().st_size)), "listed file"),
    "stranger": (lambda f: (f / "crochum" / "notes.txt").write_text("x"), "does not list"),
    "counts": (_bad_counts, "add up"),
    "image": (_broken_but_signed, "decoded"),
    "image in a tar": (_shard_with_a_broken_image, "decoded"),
    "archive": (_other_archive, "verified images"),
    "short archive": (_shorter_archive, "verified images"),
    "text": (_other_text, "texts of a pair"),
    "rows": (_fewer_rows, "verified images"),
    "croissant": (_bad_croissant, "croissant"),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_is_found_by_its_check(exported, fault, capsys):
    damage, words = FAULTS[fault]
    damage(exported)
    with pytest.raises(CommandError) as caught:
        call_command("verify_release", str(exported), "--json")
    assert caught.value.returncode == 1
    found = json.loads(capsys.readouterr().out)
    assert found["ok"] is False
    failed = [check for check in found["checks"] if not check["ok"]]
    assert any(words in check["name"] for check in failed), failed
    assert all(check["first_faults"] for check in failed)


def test_a_folder_without_manifest_is_no_export(tmp_path):
    with pytest.raises(CommandError, match=r"no manifest\.json"):
        call_command("verify_release", str(tmp_path))
    for text in ("[]", '{"files": [{"path": 7}], "counts": {}}', '{"files": [1], "counts": {}}'):
        (tmp_path / "manifest.json").write_text(text)
        with pytest.raises(CommandError, match="not the manifest"):
            call_command("verify_release", str(tmp_path))


def test_decoding_can_be_left_out(exported):
    assert len(verify_export(exported, decode=False)) == 6


def _bytes_read() -> int:
    lines = Path("/proc/self/io").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("rchar:")).split()[1])


@pytest.mark.parametrize(
    ("words", "times"),
    [
        (["--format", "crochum", "--tar"], 1),
        (["--format", "imagefolder"], 1),
        (["--format", "webdataset"], 1),
        (["--format", "parquet"], 2),
    ],
    ids=["crochum and archive", "imagefolder", "webdataset", "parquet"],
)
def test_a_file_is_read_once_though_it_is_hashed_and_decoded(tmp_path, monkeypatch, words, times):
    world = make_world()
    for number in range(1, 6):
        world.verified(world.pair(f"counting_{number}"), data=noise(number))
    freeze_release(name="croc", campaign=world.campaign, now=NOW)
    export(tmp_path / "out", *words)
    # Its library reads files of its own.
    monkeypatch.setattr(verifying, "_check_croissant", lambda folder: Check("croissant"))
    verify_export(tmp_path / "out")
    size = sum(path.stat().st_size for path in (tmp_path / "out").rglob("*") if path.is_file())
    before = _bytes_read()
    checks = verify_export(tmp_path / "out")
    read = _bytes_read() - before
    assert all(check.ok for check in checks)
    assert sum(check.looked_at for check in checks if "decoded" in check.name) == 5
    assert size > 1_000_000
    assert 0.99 * times * size < read < (times + 0.1) * size
