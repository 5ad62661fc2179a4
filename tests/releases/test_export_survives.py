"""What an export looks like after a kill, a full disk, a refusing bucket, or on another database."""

from __future__ import annotations

import hashlib
import io
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import threading
import urllib.request
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import connection, connections

from croc_annotate.lib.atomic import TargetExistsError
from croc_annotate.releases.export import destination
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


# --- S3 ----------------------------------------------------------------------------------------


class Bucket:
    """A real S3 endpoint on loopback that can begin to refuse."""

    def __init__(self) -> None:
        import boto3
        from moto.server import DomainDispatcherApplication, create_backend_app
        from werkzeug.serving import make_server

        app = DomainDispatcherApplication(create_backend_app)
        # How many writes still pass, and whether those after the next one pass again.
        self.writes_left: int | None = None
        self.only_once = False
        self.writes = 0

        self.refused_path, self.refused_method, self.then_refuse_all = "", "", False
        self.refused: list[str] = []

        def refusing(environ, start_response):
            writing = environ["REQUEST_METHOD"] in {"PUT", "POST", "DELETE"}
            self.writes += writing
            if writing and self.refuses(environ["REQUEST_METHOD"], environ["PATH_INFO"]):
                start_response("403 Forbidden", [("Content-Type", "text/xml")])
                return [b"<Error><Code>AccessDenied</Code><Message>no</Message></Error>"]
            if writing and self.writes_left is not None:
                self.writes_left -= 1
                if self.writes_left == -1 or (self.writes_left < 0 and not self.only_once):
                    start_response("403 Forbidden", [("Content-Type", "text/xml")])
                    return [b"<Error><Code>AccessDenied</Code><Message>no</Message></Error>"]
            return app(environ, start_response)

        self.server = make_server("127.0.0.1", 0, refusing, threaded=True)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.client = boto3.client(
            "s3", endpoint_url=self.url, aws_access_key_id="k", aws_secret_access_key="s",
            region_name="us-east-1",
        )  # fmt: skip
        # The simulated S3 lives as long as the process: empty it.
        urllib.request.urlopen(f"{self.url}/moto-api/reset", data=b"", timeout=60).close()
        self.client.create_bucket(Bucket="data")

    def refuse(self, path: str, *, method: str = "PUT") -> list[str]:
        """Refuse to write this object from now on, once it was there; returns what was refused."""
        self.refused_path, self.refused_method = path, method
        self.then_refuse_all, self.refused = False, []
        return self.refused

    def refuses(self, method: str, path: str) -> bool:
        name = path.removeprefix("/data/")
        hit = bool(self.refused_path) and (method, name) == (self.refused_method, self.refused_path)
        if hit:
            self.refused.append(name)
        return hit or (self.then_refuse_all and bool(self.refused))

    def hold(self, prefix: str, folder: Path) -> None:
        """Nothing but the files of ``folder``."""
        for item in self.client.list_objects_v2(Bucket="data").get("Contents", []):
            self.client.delete_object(Bucket="data", Key=item["Key"])
        for name in tree(folder):
            data = (folder / name).read_bytes()
            self.client.put_object(Bucket="data", Key=f"{prefix}/{name}", Body=data)

    def tree(self, prefix: str) -> dict[str, str]:
        start = f"{prefix}/" if prefix else ""
        found = self.client.list_objects_v2(Bucket="data", Prefix=start).get("Contents", [])
        return {
            item["Key"].removeprefix(start): hashlib.sha256(
                self.client.get_object(Bucket="data", Key=item["Key"])["Body"].read()
            ).hexdigest()
            for item in found
        }


@pytest.fixture
def bucket(monkeypatch, settings):
    pytest.importorskip("moto")
    found = Bucket()
    monkeypatch.setenv("AWS_ENDPOINT_URL", found.url)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "k")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    settings.S3_BUCKET = ""
    yield found
    found.server.shutdown()
    found.server.server_close()


