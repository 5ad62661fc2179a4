"""What an export looks like after a kill or on a full disk."""

from __future__ import annotations

import hashlib
import io
import os
import random
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.management import CommandError
from django.db import connections

from croc_annotate.lib.atomic import TargetExistsError
from croc_annotate.releases.export.workdir import BusyError, Entry, work_folder
from croc_annotate.releases.services import freeze_release
from tests.releases.test_export_crochum import ALL_FORMATS, export, tree
from tests.releases.world import NOW, full_world


def frozen_world(**sizes):
    world = full_world(**{"pairs": 1, "seeds": 1, **sizes})
    freeze_release(name="croc", campaign=world.campaign, now=NOW)
    return world


def in_child(out: Path, words: list[str], *, die_at: int | None) -> tuple[int, int]:
    """Run the export in a forked process, which kills itself at its n-th Python call.

    Returns (wait status, calls made).
    """
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            # The parent's connection is the parent's: forget it without closing it.
            connections["default"].connection = None
            calls = 0

            def count(frame, event, arg):
                nonlocal calls
                calls += event == "call"
                if die_at is not None and calls >= die_at:
                    os.kill(os.getpid(), signal.SIGKILL)

            sys.stdout = sys.stderr = io.StringIO()
            sys.setprofile(count)
            export(out, *words)
            sys.setprofile(None)
            os.write(writer, str(calls).encode())
            os._exit(0)
        finally:
            os._exit(1)
    os.close(writer)
    _, status = os.waitpid(pid, 0)
    with os.fdopen(reader) as answer:
        return status, int(answer.read() or 0)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("force", [False, True], ids=["new", "over an old one"])
def test_killed_at_ten_random_places_and_run_again_gives_the_same_bytes(tmp_path, force):
    frozen_world()
    words = [*ALL_FORMATS, "--tar", "--workers", "2"]
    export(tmp_path / "reference", *words)
    (tmp_path / "place").mkdir()
    status, calls = in_child(tmp_path / "place" / "x", words, die_at=None)
    assert status == 0
    assert calls > 1_000
    shutil.rmtree(tmp_path / "place" / "x")

    out = tmp_path / "place" / "out"
    if force:
        out.mkdir()
        (out / "old.txt").write_text("the old export")
        words.append("--force")
    chance = random.Random(16)
    for _ in range(10):
        status, _ = in_child(out, words, die_at=chance.randrange(calls // 20, calls))
        assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
        if not force and out.exists():
            # Whole at once: also when the kill came after the rename.
            assert tree(out) == tree(tmp_path / "reference")
            break
        if force:
            assert (out / "old.txt").exists() or (out / "manifest.json").exists()
    if force or not out.exists():
        export(out, *words)

    assert tree(out) == tree(tmp_path / "reference")
    assert {path.name for path in (tmp_path / "place").iterdir()} == {"out"}


@pytest.mark.django_db
def test_a_continued_export_keeps_what_is_done_and_distrusts_what_changed(tmp_path):
    frozen_world()
    export(tmp_path / "reference", *ALL_FORMATS)

    class StopError(Exception):
        pass

    from croc_annotate.releases.export.options import ExportOptions
    from croc_annotate.releases.export.run import export_to_folder
    from croc_annotate.releases.models import Release

    done = 0

    def tick() -> None:
        nonlocal done
        done += 1
        if done == 100:
            raise StopError

    options = ExportOptions(formats=("crochum", "imagefolder", "parquet", "webdataset", "sft"))
    release = Release.objects.get()
    out = tmp_path / "out"
    with pytest.raises(StopError):
        export_to_folder(release=release, target=out, options=options, tick=tick)
    partial = tmp_path / ".out.partial"
    files = sorted((partial / "crochum").rglob("*.png"))
    assert files
    assert not out.exists()
    # A power cut can leave a file of the right size without its content.
    files[0].write_bytes(bytes(files[0].stat().st_size))
    (partial / "left over.txt").write_text("from a longer attempt")
    export(out, *ALL_FORMATS)
    assert tree(out) == tree(tmp_path / "reference")
    assert not partial.exists()


def _tmpfs(folder: Path, size: str) -> bool:
    folder.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)],
        capture_output=True, check=False,
    )  # fmt: skip
    return done.returncode == 0


@pytest.fixture
def small_disk(tmp_path):
    folder = tmp_path / "small"
    if os.geteuid() != 0 or not _tmpfs(folder, "1m"):
        pytest.skip("a tmpfs cannot be mounted here")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.mark.django_db
def test_a_full_disk_is_told_and_the_old_export_stays(small_disk):
    frozen_world(seeds=2)
    old = small_disk / "out"
    export(old)
    before = tree(old)
    with pytest.raises(CommandError, match="disk is full"):
        export(old, *ALL_FORMATS, "--force")
    assert tree(old) == before
    assert {path.name for path in small_disk.iterdir()} == {"out"}


def test_two_exports_to_one_place_do_not_mix(tmp_path):
    target = tmp_path / "out"
    with work_folder(target, "a", force=False) as first:
        first.put("x.txt", b"1")
        with pytest.raises(BusyError), work_folder(target, "a", force=False):
            pass
        first.publish(target, force=False)
    assert (target / "x.txt").read_bytes() == b"1"
    with pytest.raises(TargetExistsError), work_folder(target, "a", force=False):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_torn_journal_line_is_forgotten(tmp_path):
    target = tmp_path / "out"
    with work_folder(target, "a", force=False) as work:
        work.put("a.txt", b"1")
        work.put("b.txt", b"2")
    journal = tmp_path / ".out.partial" / ".journal"
    journal.write_bytes(journal.read_bytes()[:-5])
    with work_folder(target, "a", force=False) as work:
        assert work.finished("a.txt") == Entry("a.txt", 1, hashlib.sha256(b"1").hexdigest())
        assert work.finished("b.txt") is None
        work.put("b.txt", b"22")
        assert [entry.path for entry in work.entries()] == ["a.txt", "b.txt"]


def test_other_options_start_anew(tmp_path):
    target = tmp_path / "out"
    with work_folder(target, "a", force=False) as work:
        work.put("a.txt", b"1")
    with work_folder(target, "b", force=False) as work:
        assert work.finished("a.txt") is None
        assert not (work.root / "a.txt").exists()
