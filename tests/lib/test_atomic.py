from __future__ import annotations

import os
import threading

import pytest

from croc_annotate.lib.atomic import (
    TargetExistsError,
    atomic_file,
    atomic_folder,
    publish_folder,
    retired_name,
    write_atomically,
)


def names(folder) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_a_file_appears_whole(tmp_path):
    with atomic_file(tmp_path / "a.txt") as stream:
        stream.write(b"half")
        stream.flush()
        assert "a.txt" not in names(tmp_path)
        stream.write(b" and half")
    assert (tmp_path / "a.txt").read_bytes() == b"half and half"
    assert names(tmp_path) == {"a.txt"}


def test_an_error_leaves_no_trace(tmp_path):
    write_atomically(tmp_path / "a.txt", b"old")

    def fail_halfway() -> None:
        with atomic_file(tmp_path / "a.txt", force=True) as stream:
            stream.write(b"new" * 1_000)
            stream.write(bytes(1 // 0))

    with pytest.raises(ZeroDivisionError):
        fail_halfway()
    assert (tmp_path / "a.txt").read_bytes() == b"old"
    assert names(tmp_path) == {"a.txt"}


def test_an_existing_file_is_replaced_with_force_only(tmp_path):
    write_atomically(tmp_path / "a.txt", b"old")
    with pytest.raises(TargetExistsError, match="--force"):
        write_atomically(tmp_path / "a.txt", b"new")
    assert (tmp_path / "a.txt").read_bytes() == b"old"
    write_atomically(tmp_path / "a.txt", b"new", force=True)
    assert (tmp_path / "a.txt").read_bytes() == b"new"


def test_a_file_that_appears_meanwhile_is_not_replaced(tmp_path):
    def be_late() -> None:
        with atomic_file(tmp_path / "a.txt") as stream:
            stream.write(b"ours")
            (tmp_path / "a.txt").write_bytes(b"theirs")

    with pytest.raises(TargetExistsError):
        be_late()
    assert (tmp_path / "a.txt").read_bytes() == b"theirs"
    assert names(tmp_path) == {"a.txt"}


def test_a_dangling_link_counts_as_existing(tmp_path):
    (tmp_path / "a").symlink_to(tmp_path / "nowhere")
    with pytest.raises(TargetExistsError):
        write_atomically(tmp_path / "a", b"x")
    with pytest.raises(TargetExistsError), atomic_folder(tmp_path / "a"):
        pass


def test_of_many_writers_one_wins(tmp_path):
    won = []

    def write(number: int) -> None:
        try:
            write_atomically(tmp_path / "a.txt", str(number).encode())
        except TargetExistsError:
            return
        won.append(number)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1
    assert (tmp_path / "a.txt").read_text() == str(won[0])


def test_a_folder_appears_whole_or_not_at_all(tmp_path):
    with atomic_folder(tmp_path / "out") as folder:
        (folder / "x").mkdir()
        (folder / "x" / "a.txt").write_text("1")
        assert not (tmp_path / "out").exists()
    assert (tmp_path / "out" / "x" / "a.txt").read_text() == "1"
    with pytest.raises(ZeroDivisionError), atomic_folder(tmp_path / "other") as folder:
        (folder / str(1 // 0)).mkdir()
    assert names(tmp_path) == {"out"}


def test_an_empty_folder_may_be_filled_and_a_full_one_replaced_by_force(tmp_path):
    (tmp_path / "out").mkdir()
    with atomic_folder(tmp_path / "out") as folder:
        (folder / "a").write_text("1")
    with pytest.raises(TargetExistsError), atomic_folder(tmp_path / "out") as folder:
        pass
    with atomic_folder(tmp_path / "out", force=True) as folder:
        (folder / "b").write_text("2")
    assert names(tmp_path / "out") == {"b"}
    assert names(tmp_path) == {"out"}


def test_a_folder_filled_meanwhile_is_kept(tmp_path):
    part = tmp_path / "part"
    part.mkdir()
    (part / "a").write_text("ours")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "theirs").write_text("x")
    with pytest.raises(TargetExistsError):
        publish_folder(part, tmp_path / "out")
    assert names(tmp_path / "out") == {"theirs"}


def test_force_replaces_a_file_by_a_folder(tmp_path):
    (tmp_path / "out").write_text("a file")
    with atomic_folder(tmp_path / "out", force=True) as folder:
        (folder / "a").write_text("1")
    assert (tmp_path / "out").is_dir()
    assert not retired_name(tmp_path / "out").exists()
    assert os.listdir(tmp_path) == ["out"]  # noqa: PTH208
