"""An export holds one image at a time: its memory is far below the size of its data."""

from __future__ import annotations

import hashlib
import io
from threading import Event, Lock

import pytest

from croc_annotate.releases.export import payloads, tables, workdir
from croc_annotate.releases.export.arrays import column_of
from tests.benchmarks.bench_export import FORMATS, MEMORY_LIMIT_MB, World


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    world = World(tmp_path_factory.mktemp("streams"))
    world.build(1_000, 512)
    return world


@pytest.mark.field_case(36)
@pytest.mark.parametrize("name", FORMATS)
def test_an_export_of_more_data_than_its_limit_stays_below_the_limit(world: World, name: str):
    assert world.megabytes > MEMORY_LIMIT_MB, "too little data to show anything"
    assert world.export(name).megabytes < MEMORY_LIMIT_MB


def test_the_hash_of_a_file_is_that_of_its_bytes_whatever_pieces_came_in():
    out = io.BytesIO()
    sink = workdir.HashedFile(out)
    reused = bytearray(workdir._LARGE)
    for number in range(40):
        sink.write(bytes([number]) * number)
        sink.write(bytes([number]) * (workdir._LARGE + number))
        # A writer may fill its buffer again at once: what was handed over must be hashed as it was.
        reused[:] = bytes([number]) * len(reused)
        sink.write(memoryview(reused))
        sink.write(reused)
    digest = sink.hexdigest()
    sink.finish()
    assert digest == hashlib.sha256(out.getvalue()).hexdigest()
    assert sink.size == len(out.getvalue())


def test_images_enter_a_table_without_a_copy():
    pa = pytest.importorskip("pyarrow")
    kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    images = [bytes([number]) * 1_000_000 for number in range(5)]
    cells = [{"bytes": data, "path": f"{number}.png"} for number, data in enumerate(images)]
    before = pa.total_allocated_bytes()
    column = column_of(cells, kind)
    assert pa.total_allocated_bytes() - before < 10_000
    assert column.to_pylist() == cells
    for chunk, data in zip(column.chunks, images, strict=True):
        assert chunk.field("bytes").buffers()[2].address == pa.py_buffer(data).address


def test_the_memory_of_each_row_group_is_given_back(tmp_path, monkeypatch):
    pa = pytest.importorskip("pyarrow")
    pool, given_back = pa.default_memory_pool(), []

    class Pool:
        def release_unused(self) -> None:
            given_back.append(pool.bytes_allocated())
            pool.release_unused()

    monkeypatch.setattr(pa, "default_memory_pool", Pool)
    monkeypatch.setattr(tables, "ROWS", 10)
    before = pool.bytes_allocated()
    with workdir.work_folder(tmp_path / "out", "a", force=False) as out:
        schema = pa.schema([pa.field("n", pa.int64())])
        tables.write_table(out, "n.parquet", schema, ({"n": n} for n in range(35)))
        file = out.root / "n.parquet"
        assert pa.parquet.ParquetFile(file).num_row_groups == len(given_back) == 4
    assert max(given_back) - before < 1_000_000


@pytest.mark.parametrize(("weight", "ahead"), [(payloads._AHEAD_BYTES, 4), (2**20, 8)])
def test_threads_read_ahead_no_further_than_the_weights_allow(weight: int, ahead: int):
    lock, started, full = Lock(), [], Event()

    def load(item: int) -> int:
        with lock:
            started.append(item)
            if len(started) >= ahead:
                full.set()
        return item

    found = payloads.ordered_map(load, range(50), workers=2, weigh=lambda item: weight)
    assert next(found) == 0
    assert full.wait(30)
    assert len(started) == ahead
    assert list(found) == list(range(1, 50))
