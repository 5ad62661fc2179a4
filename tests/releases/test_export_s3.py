"""What stands in a bucket after a refusal at any step, and what is told about it."""

from __future__ import annotations

import hashlib
import io
import json
import re
import sys
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from croc_annotate.releases.export import destination
from tests.releases.bucket import Bucket
from tests.releases.test_export_crochum import export, tree
from tests.releases.test_export_survives import frozen_world


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