def folder_of(root: Path, version: str, names: tuple[str, ...]) -> Path:
    """An export in small: the hashes of its manifest are those of its files."""
    root.mkdir()
    files = {name: f"{name} of {version}".encode() for name in names}
    for name, data in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data)
    listed = {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
    (root / "manifest.json").write_text(json.dumps({"version": version, "files": listed}))
    return root


def whole_exports(bucket: Bucket) -> set[str]:
    """The versions that stand somewhere in the bucket with every file that their manifest lists."""
    found = bucket.tree("")
    versions = set()
    for key in found:
        if key.endswith("manifest.json"):
            body = bucket.client.get_object(Bucket="data", Key=key)["Body"].read()
            manifest, prefix = json.loads(body), key.removesuffix("manifest.json")
            if all(found.get(prefix + name) == h for name, h in manifest["files"].items()):
                versions.add(manifest["version"])
            else:
                assert key != "croc/manifest.json", "a mixture that claims to be whole"
    return versions


def fault_at(bucket: Bucket, step: int, *, only_once: bool) -> None:
    bucket.writes_left, bucket.only_once = step, only_once


@pytest.mark.timeout(600)
@pytest.mark.parametrize("only_once", [True, False], ids=["once", "from then on"])
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_at_each_refused_step_a_whole_export_stands_in_the_bucket(bucket, tmp_path, only_once):
    old = folder_of(tmp_path / "old", "1", ("README.md", "gone.png"))
    new = folder_of(tmp_path / "new", "2", ("README.md", "came.png"))
    place = destination.Place("data", "croc")
    destination.send(old, place, digest="1" * 64)
    start = bucket.writes
    destination.send(new, place, digest="2" * 64)
    steps = bucket.writes - start
    assert steps > 12
    assert bucket.tree("croc") == tree(new)

    for step in range(steps):
        bucket.hold("croc", old)
        fault_at(bucket, step, only_once=only_once)
        with pytest.raises(destination.DestinationError, match="S3 refused"):
            destination.send(new, place, digest="2" * 64)
        bucket.writes_left = None
        assert whole_exports(bucket), f"nothing whole after step {step}"
        if only_once:
            # The refusal passed: the old export is in its place again, or the new one already.
            at_place = bucket.tree("croc")
            assert any(tree(version).items() <= at_place.items() for version in (old, new)), step
        if step % 4 == 0 or step == steps - 1:
            destination.send(new, place, digest="2" * 64)
            assert bucket.tree("croc") == tree(new), step
            assert {key.split("/")[0] for key in bucket.tree("")} == {"croc"}, step


def test_what_is_the_same_is_not_copied_again(bucket, tmp_path):
    names = tuple(f"{n}.png" for n in range(20))
    old = folder_of(tmp_path / "old", "1", ("README.md", *names))
    new = folder_of(tmp_path / "new", "1", ("README.md", *names))
    readme = (new / "README.md").read_bytes() + b" and more"
    (new / "README.md").write_bytes(readme)
    manifest = json.loads((new / "manifest.json").read_text()) | {"version": "2"}
    manifest["files"]["README.md"] = hashlib.sha256(readme).hexdigest()
    (new / "manifest.json").write_text(json.dumps(manifest))
    place = destination.Place("data", "croc")
    destination.send(old, place, digest="1" * 64)
    copied = []
    copy = destination.Place._copy

    def noted(self, source, target):
        copied.append(target)
        copy(self, source, target)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(destination.Place, "_copy", noted)
        destination.send(new, place, digest="2" * 64)
    assert [name for name in copied if not name.startswith("croc.old/")] == [
        "croc/README.md", "croc/manifest.json",
    ]  # fmt: skip
    assert bucket.tree("") == {f"croc/{name}": found for name, found in tree(new).items()}


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_files_of_another_export_that_was_stopped_are_not_taken_for_ours(bucket, tmp_path):
    first = folder_of(tmp_path / "first", "1", ("README.md", "a/x.png"))
    second = folder_of(tmp_path / "second", "2", ("README.md", "a/x.png"))
    place = destination.Place("data", "croc")
    fault_at(bucket, 2, only_once=False)
    with pytest.raises(destination.DestinationError):
        destination.send(first, place, digest="1" * 64)
    bucket.writes_left = None
    destination.send(second, place, digest="2" * 64)
    assert bucket.tree("croc") == tree(second)


def to_s3(*more: str) -> None:
    call_command("export_crochum", "--release", "croc", "--out", "s3://data/croc", *more)


@pytest.mark.django_db
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
class TestS3:
    def test_the_bucket_holds_the_same_files_as_a_folder(self, bucket, tmp_path):
        frozen_world()
        export(tmp_path / "reference", "--format", "parquet", "--format", "crochum")
        to_s3("--format", "parquet", "--format", "crochum")
        assert bucket.tree("croc") == tree(tmp_path / "reference")
        with pytest.raises(CommandError, match="already exists"):
            to_s3()

    def test_a_refusing_bucket_leaves_the_old_export_untouched(self, bucket, tmp_path):
        frozen_world()
        to_s3("--format", "parquet")
        before = bucket.tree("croc")
        bucket.writes_left = 7
        with pytest.raises(CommandError, match="S3 refused"):
            to_s3("--format", "crochum", "--force")
        assert bucket.tree("croc") == before

        bucket.writes_left = None
        to_s3("--format", "crochum", "--force")
        export(tmp_path / "reference", "--format", "crochum")
        assert bucket.tree("croc") == tree(tmp_path / "reference")
        assert bucket.client.list_objects_v2(Bucket="data", Prefix="croc.")["KeyCount"] == 0

    def test_a_refused_new_export_has_no_manifest_and_goes_on_later(self, bucket, tmp_path):
        frozen_world()
        bucket.writes_left = 9
        with pytest.raises(CommandError, match="S3 refused"):
            to_s3()
        assert "manifest.json" not in bucket.tree("croc")
        bucket.writes_left = None
        to_s3()
        export(tmp_path / "reference")
        assert bucket.tree("croc") == tree(tmp_path / "reference")

    def test_the_last_step_refused_is_told_and_the_same_command_completes_it(
        self, bucket, tmp_path
    ):
        frozen_world()
        for words in (["--format", "parquet"], ["--format", "webdataset"]):
            export(tmp_path / words[-1], *words)
        to_s3("--format", "parquet")
        before = bucket.tree("croc")
        refused = bucket.refuse("croc/manifest.json", method="PUT")
        # Nothing is asked of S3 after it: not even the old files can be put back.
        bucket.then_refuse_all = True
        with pytest.raises(CommandError) as caught:
            to_s3("--format", "webdataset", "--force")
        told = str(caught.value)
        assert refused == ["croc/manifest.json"]
        assert "s3://data/croc is incomplete now" in told
        assert "the old export is whole at s3://data/croc.old" in told
        staging = re.search(r"the new one at s3://data/(croc\.staging-[0-9a-f]{16})", told)
        assert "give the command again when S3 takes writes" in told
        assert "manifest.json" not in bucket.tree("croc")
        assert bucket.tree("croc.old") == before
        assert bucket.tree(staging[1]) == tree(tmp_path / "webdataset")

        bucket.refuse("")
        to_s3("--format", "webdataset", "--force")
        assert bucket.tree("croc") == tree(tmp_path / "webdataset")
        assert {key.split("/")[0] for key in bucket.tree("")} == {"croc"}

    def test_a_terminal_sees_how_far_the_bucket_is_and_nobody_else(
        self, bucket, monkeypatch, tmp_path
    ):
        frozen_world()

        class Terminal(io.StringIO):
            def isatty(self):
                return True

        seen = Terminal()
        monkeypatch.setattr(sys, "stderr", seen)
        to_s3("--format", "parquet")
        to_s3("--format", "crochum", "--force")
        shown = seen.getvalue()
        for what in ("exporting", "uploading", "copying in the bucket", "tidying the bucket"):
            assert what in shown, what
        assert "100%" in shown[shown.index("tidying") :]
        silent = io.StringIO()
        monkeypatch.setattr(sys, "stderr", silent)
        to_s3("--format", "crochum", "--force")
        assert "uploading" not in silent.getvalue()

    def test_an_address_without_prefix_is_refused(self, bucket):
        frozen_world()
        with pytest.raises(CommandError, match="s3://bucket/prefix"):
            call_command("export_crochum", "--release", "croc", "--out", "s3://data")
        assert connection.vendor in {"postgresql", "sqlite"}
